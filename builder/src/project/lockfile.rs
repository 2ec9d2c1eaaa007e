//! The lock on the disk.

use std::io;
use std::path::{Path, PathBuf};

use box_image::manifest::FORMAT_EPOCH;
use boxfile_spec::{Diagnostics, Lock, Source, Sources, lock};
use host_fs::read::{Links, read_prefix};

/// A lock and the file that it is, or will be, in.
#[derive(Debug, Clone)]
pub struct LockFile {
    path: PathBuf,
    /// The file's bytes; nothing if there is none.
    bytes: Option<Vec<u8>>,
    /// Whether the file says it as it is to be said.
    whole: bool,
    /// What the file says; nothing if there is none.
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
    /// It is something else than a lock.
    #[error("{} is no lock, and is left as it is; move it away to have one written", .0.display())]
    Foreign(PathBuf),
    /// It is no longer what was read.
    #[error(
        "{} was written by another command meanwhile, and is left as it is; run this one again",
        .0.display()
    )]
    Changed(PathBuf),
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
        let Some(bytes) = read(path)? else {
            return Ok(Self { path: path.to_owned(), bytes: None, whole: true, lock: None });
        };
        let text = String::from_utf8(bytes.clone());
        let text = text.map_err(|_| LockFileError::NotText(path.to_owned()))?;
        let lock = Lock::parse(&text).map_err(|diagnostics| LockFileError::Malformed {
            sources: Sources::single(Source::new(path.display().to_string(), text)),
            diagnostics,
        })?;
        if lock.epoch() != FORMAT_EPOCH {
            return Err(LockFileError::Epoch { path: path.to_owned(), found: lock.epoch() });
        }
        Ok(Self { path: path.to_owned(), bytes: Some(bytes), whole: true, lock: Some(lock) })
    }

    /// Reads what is intact of a lock that cannot be used as it is, and names what is not.
    ///
    /// # Errors
    /// [`LockFileError::Foreign`] where the file is no lock at all, and something else would be lost;
    /// [`LockFileError::Io`].
    pub fn salvage(path: &Path) -> Result<(Self, Vec<String>), LockFileError> {
        let bytes = read(path)?;
        let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default());
        let salvaged = Lock::salvage(&text);
        let Some(salvaged_lock) = salvaged.lock else {
            return Err(LockFileError::Foreign(path.to_owned()));
        };
        // The pins of another epoch say as much; only what is written is of this one.
        let mut lock = Lock::new(FORMAT_EPOCH);
        salvaged_lock.entries().for_each(|entry| drop(lock.set(entry.clone())));
        Ok((
            Self { path: path.to_owned(), bytes, whole: false, lock: Some(lock) },
            salvaged.dropped,
        ))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks that the file could be replaced by a lock, if it has to be.
    ///
    /// # Errors
    /// [`LockFileError::Io`].
    pub fn check_writable(&self, lock: &Lock) -> Result<(), LockFileError> {
        if self.whole && self.lock.as_ref() == Some(lock) {
            return Ok(());
        }
        super::replace::check(&self.path).map_err(|source| LockFileError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// Replaces the file by a lock, as a whole or not at all; leaves it alone where it says the
    /// same already. Returns whether it was written.
    ///
    /// # Errors
    /// [`LockFileError::Io`]; [`LockFileError::Changed`] where another command wrote something else
    /// since the file was read.
    pub fn write(&self, lock: &Lock) -> Result<bool, LockFileError> {
        let (text, now) = (lock.write(), read(&self.path)?);
        let says_so = self.lock.as_ref() == Some(lock) && now == self.bytes && self.whole;
        if says_so || now.as_deref() == Some(text.as_bytes()) {
            return Ok(false);
        }
        if now != self.bytes {
            return Err(LockFileError::Changed(self.path.clone()));
        }
        super::replace(&self.path, &text).map_err(|source| LockFileError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })?;
        Ok(true)
    }
}

/// Reads a lock's bytes; nothing where there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, LockFileError> {
    match read_prefix(path, Links::Follow, lock::MAX_TEXT as u64 + 1).map_err(io::Error::from) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(LockFileError::Io { action: "read", path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    #[test]
    fn what_another_command_wrote_meanwhile_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        let (one, other) = (Lock::new(FORMAT_EPOCH), Lock::new(FORMAT_EPOCH + 1));
        let (first, second) = (LockFile::read(&path).unwrap(), LockFile::read(&path).unwrap());
        assert!(first.write(&one).unwrap());
        assert!(!second.write(&one).unwrap(), "it says the same");
        assert!(matches!(second.write(&other), Err(LockFileError::Changed(_))));
        assert_eq!(LockFile::read(&path).unwrap().lock, Some(one.clone()));
        let read = LockFile::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(read.write(&other), Err(LockFileError::Changed(_))));
    }

    #[test]
    fn a_lock_in_other_words_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        let lock = Lock::new(FORMAT_EPOCH);
        fs::write(&path, format!("# mine\n{}", lock.write())).unwrap();
        assert!(!LockFile::read(&path).unwrap().write(&lock).unwrap());
        fs::write(&path, format!("{}[[entry]]\nname = 1\n", lock.write())).unwrap();
        let (mended, dropped) = LockFile::salvage(&path).unwrap();
        assert_eq!(dropped.len(), 1);
        assert!(mended.write(&lock).unwrap());
        fs::write(&path, "my thesis\n").unwrap();
        assert!(matches!(LockFile::salvage(&path), Err(LockFileError::Foreign(_))));
    }
}
