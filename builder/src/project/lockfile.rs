//! The lock on the disk.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use box_image::manifest::FORMAT_EPOCH;
use boxfile_spec::{Diagnostics, Lock, Source, Sources, lock};

/// A lock and the file that it is, or will be, in.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
    /// What the file holds; nothing if there is none.
    pub lock: Option<Lock>,
}

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockFileError {
    /// The file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not UTF-8 text.
    #[error("{} is not UTF-8 text; run `boxbuild lock` to write it anew", .0.display())]
    NotText(PathBuf),
    /// It is no lock.
    #[error("{} is not a lock that can be used", .sources.as_slice()[0].name)]
    Malformed {
        /// Its text.
        sources: Sources,
        /// What is wrong with it.
        diagnostics: Diagnostics,
    },
    /// It is for boxes of another format.
    #[error(
        "{} is for boxes of format epoch {found}, and this boxbuild writes epoch {FORMAT_EPOCH}; \
         use the boxbuild that wrote it, or run `boxbuild lock` to write it anew",
        path.display()
    )]
    Epoch {
        /// The file.
        path: PathBuf,
        /// Its epoch.
        found: u32,
    },
}

impl LockFile {
    /// Reads a lock, if the file is there.
    ///
    /// # Errors
    /// [`LockFileError`].
    pub fn read(path: &Path) -> Result<Self, LockFileError> {
        let bytes = match super::read_bounded(path, lock::MAX_TEXT as u64 + 1) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), lock: None });
            }
            Err(source) => {
                return Err(LockFileError::Io { action: "read", path: path.to_owned(), source });
            }
        };
        let text = String::from_utf8(bytes).map_err(|_| LockFileError::NotText(path.to_owned()))?;
        let lock = Lock::parse(&text).map_err(|diagnostics| LockFileError::Malformed {
            sources: Sources::single(Source::new(path.display().to_string(), text)),
            diagnostics,
        })?;
        if lock.epoch() != FORMAT_EPOCH {
            return Err(LockFileError::Epoch { path: path.to_owned(), found: lock.epoch() });
        }
        Ok(Self { path: path.to_owned(), lock: Some(lock) })
    }

    /// Names a lock that is to be written anew, whatever the file holds.
    pub fn anew(path: &Path) -> Self {
        Self { path: path.to_owned(), lock: None }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file by a lock, as a whole or not at all; leaves it alone where it says the
    /// same already. Returns whether it was written.
    ///
    /// # Errors
    /// [`LockFileError::Io`].
    pub fn write(&self, lock: &Lock) -> Result<bool, LockFileError> {
        if self.lock.as_ref() == Some(lock) {
            return Ok(false);
        }
        let failed =
            |source| LockFileError::Io { action: "write", path: self.path.clone(), source };
        let directory = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".Boxfile.lock-")
            .tempfile_in(directory)
            .map_err(failed)?;
        file.write_all(lock.write().as_bytes()).map_err(failed)?;
        // A temporary file is for its owner alone; a lock is checked in.
        set_mode(file.as_file()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(true)
    }
}

fn set_mode(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_replaced_as_a_whole_and_only_when_it_differs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        let file = LockFile::read(&path).unwrap();
        assert_eq!(file.lock, None);
        let lock = Lock::new(FORMAT_EPOCH);
        assert!(file.write(&lock).unwrap());
        let again = LockFile::read(&path).unwrap();
        assert_eq!(again.lock.as_ref(), Some(&lock));
        assert!(!again.write(&lock).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let other = Lock::new(FORMAT_EPOCH + 1);
        assert!(again.write(&other).unwrap());
        assert!(matches!(LockFile::read(&path), Err(LockFileError::Epoch { .. })));
        fs::write(&path, "version =").unwrap();
        assert!(matches!(LockFile::read(&path), Err(LockFileError::Malformed { .. })));
    }
}
