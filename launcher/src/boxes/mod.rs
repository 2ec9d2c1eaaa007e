//! The boxes that this user has started: the record, the lock and the logs of each.
//!
//! ```text
//! <state>/boxes/                   0700
//! <state>/boxes/.lock              locked while a record is created, removed or swept
//! <state>/boxes/.locks/NAME        locked by the supervisor; removed once the record has the end of the box
//! <state>/boxes/.starts           how many boxes were started
//! <state>/boxes/.updates/NAME      locked by the update of the box
//! <state>/boxes/NAME/record.json   the state of the box
//! <state>/boxes/.refused/NAME      the digest of a box that did not become ready in place of this one
//! <state>/boxes/NAME/agent.log     output of the agent; business.log: of the business application's main program
//! <state>/boxes/NAME/result.json   the result of the task
//! <state>/boxes/NAME/network.log   decisions of the box's filter, and failed connections to sockets of the host
//! <state>/boxes/NAME/events.log    events that init reports
//! <state>/boxes/NAME/atif.log      trajectories of the agent
//! <state>/boxes/NAME/box/          the documents of a box that can be started again: a thin directory of its store
//! ```
//!
//! There is no daemon. A supervisor that was killed leaves a lock file that no process has locked
//! ([flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html)). The next command that reads the records finds that
//! file, records the end of the box, and removes the run's directory and sockets.
//!
//! `NAME/disk` is the disk of a box that can be started again ([`crate::mounts::roots_disk`]). It is only removed with the box.

pub mod all_users;
mod error;
mod events;
mod policy;
mod record;
mod refused;
mod rename;
mod resume;
mod run_log;
mod snapshot;
mod startable;
mod starts;
pub mod task;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use box_contract::plan::MAX_PLAN;
use box_contract::task::{MAX_RESULT, RESULT};
use box_contract::{ComponentName, LogsPlan};
use host_fs::OsError;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, read_file};

use crate::host::state_dir::{self, MAX_NAME, RECORD, absent, names, private_file};
use crate::mounts::roots_disk;
use crate::project::name_of;
use vmm::runtime_dir;

pub use crate::host::state_dir::{ENTRY_NAME_FORM, check_owner, is_entry_name};
pub use crate::streams::log::since_epoch;
pub use crate::streams::log::{LogReader, Logged, Logs};
pub use error::RecordError;
pub use events::{BoxEvent, EventKind, RecordWatch};
pub use policy::{CommandPolicy, CommandSandbox, DeniedAccess, DeniedKind};
pub use record::{Record, Restarted, State, StoppedBy, Updated};
pub use rename::Updating;
pub use run_log::{Happened, KeptTrajectory, RunEntry, RunLog};
pub use snapshot::{Snapshot, SnapshotError, Snapshots};

/// The directory of the records in the state directory.
const NAME: &str = "boxes";
/// The directory of the locks of boxes that have not ended. A sweep checks only these.
const LOCKS: &str = ".locks";
/// How many records of ended boxes are kept.
pub const MAX_ENDED: usize = 100;
/// The greatest size of a record, which contains a part of the plan, in bytes.
const MAX_RECORD: u64 = (1 << 20) + MAX_PLAN;
/// The shortest time between two writes of a record for changes by its guest.
const NOTES: Duration = Duration::from_secs(1);
/// How many random names [`Boxes::create`] tries.
const TRIES: usize = 64;

/// The records in a state directory.
#[derive(Debug, Clone)]
pub struct Boxes {
    directory: PathBuf,
}

impl Boxes {
    /// Uses the records in `<state>/boxes`, which is created with the first record.
    pub fn new(state: &Path) -> Self {
        Self { directory: state.join(NAME) }
    }

    /// Creates the record of a box that is about to start. Without `name`, the box gets a name that begins with the
    /// name in `record`, for example `reviewer-3f2a`. Also records the end of boxes whose supervisor was killed, and
    /// removes the oldest records of ended boxes beyond [`MAX_ENDED`].
    ///
    /// # Errors
    /// [`RecordError::NameTaken`], [`RecordError::BadName`], or errors of the operating system.
    pub fn create(&self, name: Option<&str>, record: Record) -> Result<Entry, RecordError> {
        if let Some(name) = name.filter(|it| !is_entry_name(it)) {
            return Err(RecordError::BadName(name.to_owned()));
        }
        state_dir::make(&self.directory.join(LOCKS))?;
        let _guard = self.lock()?;
        self.sweep()?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => self.free_name(&record.name)?,
        };
        let directory = self.directory.join(&name);
        if !self.is_spent(&name)? {
            return Err(RecordError::NameTaken(name));
        }
        // Remove what an interrupted removal or a failed start has left.
        remove(&directory, None)?;
        let entry = Entry::begin(directory, self.lock_of(&name), Record { name, ..record })?;
        starts::count(&self.directory);
        self.prune();
        Ok(entry)
    }

    /// Returns all records, the newest first.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn all(&self) -> Result<Vec<Record>, OsError> {
        if !self.is_absent()? {
            self.sweep_alone()?;
        }
        self.records()
    }

    /// Returns all records without a sweep, the newest first. A box whose supervisor was killed may still seem to run.
    fn records(&self) -> Result<Vec<Record>, OsError> {
        if self.is_absent()? {
            return Ok(Vec::new());
        }
        // Skip a record that cannot be read, such as another user's, because the others are still useful.
        let record = |name: &String| self.record(name).ok().flatten();
        let mut records: Vec<_> = names(&self.directory)?.iter().filter_map(record).collect();
        records.sort_by_key(|record: &Record| std::cmp::Reverse(record.created_ms));
        Ok(records)
    }

    /// Returns the names of boxes whose records cannot be read, for example because an incompatible version has written them.
    /// [`Self::remove`] removes such a box.
    ///
    /// # Errors
    /// If the directory of the records cannot be read.
    pub fn unreadable(&self) -> Result<Vec<String>, OsError> {
        if self.is_absent()? {
            return Ok(Vec::new());
        }
        let is_unreadable = |name: &String| {
            let is_readable = self.record(name).is_ok_and(|it| it.is_some());
            // The record of a box that is about to start may not exist yet.
            !is_readable && self.has_record(name)
        };
        Ok(names(&self.directory)?.into_iter().filter(is_unreadable).collect())
    }

    /// Returns whether a box has a record, even one that cannot be read.
    fn has_record(&self, name: &str) -> bool {
        self.directory.join(name).join(RECORD).exists()
    }

    /// Returns a reader of the log of a box's filter, at the beginning of the log.
    pub fn network_log(&self, name: &str) -> LogReader {
        LogReader::of_network(&self.directory.join(name))
    }

    /// Returns the result of a box's task. Empty if the agent has written no result.
    ///
    /// # Errors
    /// If the result cannot be read.
    pub fn result(&self, name: &str) -> Result<Vec<u8>, OsError> {
        let path = self.directory.join(name).join(RESULT);
        match read_file(&path, Links::Refuse, MAX_RESULT as u64) {
            Err(error) if error.is_absent() => Ok(Vec::new()),
            read => read.map_err(|error| OsError::file("read", &path)(error.into())),
        }
    }

    /// Returns the record of the box with this name.
    ///
    /// # Errors
    /// [`RecordError::NoBox`], or errors of the operating system.
    pub fn find(&self, name: &str) -> Result<Record, RecordError> {
        let none = || RecordError::NoBox(name.to_owned());
        if !is_entry_name(name) || self.is_absent()? {
            return Err(none());
        }
        self.sweep_alone()?;
        self.record(name)?.ok_or_else(none)
    }

    /// Returns the environment whose project is `directory`, a path without links, or a directory above it. Of several, the nearest.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn environment_around(&self, directory: &Path) -> Result<Option<Record>, RecordError> {
        if self.is_absent()? {
            return Ok(None);
        }
        self.sweep_alone()?;
        for project in directory.ancestors() {
            let record = self.record(&name_of(project))?;
            if let Some(record) = record.filter(|it| it.project.as_deref() == Some(project)) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Removes the record, the logs and the disk of a box that has ended, even if its record cannot be read.
    ///
    /// # Errors
    /// [`RecordError::StillRunning`], [`RecordError::NoBox`], or errors of the operating system.
    pub fn remove(&self, name: &str) -> Result<(), RecordError> {
        let (found, directory) = (self.find(name), self.directory.join(name));
        let has_files = || self.has_record(name) || roots_disk::is_kept_in(&directory);
        if !is_entry_name(name) || !has_files() {
            found?;
        }
        let _guard = self.lock()?;
        if self.lock_of(name).exists() {
            return Err(RecordError::StillRunning(name.to_owned()));
        }
        Ok(remove(&directory, None)?)
    }

    /// Returns a reader of the log of a component's main program.
    pub fn log(&self, name: &str, component: ComponentName) -> LogReader {
        LogReader::new(&self.directory.join(name), component)
    }

    /// Returns a reader that merges all logs of a run.
    pub fn run_log(&self, name: &str) -> RunLog {
        RunLog::new(&self.directory.join(name))
    }

    /// Returns whether the directory of the records is absent, as before the first start of a box.
    fn is_absent(&self) -> Result<bool, OsError> {
        let exists = self.directory.try_exists();
        exists.map(|it| !it).map_err(OsError::file("read", &self.directory))
    }

    /// Returns the path of the lock of a box.
    fn lock_of(&self, name: &str) -> PathBuf {
        self.directory.join(LOCKS).join(name)
    }

    /// Locks the directory of the records until the result is dropped, so that other commands do not create or remove
    /// records.
    fn lock(&self) -> Result<File, OsError> {
        state_dir::lock(&self.directory)
    }

    fn sweep_alone(&self) -> Result<(), OsError> {
        let _guard = self.lock()?;
        self.sweep()
    }

    /// Records the end of boxes whose supervisor was killed, and removes what their runs have left. The caller has
    /// locked the directory of the records.
    fn sweep(&self) -> Result<(), OsError> {
        for name in names(&self.directory.join(LOCKS))? {
            // Ignore an error about one box, so that the other boxes can be used.
            drop(self.sweep_one(&name));
        }
        Ok(())
    }

    fn sweep_one(&self, name: &str) -> Result<(), OsError> {
        let path = self.lock_of(name);
        match File::open(&path) {
            Ok(lock) if is_free(&lock, &path) => self.bury(name),
            _ => Ok(()),
        }
    }

    /// Records the end of a box whose supervisor was killed.
    fn bury(&self, name: &str) -> Result<(), OsError> {
        let (directory, lock) = (&self.directory.join(name), &self.lock_of(name));
        let Some(mut record) = self.record(name)? else {
            // A record that a crash of the host has cut off, or a later version has written, is no reason to lose the disk.
            return match roots_disk::is_kept_in(directory) {
                true => absent(lock, |path| fs::remove_file(path)),
                false => remove(directory, Some(lock)),
            };
        };
        if record.state == State::Ended {
            // The supervisor was killed before it could remove its lock.
            return absent(lock, |path| fs::remove_file(path));
        }
        runtime_dir::remove_left(&record.runtime);
        if let Some(socket) = &record.agent_socket {
            runtime_dir::remove_socket(socket);
        }
        if record.remove {
            return remove(directory, Some(lock));
        }
        record.lose();
        write(directory, &record)?;
        absent(lock, |path| fs::remove_file(path))
    }

    /// Removes the oldest records of ended boxes beyond [`MAX_ENDED`]. Records of environments and of boxes with a disk stay. The
    /// caller has locked the directory of the records.
    fn prune(&self) {
        let names = names(&self.directory).unwrap_or_default();
        if names.len() <= MAX_ENDED {
            return;
        }
        let age = |name: &String| {
            let directory = self.directory.join(name);
            let changed = fs::metadata(directory.join(RECORD)).and_then(|it| it.modified());
            let has_ended = !self.lock_of(name).exists() && !roots_disk::is_kept_in(&directory);
            let is_kept =
                || self.record(name).is_ok_and(|it| it.is_some_and(|it| it.project.is_some()));
            (has_ended && !is_kept())
                .then(|| (changed.unwrap_or(SystemTime::UNIX_EPOCH), directory))
        };
        let mut ended: Vec<_> = names.iter().filter_map(age).collect();
        ended.sort();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        // The next start tries again to remove a record that cannot be removed.
        ended[..surplus].iter().for_each(|(_, directory)| drop(remove(directory, None)));
    }

    /// Reads a record. `None` if the record is absent or malformed, for example incomplete after a crash of the host.
    fn record(&self, name: &str) -> Result<Option<Record>, OsError> {
        let path = self.directory.join(name).join(RECORD);
        match read_file(&path, Links::Refuse, MAX_RECORD) {
            Err(error) if error.is_absent() => Ok(None),
            read => {
                let bytes = read.map_err(|error| OsError::file("read", &path)(error.into()))?;
                // Its directory, which another box may have had before, has the name of a box.
                let record = serde_json::from_slice::<Record>(&bytes).ok();
                Ok(record.map(|it| Record { name: name.to_owned(), ..it }))
            }
        }
    }

    /// Returns a free name that begins with `base`.
    ///
    /// # Errors
    /// [`RecordError::NameTaken`], or errors of the operating system.
    pub fn free_name(&self, base: &str) -> Result<String, RecordError> {
        let base = if is_entry_name(base) { &base[..base.len().min(MAX_NAME - 5)] } else { "box" };
        for _ in 0..TRIES {
            let random = getrandom::u32().map_err(OsError::system("get random bytes"))?;
            let name = format!("{base}-{:04x}", random >> 16);
            if !self.directory.join(&name).exists() {
                return Ok(name);
            }
        }
        Err(RecordError::NameTaken(base.to_owned()))
    }
}

/// The record of the box that this process supervises. Until this value is dropped, the box's file in `.locks` is
/// locked, which shows other commands that the box runs.
#[derive(Debug)]
pub struct Entry {
    directory: PathBuf,
    /// The path of the locked file.
    lock: PathBuf,
    /// The current record, which the file may not have yet.
    pub record: Record,
    /// When the record was last written.
    written: Instant,
    /// Whether the record has changed since it was written.
    is_behind: bool,
    /// The locked file.
    locked: File,
}

impl Entry {
    /// Creates the lock first, and then the record. So a lock file without a lock always means that its process was
    /// killed, even in the middle of this function.
    fn begin(directory: PathBuf, lock: PathBuf, record: Record) -> Result<Self, OsError> {
        let locked = private_file(&lock).map_err(OsError::file("make", &lock))?;
        locked.lock().map_err(OsError::file("lock", &lock))?;
        // A box that is started again has a directory.
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(OsError::file("make", &directory))?;
        write(&directory, &record)?;
        let (written, is_behind) = (Instant::now(), false);
        Ok(Self { directory, lock, record, written, is_behind, locked })
    }

    /// Creates the logs of the box, as its plan declares them.
    ///
    /// # Errors
    /// If a log cannot be created.
    pub fn logs(&self, declared: Option<LogsPlan>) -> Result<Logs, OsError> {
        Logs::create(&self.directory, declared.unwrap_or_default())
    }

    /// Changes the record, and writes it.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn update(&mut self, change: impl FnOnce(&mut Record)) -> Result<(), OsError> {
        change(&mut self.record);
        self.write(Instant::now())
    }

    /// Changes the record because of a message from the guest. The record is written now or, if it was written less
    /// than a second ago, by [`Self::write_due`]. If the write fails, the file lacks the change until the next write.
    pub(crate) fn note(&mut self, change: impl FnOnce(&mut Record), now: Instant) {
        change(&mut self.record);
        self.is_behind = true;
        self.write_due(now);
    }

    /// Returns when to call [`Self::write_due`], if a change has not been written.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.is_behind.then(|| self.written + NOTES)
    }

    /// Writes the record if a change is due to be written: see [`Self::due`].
    pub(crate) fn write_due(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            // After a failure, the next change or the end of the box writes the record again.
            drop(self.write(now));
        }
    }

    fn write(&mut self, now: Instant) -> Result<(), OsError> {
        (self.written, self.is_behind) = (now, false);
        write(&self.directory, &self.record)
    }

    /// Stores the result of the box's task.
    ///
    /// # Errors
    /// If the result cannot be written.
    pub fn keep_result(&self, result: &[u8]) -> Result<(), OsError> {
        write_file(&self.directory.join(RESULT), result)
    }

    /// Records that the box has ended, and will be started again. The record stays locked. The logs of the run become the
    /// older files of the logs of the next one. An error is ignored, because the next start reports the same error.
    pub fn rest(&mut self, status: Option<u8>, restarted: Restarted) {
        drop(Logs::set_aside(&self.directory));
        drop(self.update(|record| record.rest(status, restarted)));
    }

    /// Records the end of the box. Removes the record instead if the box was started with `--rm`.
    ///
    /// # Errors
    /// If the record cannot be written or removed.
    pub fn end(mut self, status: Option<u8>, error: Option<String>) -> Result<(), OsError> {
        if self.record.remove {
            return remove(&self.directory, Some(&self.lock));
        }
        self.record.end(status, error);
        write(&self.directory, &self.record)?;
        absent(&self.lock, |path| fs::remove_file(path))
    }
}

/// Locks `lock`, and returns whether that succeeded and `lock` is still the file at `path`.
fn is_free(lock: &File, path: &Path) -> bool {
    lock.try_lock().is_ok() && is_at(lock, path)
}

/// Returns whether `file` is the file at `path`, in the same file system.
fn is_at(file: &File, path: &Path) -> bool {
    let is_same = || Some(file.metadata().ok()?.ino() == fs::metadata(path).ok()?.ino());
    is_same() == Some(true)
}

/// Replaces a record, without flushing it to the disk: after a crash of the host, the box has ended anyway.
fn write(directory: &Path, record: &Record) -> Result<(), OsError> {
    let path = directory.join(RECORD);
    let text = serde_json::to_vec(record).map_err(OsError::system("write a record"))?;
    write_file(&path, &text)
}

fn write_file(path: &Path, text: &[u8]) -> Result<(), OsError> {
    let put = || -> io::Result<()> {
        let draft = FileDraft::beside(path, 0o600)?;
        draft.file().write_all(text)?;
        draft.finish_over_unflushed(path)
    };
    put().map_err(OsError::file("write", path))
}

/// Removes the record first, because a box without a record does not exist, then the other files, and finally the lock.
fn remove(directory: &Path, lock: Option<&Path>) -> Result<(), OsError> {
    absent(&directory.join(RECORD), |path| fs::remove_file(path))?;
    absent(directory, |path| fs::remove_dir_all(path))?;
    lock.map_or(Ok(()), |lock| absent(lock, |path| fs::remove_file(path)))
}

#[cfg(test)]
mod tests;
