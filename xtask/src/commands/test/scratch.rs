//! The directory for the temporary files of a run of the tests. If a test is killed before it has removed its files, the next run
//! removes them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;
use tempfile::TempDir;
use testbed::{KitError, Result};

/// The start of the directory's name.
const PREFIX: &str = "boxbuild-checks-";
/// The file that the run keeps locked.
const LOCK: &str = "lock";
/// The free bytes that the tests need: 5.4 GiB for the five agents of examples/agents, and room for the tests beside them.
const NEEDED: u64 = 8 << 30;

/// The directory, which is removed with its content when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    directory: TempDir,
    /// No other run removes the directory while this is locked.
    _lock: File,
}

impl Scratch {
    /// Makes the directory, and removes the directories of runs that were killed.
    ///
    /// # Errors
    /// The file system has no room for the temporary files, or cannot be written.
    pub(super) fn begin() -> Result<Self> {
        Self::begin_in(&std::env::temp_dir())
    }

    fn begin_in(parent: &Path) -> Result<Self> {
        left_behind(parent).for_each(|path| drop(fs::remove_dir_all(path)));
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
        let directory = directory.map_err(KitError::file("make", parent))?;
        let path = directory.path().join(LOCK);
        let lock = File::create(&path).and_then(|file| file.lock().map(|()| file));
        let this = Self { _lock: lock.map_err(KitError::file("lock", &path))?, directory };
        this.check_room(NEEDED)?;
        Ok(this)
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Fails if fewer than `needed` bytes are free.
    fn check_room(&self, needed: u64) -> Result<()> {
        let path = self.path();
        let free = statvfs(path).map(|it| it.f_bavail.saturating_mul(it.f_frsize));
        let free =
            free.map_err(|error| KitError::file("read the free space of", path)(error.into()))?;
        if free >= needed {
            return Ok(());
        }
        let gib = |bytes: u64| format!("{}.{}", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30);
        Err(KitError::Missing {
            program: format!("{} of {} GiB of disk space", gib(needed - free), gib(needed)),
            remedy: format!(
                "free it in {}, or set TMPDIR to a directory on another disk",
                path.parent().unwrap_or(path).display()
            ),
        })
    }
}

/// Returns the directories of runs that have ended without removing theirs.
fn left_behind(parent: &Path) -> impl Iterator<Item = PathBuf> {
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .filter(named)
        .filter(|path| File::open(path.join(LOCK)).is_ok_and(|it| it.try_lock().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_killed_run_has_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let other = parent.path().join("boxbuild-checks-notes");
        fs::create_dir(&other).unwrap();
        let running = Scratch::begin_in(parent.path()).unwrap();
        let killed = Scratch::begin_in(parent.path()).unwrap();
        let left = killed.path().to_owned();
        let Scratch { directory, _lock } = killed;
        drop((directory.keep(), _lock));
        let next = Scratch::begin_in(parent.path()).unwrap();
        assert!(!left.exists() && running.path().exists() && other.exists());
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }

    #[test]
    fn a_disk_without_room_is_named_before_the_first_test() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::begin_in(parent.path()).unwrap();
        let error = scratch.check_room(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("GiB of disk space is missing; free it in"), "{error}");
        assert!(error.contains(parent.path().to_str().unwrap()), "{error}");
    }
}
