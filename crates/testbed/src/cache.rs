//! The cache of the checks: what took long to make, by a digest of its inputs. All clones of the repository share it.
//!
//! ```text
//! ~/.cache/boxbuild-checks/boots/KEY             the result of a start of the virtual host
//! ~/.cache/boxbuild-checks/kernel/KEY/           the lean guest kernel
//! ~/.cache/boxbuild-checks/KIND/KEY/             other directories: images, and packages of pip and npm
//! ```

use std::fs::{self, File, FileTimes};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::prerequisites::lock;
use crate::{KitError, Result, Workspace};

/// The cache's directory, below the user's directory of caches.
const NAME: &str = "boxbuild-checks";
/// An entry that was not used for this long is removed.
const MAX_AGE: Duration = Duration::from_hours(14 * 24);
/// The maximum number of bytes of the entries that are files.
const MAX_BYTES: u64 = 4 << 30;

/// The cache of the checks.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

/// An entry of the cache, for [`Cache::prune`].
struct Entry {
    path: PathBuf,
    used: SystemTime,
    /// 0 for a directory.
    bytes: u64,
}

impl Cache {
    /// Returns the user's cache: `$XDG_CACHE_HOME/boxbuild-checks`, or else `~/.cache/boxbuild-checks`. If neither variable is
    /// usable, the cache is in the build output.
    pub fn of_user(workspace: &Workspace) -> Self {
        let of_user =
            host_fs::user_directory("XDG_CACHE_HOME", ".cache", |name| std::env::var_os(name));
        let root = of_user.unwrap_or_else(|| workspace.target("")).join(NAME);
        Self { root }
    }

    /// Returns the cache in the directory `root`.
    pub const fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the path of the entries of a kind.
    pub fn folder(&self, kind: &str) -> PathBuf {
        self.root.join(kind)
    }

    /// Returns the directory `KIND/KEY`, which `make` writes if it does not exist. The arguments of `make` are a directory for
    /// scratch files, and the path of the directory to make. A directory that a crash has left incomplete is never used.
    ///
    /// # Errors
    /// `make` fails, or the disk is full.
    pub(crate) fn made(
        &self,
        (kind, key): (&str, &str),
        make: impl FnOnce(&Path, &Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let folder = self.folder(kind);
        let made = folder.join(key);
        if !made.is_dir() {
            let _lock = lock(&folder)?;
            if !made.is_dir() {
                let scratch = tempfile::tempdir_in(&folder);
                let scratch = scratch.map_err(KitError::file("make", &folder))?;
                let draft = scratch.path().join("ready");
                make(scratch.path(), &draft)?;
                fs::rename(&draft, &made).map_err(KitError::file("rename", &draft))?;
            }
        }
        note_use(&made);
        Ok(made)
    }

    /// Removes the entries that were not used for two weeks, and the files that were not used longest if all files have more than
    /// 4 GiB.
    pub fn prune(&self) {
        let kinds = children(&self.root);
        let mut entries: Vec<_> =
            kinds.iter().flat_map(|kind| children(kind)).filter_map(Entry::of).collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        let mut bytes = 0;
        for entry in entries {
            bytes += entry.bytes;
            let old = entry.used.elapsed().is_ok_and(|age| age > MAX_AGE);
            if old || (entry.bytes > 0 && bytes > MAX_BYTES) {
                entry.remove();
            }
        }
    }
}

impl Entry {
    fn of(path: PathBuf) -> Option<Self> {
        let metadata = fs::symlink_metadata(&path).ok()?;
        let bytes = if metadata.is_dir() { 0 } else { metadata.len() };
        Some(Self { path, used: metadata.modified().ok()?, bytes })
    }

    /// Another process may remove it at the same time.
    fn remove(&self) {
        drop(if self.bytes == 0 && self.path.is_dir() {
            fs::remove_dir_all(&self.path)
        } else {
            fs::remove_file(&self.path)
        });
    }
}

/// Sets the time of the last use of an entry, which is its modification time.
pub(crate) fn note_use(entry: &Path) {
    let now = FileTimes::new().set_modified(SystemTime::now());
    // An entry of another user stays as it is.
    drop(File::open(entry).and_then(|file| file.set_times(now)));
}

/// Returns the paths of the entries of a directory.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_and_a_failure_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned());
        let failed = cache.made(("kind", "key"), |_, draft| {
            fs::create_dir(draft).unwrap();
            Err(KitError::malformed("it", "broken"))
        });
        assert!(failed.is_err() && !cache.folder("kind/key").exists());
        let make =
            |_: &Path, draft: &Path| fs::create_dir(draft).map_err(KitError::file("make", draft));
        assert_eq!(cache.made(("kind", "key"), make).unwrap(), cache.folder("kind/key"));
        let never = |_: &Path, _: &Path| unreachable!();
        assert_eq!(cache.made(("kind", "key"), never).unwrap(), cache.folder("kind/key"));
    }

    #[test]
    fn what_was_not_used_for_weeks_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().to_owned());
        for name in ["old", "new"] {
            fs::create_dir_all(cache.folder("images").join(name)).unwrap();
        }
        let old = File::open(cache.folder("images/old")).unwrap();
        old.set_modified(SystemTime::now() - 2 * MAX_AGE).unwrap();
        cache.prune();
        assert!(!cache.folder("images/old").exists() && cache.folder("images/new").exists());
    }
}
