//! Sessions: notes about the content that is in use by processes that have the store open.
//!
//! Each session has a file in `sessions/`, and holds the file's lock until the session or its process ends. The name of the file
//! contains the start of the session in nanoseconds since 1970. The file contains the digests of the used blobs, 32 bytes each. A
//! collection keeps these blobs, and everything that was made or used since the oldest session began.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use box_digest::Digest;
use host_fs::publish::open_directory;
use host_fs::read::{Links, open_regular, read_open_prefix};
use rustix::fs::CWD;

use crate::error::IoContext;
use crate::gate::Gate;
use crate::store::open_existing;
use crate::{ActionKey, StoreError};

/// The directory of the sessions' files.
pub(crate) const DIRECTORY: &str = "sessions";
/// The clock of a file system may be this much behind the clock of a process.
const SKEW: Duration = Duration::from_secs(2);
/// The size limit of a session's file in bytes. No command uses that many blobs.
const MAX_BYTES: u64 = 64 << 20;

/// The session of this process.
#[derive(Debug)]
pub(crate) struct Session {
    root: PathBuf,
    path: PathBuf,
    /// The number of [`Publishing`] values that hold the gate.
    publishing: AtomicU32,
    used: Mutex<Used>,
}

#[derive(Debug)]
struct Used {
    /// The file of the session. Its lock shows that the process is alive.
    file: File,
    blobs: HashSet<Digest>,
    records: HashSet<ActionKey>,
}

impl Session {
    /// Begins a session. Holds the gate for a moment, so that no collection misses the session.
    pub(crate) fn begin(root: &Path) -> Result<Self, StoreError> {
        let _gate = Gate::share(root)?;
        loop {
            let began = SystemTime::now();
            let path = root.join(DIRECTORY).join(name(began));
            let options = File::options().append(true).create_new(true).mode(0o600).open(&path);
            let file = match options {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.context("make", &path).map_err(|error| error.within(root))?,
            };
            file.lock_shared().context("lock", &path)?;
            let used = Used { file, blobs: HashSet::new(), records: HashSet::new() };
            let (root, publishing) = (root.to_owned(), AtomicU32::new(0));
            return Ok(Self { root, path, publishing, used: Mutex::new(used) });
        }
    }

    /// Notes that this process uses a blob. Call it before checking whether the blob exists.
    ///
    /// A note that cannot be written, for example on a full disk, is no error. If a collection then removes the blob, the build
    /// notices that when it publishes its box.
    pub(crate) fn use_blob(&self, blob: &Digest) {
        if self.used().blobs.contains(blob) {
            return;
        }
        // Takes the gate before the lock of `used`. A publishing thread holds the gate and waits for the lock of `used`, so the
        // opposite order could end in a deadlock.
        let _gate = self.pass();
        let mut used = self.used();
        if used.blobs.insert(*blob) {
            drop(used.file.write_all(blob.as_bytes()));
        }
    }

    /// Notes that this process uses a record: sets the time of the record's file to now. Call it before reading the record.
    pub(crate) fn use_record(&self, key: &ActionKey, path: &Path) {
        if self.used().records.contains(key) {
            return;
        }
        let _gate = self.pass();
        if self.used().records.insert(*key) {
            touch(path);
        }
    }

    /// Takes the gate shared, unless this process already holds it for a publication.
    fn pass(&self) -> Option<Gate> {
        let is_held = self.publishing.load(Ordering::SeqCst) > 0;
        if is_held { None } else { Gate::share(&self.root).ok() }
    }

    /// Takes the gate shared until the publication ends.
    pub(crate) fn publish(&self) -> Result<Publishing<'_>, StoreError> {
        let gate = Gate::share(&self.root)?;
        self.publishing.fetch_add(1, Ordering::SeqCst);
        Ok(Publishing { session: self, _gate: gate })
    }

    /// Like [`Self::publish`]. Returns `None` if this process already holds the gate for a publication: to take it a second time
    /// could wait for a collection that waits for the first holder.
    pub(crate) fn publish_once(&self) -> Result<Option<Publishing<'_>>, StoreError> {
        let is_held = self.publishing.load(Ordering::SeqCst) > 0;
        if is_held { Ok(None) } else { self.publish().map(Some) }
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prevents deletions in the store until this value is dropped; see [`Store::publish`](crate::Store::publish). Hold it for
/// milliseconds only: a collection waits for it, and other processes wait for the collection.
#[derive(Debug)]
pub struct Publishing<'s> {
    session: &'s Session,
    _gate: Gate,
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        self.session.publishing.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // If the file cannot be removed, the next collection removes it, because no process holds its lock.
        fs::remove_file(&self.path).ok();
    }
}

/// Sets the modification time of a file or directory to now. In a read-only store, the time stays unchanged.
pub(crate) fn touch(path: &Path) {
    if let Ok(file) = open_regular(path, Links::Refuse) {
        drop(file.set_modified(SystemTime::now()));
    } else if let Ok(directory) = open_directory(CWD, path) {
        drop(File::from(directory).set_modified(SystemTime::now()));
    }
}

/// Returns a unique name for a session.
fn name(began: SystemTime) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (pid, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let nanos = began.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{nanos}-{pid}-{number}")
}

/// The sessions of all running processes.
#[derive(Debug, Default, Clone)]
pub(crate) struct Living {
    /// The start of the oldest session, minus [`SKEW`]. `None` if there is no session.
    pub(crate) since: Option<SystemTime>,
    /// The blobs that the sessions have used.
    pub(crate) blobs: HashSet<Digest>,
    /// The files of sessions that have ended.
    pub(crate) ended: Vec<PathBuf>,
}

impl Living {
    /// Reads the sessions of a store.
    pub(crate) fn read(root: &Path) -> Result<Self, StoreError> {
        let mut living = Self::default();
        let directory = root.join(DIRECTORY);
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(living),
            entries => entries.context("read", &directory)?,
        };
        for entry in entries {
            let path = entry.context("read", &directory)?.path();
            living.add(&path)?;
        }
        Ok(living)
    }

    fn add(&mut self, path: &Path) -> Result<(), StoreError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let nanos = name.split_once('-').and_then(|(nanos, _)| nanos.parse().ok());
        let Some(began) = nanos.map(Duration::from_nanos) else { return Ok(()) };
        // The session may have ended in the meantime. An entry that is not a regular file is no session.
        let Ok(Some(file)) = open_existing(path) else { return Ok(()) };
        if file.try_lock().is_ok() {
            self.ended.push(path.to_owned());
            return Ok(());
        }
        let began = (UNIX_EPOCH + began).checked_sub(SKEW).unwrap_or(UNIX_EPOCH);
        self.since = Some(self.since.map_or(began, |since| since.min(began)));
        let bytes = read_open_prefix(&file, MAX_BYTES).context("read", path)?;
        self.blobs.extend(bytes.as_chunks().0.iter().copied().map(Digest::from_bytes));
        Ok(())
    }

    /// Returns whether the oldest session had already begun at `time`. Also returns true if the clock was set back since that
    /// session began.
    pub(crate) fn covers(&self, time: SystemTime, now: SystemTime) -> bool {
        self.since.is_some_and(|since| since <= time || now < since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    #[test]
    fn a_session_lives_as_long_as_its_store_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let store = Store::open(root).unwrap();
        let used = Digest::of(b"absent");
        assert!(store.open_blob(&used).is_err());
        let now = SystemTime::now();
        let living = Living::read(root).unwrap();
        assert!(living.blobs.contains(&used) && living.covers(now, now));
        assert!(!living.covers(now - Duration::from_secs(60), now));
        assert!(living.covers(now - Duration::from_secs(60), UNIX_EPOCH), "the clock was set back");
        drop(store);
        let ended = Living::read(root).unwrap();
        assert!(ended.since.is_none() && ended.blobs.is_empty() && ended.ended.is_empty());
    }

    #[test]
    fn a_session_that_was_killed_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let path = directory.path().join("sessions/1700000000000000000-1-0");
        fs::write(&path, [7; 40]).unwrap();
        fs::write(directory.path().join("sessions/foreign"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("sessions/1-1-1")).unwrap();
        let living = Living::read(directory.path()).unwrap();
        assert_eq!(living.ended, [path]);
        assert!(living.blobs.is_empty());
        drop(store);
    }
}
