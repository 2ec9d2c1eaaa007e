//! Locks of actions: of several builders that need the result of one action, one makes it.

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
    /// Its lock is what counts; the name only leads to it.
    _file: File,
    /// The paths of the locks that the store it is of holds.
    held: Arc<Mutex<HashSet<PathBuf>>>,
}

/// What an open store knows of the locks of actions.
pub(crate) struct Waiting {
    /// Says that another process is waited for.
    tell: Box<dyn Fn() + Send + Sync>,
    reported: Once,
    held: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Waiting {
    /// Calls a function the first time that another process is waited for.
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self { tell: Box::new(tell), reported: Once::new(), held: Arc::default() }
    }

    /// Says that another process is waited for, unless it was said, or it is this one that holds the lock.
    fn for_other(&self, path: &Path) {
        let is_own = self.held.lock().unwrap_or_else(PoisonError::into_inner).contains(path);
        if !is_own {
            self.say();
        }
    }

    /// Says that another process is waited for, unless it was said.
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
    /// Takes the lock of an action, and waits as long as somebody else has it, here or in another process. What the action
    /// makes may be in the store then. That another process is waited for is said once, as in [`Store::open_waiting`].
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

    /// Takes the lock of an action as [`Self::lock_action`] does, and waits for so long at most; returns `None` then.
    ///
    /// # Errors
    /// As [`Self::lock_action`].
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

/// Opens the file of a lock, and creates it if necessary; `None` if its holder removed it in between. It is opened for writing:
/// NFS gives an exclusive lock for no other.
fn open(path: &Path) -> Result<Option<File>, StoreError> {
    // Others may not open it: who may read it can lock it.
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => return Ok(Some(file)),
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).context("make", path);
        }
        Err(_) => {}
    }
    // A link at its place is refused here.
    if open_existing(path)?.is_none() {
        return Ok(None);
    }
    match File::options().write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.context("open", path).map(Some),
    }
}

/// Returns whether the file still has this name. The lock of a file that its holder has removed keeps nobody out who comes
/// later.
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
        // Before the lock is released: whoever takes it then finds that its file has no name, and begins again. A file that
        // cannot be removed hinders nobody.
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
        // Another store is what another process has.
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
        // Its file is there, and nobody has the lock.
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
