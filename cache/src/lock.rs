//! Locks of actions: one of several builders that need the result of an action runs it.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use crate::error::IoContext;
use crate::gate::lock_within;
use crate::store::{UNSEEN, open_existing};
use crate::{ActionKey, Store, StoreError};

/// The lock of an action, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct ActionLock {
    path: PathBuf,
    /// The locked file. Other processes find it at `path`.
    _file: File,
    /// The paths of all locks that the same open store holds.
    held: Arc<Mutex<HashSet<PathBuf>>>,
}

/// Returns the text for a command that waits for another process.
pub fn waiting_text(root: &Path) -> String {
    format!("waiting for another process that uses the store {}", root.display())
}

/// Reports once that an open store waits for another process.
pub(crate) struct Waiting {
    /// Reports that the store waits for another process.
    tell: Box<dyn Fn() + Send + Sync>,
    reported: Once,
    /// The paths of all locks that this open store holds. A wait for one of them is not reported.
    held: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Waiting {
    /// Calls `tell` when the store waits for another process for the first time.
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { tell: Box::new(tell), reported: Once::new(), held: Arc::default() }
    }

    /// Reports that the store waits for another process, unless this process holds the lock or a wait was reported before.
    fn for_other(&self, path: &Path) {
        let is_own = self.held.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
        if !is_own {
            self.say();
        }
    }

    /// Reports that the store waits for another process, unless a wait was reported before.
    pub(crate) fn say(&self) {
        self.reported.call_once(|| (self.tell)());
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("held", &self.held).finish_non_exhaustive()
    }
}

impl Store {
    /// Takes the lock of an action. Waits while another thread or process holds it, which may record the result of the action
    /// in the meantime. Waiting for another process is reported once, as in [`Store::open_waiting`].
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`].
    pub fn lock_action(&self, key: &ActionKey) -> Result<ActionLock, StoreError> {
        loop {
            if let Some(lock) = self.lock_action_within(key, Duration::MAX)? {
                return Ok(lock);
            }
        }
    }

    /// Like [`Self::lock_action`], but waits for at most one second and `time`, and then returns `None`.
    ///
    /// # Errors
    /// The errors of [`Self::lock_action`].
    pub fn lock_action_within(
        &self,
        key: &ActionKey,
        time: Duration,
    ) -> Result<Option<ActionLock>, StoreError> {
        let path = self.root().join("locks").join(key.hex());
        loop {
            let Some(file) = open(&path).map_err(|error| error.within(self.root()))? else {
                continue;
            };
            if !lock_within(|| file.try_lock(), UNSEEN).context("lock", &path)? {
                self.waiting().for_other(&path);
                if time == Duration::MAX {
                    file.lock().context("lock", &path)?;
                } else if !lock_within(|| file.try_lock(), time).context("lock", &path)? {
                    return Ok(None);
                }
            }
            if is_at(&file, &path).context("examine", &path)? {
                let held = Arc::clone(&self.waiting().held);
                held.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
                return Ok(Some(ActionLock { path, _file: file, held }));
            }
        }
    }
}

/// Opens a lock file, and creates it if necessary. Returns `None` if its holder removed it in the meantime. The file is opened
/// for writing because NFS requires that for an exclusive lock.
fn open(path: &Path) -> Result<Option<File>, StoreError> {
    // Other users must not be able to open the lock file, because read access is enough to lock a file.
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => return Ok(Some(file)),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).context("make", path);
        }
        Err(_) => {}
    }
    // Refuses a symbolic link.
    if open_existing(path)?.is_none() {
        return Ok(None);
    }
    match File::options().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.context("open", path).map(Some),
    }
}

/// Returns whether `file` is still the file at `path`. A lock on a removed file does not exclude a process that creates the file
/// again.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let file = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (file.dev(), file.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Drop for ActionLock {
    fn drop(&mut self) {
        // Removed before the lock is released: a process that waits for this lock then finds that the file is removed, and starts
        // again. A file that cannot be removed does no harm.
        fs::remove_file(&self.path).ok();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::KeyHasher;

    fn store() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        (directory, store)
    }

    fn names(store: &Store) -> usize {
        fs::read_dir(store.root().join("locks")).unwrap().count()
    }

    #[test]
    fn one_at_a_time_has_the_lock_of_an_action() {
        let (_directory, store) = store();
        let key = KeyHasher::new("test", 1).finish();
        let (inside, rounds) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _lock = store.lock_action(&key).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at once");
                        std::thread::yield_now();
                        rounds.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!((rounds.into_inner(), names(&store)), (1600, 0));
    }

    #[test]
    fn who_waits_for_another_process_is_told_and_who_waits_for_this_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let reported = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&reported);
        let tell = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        let store = Store::open_waiting(directory.path(), tell).unwrap();
        let key = KeyHasher::new("test", 1).finish();
        let longer = UNSEEN + std::time::Duration::from_millis(300);
        let wait_for = |held: ActionLock| {
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| drop(store.lock_action(&key).unwrap()));
                std::thread::sleep(longer);
                drop(held);
                waiter.join().unwrap();
            });
        };
        wait_for(store.lock_action(&key).unwrap());
        assert_eq!(reported.load(Ordering::SeqCst), 0);
        // A second open store represents another process.
        let other = Store::open(directory.path()).unwrap();
        for _ in 0..2 {
            wait_for(other.lock_action(&key).unwrap());
            assert_eq!(reported.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn who_has_a_limit_does_not_wait_without_end() {
        let (_directory, store) = store();
        let key = KeyHasher::new("test", 1).finish();
        let held = store.lock_action(&key).unwrap();
        assert!(store.lock_action_within(&key, Duration::ZERO).unwrap().is_none());
        drop(held);
        assert!(store.lock_action_within(&key, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn the_lock_of_another_action_is_another_one() {
        let (_directory, store) = store();
        let [one, two] = [1, 2].map(|epoch| KeyHasher::new("test", epoch).finish());
        let held = (store.lock_action(&one).unwrap(), store.lock_action(&two).unwrap());
        assert_eq!(names(&store), 2);
        drop(held);
        assert_eq!(names(&store), 0);
    }

    #[test]
    fn a_killed_holder_hinders_nobody() {
        let (directory, store) = store();
        let key = KeyHasher::new("test", 1).finish();
        // The lock file exists, but no process holds its lock.
        fs::write(store.root().join("locks").join(key.hex()), "").unwrap();
        drop(store.lock_action(&key).unwrap());
        assert_eq!(names(&store), 0);
        fs::write(store.root().join("locks").join(key.hex()), "").unwrap();
        drop(store);
        assert_eq!(names(&Store::open(directory.path()).unwrap()), 0, "the next one tidies up");
    }

    #[test]
    fn a_store_of_an_earlier_version_gets_the_directory() {
        let (directory, store) = store();
        let blob = store.put(b"content").unwrap();
        drop(store);
        fs::remove_dir(directory.path().join("locks")).unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.lock_action(&KeyHasher::new("test", 1).finish()).unwrap();
        assert_eq!(store.read(&blob).unwrap(), b"content");
    }
}
