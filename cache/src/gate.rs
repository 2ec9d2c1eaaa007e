//! The gate: a process that begins to use an object of the store holds the gate shared for a moment, and a process that deletes
//! objects holds it exclusively.
//!
//! A process that takes the gate first takes the lock `turn`, which a waiting collection holds. So a process that wants the gate
//! shared later waits behind the collection, and a series of builds cannot keep a collection out. The gate and `turn` are
//! [flock(2)](https://man7.org/linux/man-pages/man2/flock.2.html) locks.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host_fs::read::{Links, open_regular};

use crate::StoreError;
use crate::error::IoContext;
use crate::store::UNSEEN;

/// The pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(5);
/// The lock file of the gate, and the lock file that is locked before it.
pub(crate) const FILES: [&str; 2] = ["gate", "turn"];

/// The gate of a store, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Gate {
    /// The file whose lock is the gate.
    pub(crate) file: File,
    /// The locked file `turn`. Only an exclusive holder keeps it.
    _turn: Option<File>,
}

impl Gate {
    /// Takes the gate shared. Waits while another process deletes.
    pub(crate) fn share(root: &Path) -> Result<Self, StoreError> {
        let [file, turn] = open_both(root)?;
        let passed = turn.lock_shared().and_then(|()| file.lock_shared());
        passed.context("lock", &root.join(FILES[0]))?;
        Ok(Self { file, _turn: None })
    }

    /// Takes the gate shared within `time`. Returns `None` if its files do not exist, and does not create them.
    pub(crate) fn share_within(root: &Path, time: Duration) -> Result<Option<Self>, StoreError> {
        let [Some(file), Some(turn)] = existing(root)? else { return Ok(None) };
        let started = Instant::now();
        for lock in [&turn, &file] {
            let left = time.saturating_sub(started.elapsed());
            if !lock_within(|| lock.try_lock_shared(), left).context("lock", root)? {
                return Err(StoreError::Busy(root.to_owned()));
            }
        }
        drop(turn);
        Ok(Some(Self { file, _turn: None }))
    }

    /// Takes the gate shared, if its files exist. Calls `waiting` if this takes longer than [`UNSEEN`], and waits without end: the
    /// kernel gives the lock to those who wait for it, and not only to those who come at the right moment.
    pub(crate) fn share_waiting(
        root: &Path,
        waiting: impl FnOnce(),
    ) -> Result<Option<Self>, StoreError> {
        match Self::share_within(root, UNSEEN) {
            Err(StoreError::Busy(_)) => {
                waiting();
                Self::share(root).map(Some)
            }
            taken => taken,
        }
    }

    /// Takes the gate exclusively, as [`Self::share_waiting`] takes it shared.
    pub(crate) fn alone_waiting(root: &Path, waiting: impl FnOnce()) -> Result<Self, StoreError> {
        match Self::alone_within(root, UNSEEN) {
            Err(StoreError::Busy(_)) => {}
            taken => return taken,
        }
        waiting();
        let [file, turn] = open_both(root)?;
        turn.lock().and_then(|()| file.lock()).context("lock", &root.join(FILES[0]))?;
        Ok(Self { file, _turn: Some(turn) })
    }

    /// Takes the gate exclusively within `time`.
    pub(crate) fn alone_within(root: &Path, time: Duration) -> Result<Self, StoreError> {
        let [file, turn] = open_both(root)?;
        let started = Instant::now();
        for lock in [&turn, &file] {
            let left = time.saturating_sub(started.elapsed());
            if !lock_within(|| lock.try_lock(), left).context("lock", root)? {
                return Err(StoreError::Busy(root.to_owned()));
            }
        }
        Ok(Self { file, _turn: Some(turn) })
    }
}

/// Creates the lock files if they do not exist.
pub(crate) fn make(root: &Path) -> Result<(), StoreError> {
    open_both(root).map(drop)
}

fn open_both(root: &Path) -> Result<[File; 2], StoreError> {
    let [file, turn] = FILES.map(|name| open_lock(&root.join(name)));
    Ok([file?, turn?])
}

fn existing(root: &Path) -> Result<[Option<File>; 2], StoreError> {
    let [file, turn] = FILES.map(|name| crate::store::open_existing(&root.join(name)));
    Ok([file?, turn?])
}

/// Opens a lock file, and creates it if necessary. A symbolic link is refused. The mode of the file keeps other users out,
/// because read access is enough to lock a file. The file is opened for writing because NFS requires that for an exclusive lock.
pub(crate) fn open_lock(path: &Path) -> Result<File, StoreError> {
    let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(path);
    let opened = match made {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Refuses a link. The `open` below would follow it.
            let known = open_regular(path, Links::Refuse).map_err(io::Error::from);
            known.and_then(|known| match File::options().read(true).write(true).open(path) {
                Ok(file) if is_same(&file, &known)? => Ok(file),
                Ok(_) | Err(_) => Ok(known),
            })
        }
        made => made,
    };
    opened.context("open", path)
}

fn is_same(a: &File, b: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let [a, b] = [a.metadata()?, b.metadata()?];
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Tries to take a lock for at most `time`. Returns whether it was taken.
pub(crate) fn lock_within(
    take: impl Fn() -> Result<(), TryLockError>,
    time: Duration,
) -> io::Result<bool> {
    let start = Instant::now();
    loop {
        match take() {
            Err(TryLockError::WouldBlock) if start.elapsed() < time => sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
            result => return result.map(|()| true).map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn nobody_holds_it_beside_one_who_deletes() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert!(Gate::share_within(root, LONG).unwrap().is_none(), "nothing is made");
        let shared = (Gate::share(root).unwrap(), Gate::share(root).unwrap());
        let busy = Gate::alone_within(root, Duration::ZERO).unwrap_err();
        assert!(matches!(busy, StoreError::Busy(_)));
        drop(shared);
        let alone = Gate::alone_within(root, Duration::ZERO).unwrap();
        let busy = Gate::share_within(root, Duration::ZERO).unwrap_err();
        assert!(matches!(busy, StoreError::Busy(_)));
        drop(alone);
        assert!(Gate::share_within(root, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn who_waits_is_told_once_and_gets_the_gate_in_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        assert!(
            Gate::share_waiting(root, || unreachable!("nothing to wait for")).unwrap().is_none()
        );
        for is_reader in [true, false] {
            let held = Gate::alone_within(root, LONG).unwrap();
            let (told, is_told) = std::sync::mpsc::channel();
            thread::scope(|scope| {
                let waiting = move || told.send(()).unwrap();
                scope.spawn(move || match is_reader {
                    true => assert!(Gate::share_waiting(root, waiting).unwrap().is_some()),
                    false => drop(Gate::alone_waiting(root, waiting).unwrap()),
                });
                is_told.recv().unwrap();
                drop(held);
            });
        }
        drop(Gate::alone_waiting(root, || unreachable!("nobody holds it")).unwrap());
    }

    /// Four threads hold the gate shared. Each one takes it again before it releases it, so that the gate is never free.
    #[test]
    fn holders_that_follow_each_other_without_a_gap_keep_nobody_out() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = Gate::share(root).unwrap();
                    while !is_done.load(Ordering::Relaxed) {
                        sleep(Duration::from_millis(3));
                        // Does not wait for the gate while it holds it, because a waiting collection waits for this thread.
                        held = match Gate::share_within(root, Duration::ZERO) {
                            Ok(Some(next)) => next,
                            _ => {
                                drop(held);
                                Gate::share(root).unwrap()
                            }
                        };
                    }
                    drop(held);
                });
            }
            sleep(Duration::from_millis(20));
            for _ in 0..20 {
                drop(Gate::alone_within(root, LONG).unwrap());
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, directory.path().join("gate")).unwrap();
        assert!(matches!(Gate::share(directory.path()), Err(StoreError::File(_))));
    }
}
