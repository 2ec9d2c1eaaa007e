//! The lock on the disk.

use std::io;
use std::path::{Path, PathBuf};

use crate::project::lock;
use crate::project::lock::Lock;
use box_contract::manifest::FORMAT_EPOCH;
use diagnostics::{Diagnostics, Source, Sources};
use host_fs::FileError;
use host_fs::checkout::{Bounds, check_replaceable, replace};
use host_fs::read::{read_open_prefix, utf16};

/// A lock and its file, from which it was read or to which it will be written.
#[derive(Debug, Clone)]
pub struct LockFile {
    place: LockPlace,
    /// The file's bytes; `None` if there is no file.
    bytes: Option<Vec<u8>>,
    /// The file's lock. `None` if there is no file, or if its pins cannot be used.
    pub lock: Option<Lock>,
}

/// The path of a lock.
#[derive(Debug, Clone)]
pub struct LockPlace {
    path: PathBuf,
    /// The directory in which a lock that the user did not name was found. `None` for a named lock.
    found_in: Option<Bounds>,
}

impl LockPlace {
    /// Returns the path of a lock that the user did not name. No link may lead out of `directory`.
    pub fn found(path: PathBuf, directory: Bounds) -> Self {
        Self { path, found_in: Some(directory) }
    }

    /// Returns the path of the lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a lock's bytes. `None` if there is no file.
    fn read(&self) -> Result<Option<Vec<u8>>, LockFileError> {
        let file = super::open(&self.path, self.found_in.as_ref());
        match file.and_then(|file| read_open_prefix(&file, lock::MAX_TEXT as u64 + 1)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError::of("read", &self.path)(error).into()),
        }
    }
}

/// The path of a lock that the user named.
impl<P: AsRef<Path> + ?Sized> From<&P> for LockPlace {
    fn from(path: &P) -> Self {
        Self { path: path.as_ref().to_owned(), found_in: None }
    }
}

/// Why a lock cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum LockFileError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file cannot be written.
    #[error(transparent)]
    NotWritable(FileError),
    /// The file is not UTF-8 text. `is_lock` is true if the file was written as a lock.
    #[error("{source}")]
    NotText { source: FileError, is_lock: bool },
    /// The file cannot be read as a lock. `conflicted` is true if it has conflict markers.
    #[error("{} is not a lock that can be used", .sources.as_slice()[0].name)]
    Malformed { sources: Sources, diagnostics: Diagnostics, conflicted: bool },
    /// The file cannot be read as a lock, and was not written as one.
    #[error("{} is not a lock, and is not overwritten", .0.display())]
    Foreign(PathBuf),
    /// Another command changed the file after it was read.
    #[error("{} was changed by another command, and is not overwritten", .0.display())]
    Changed(PathBuf),
    /// The lock is for boxes of another format epoch.
    #[error(
        "{} is for boxes of format epoch {found}, and this boxbuild writes epoch {FORMAT_EPOCH}",
        path.display()
    )]
    Epoch { path: PathBuf, found: u32 },
}

impl LockFile {
    /// Reads a lock, if the file exists.
    ///
    /// # Errors
    /// [`LockFileError`].
    pub fn read(place: impl Into<LockPlace>) -> Result<Self, LockFileError> {
        let file = Self::read_any_epoch(place)?;
        match &file.lock {
            Some(lock) if lock.epoch() != FORMAT_EPOCH => {
                Err(LockFileError::Epoch { path: file.path().to_owned(), found: lock.epoch() })
            }
            _ => Ok(file),
        }
    }

    /// Reads a lock for boxes of any format epoch, if the file exists. The same pins can then be written for the
    /// current epoch, because pins do not depend on the box's format.
    ///
    /// # Errors
    /// [`LockFileError`].
    pub fn read_any_epoch(place: impl Into<LockPlace>) -> Result<Self, LockFileError> {
        let place = place.into();
        let Some(bytes) = place.read()? else {
            return Ok(Self { place, bytes: None, lock: None });
        };
        let path = place.path();
        let text = host_fs::read::text(path, bytes.clone()).map_err(|source| {
            LockFileError::NotText { source, is_lock: Lock::is_lock(&lossy_text(&bytes)) }
        })?;
        let lock = Lock::parse(&text).map_err(|diagnostics| LockFileError::Malformed {
            conflicted: Lock::has_conflict(&text),
            sources: Sources::single(Source::new(path.display().to_string(), &*text)),
            diagnostics,
        })?;
        Ok(Self { place, bytes: Some(bytes), lock: Some(lock) })
    }

    /// Reads a lock of any epoch in order to resolve everything again, without the old pins. A lock that is malformed,
    /// for example by a merge conflict, is returned without pins, together with its error.
    ///
    /// # Errors
    /// [`LockFileError::Foreign`] if the file was not written as a lock, so that replacing it would lose other data;
    /// [`LockFileError::File`].
    pub fn read_to_rebuild(
        place: impl Into<LockPlace>,
    ) -> Result<(Self, Option<LockFileError>), LockFileError> {
        let place = place.into();
        let error = match Self::read_any_epoch(place.clone()) {
            Ok(file) => return Ok((file, None)),
            Err(error @ LockFileError::File(_)) => return Err(error),
            Err(error) => error,
        };
        let bytes = place.read()?;
        if !Lock::is_lock(&lossy_text(bytes.as_deref().unwrap_or_default())) {
            return Err(LockFileError::Foreign(place.path));
        }
        Ok((Self { place, bytes, lock: None }, Some(error)))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Checks that the file can be replaced, if `lock` differs from it.
    ///
    /// # Errors
    /// [`LockFileError::NotWritable`].
    pub fn check_writable(&self, lock: &Lock) -> Result<(), LockFileError> {
        if self.lock.as_ref() == Some(lock) {
            return Ok(());
        }
        check_replaceable(self.path()).map_err(|error| self.not_writable(error))
    }

    /// Replaces the file by `lock` atomically, unless the file already has the same content. Returns whether the file
    /// was written.
    ///
    /// # Errors
    /// [`LockFileError::NotWritable`]; [`LockFileError::Changed`] if another command changed the file since it was
    /// read.
    pub fn write(&self, lock: &Lock) -> Result<bool, LockFileError> {
        let (text, now) = (lock.write(), self.place.read()?);
        let says_so = self.lock.as_ref() == Some(lock) && now == self.bytes;
        if says_so || now.as_deref() == Some(text.as_bytes()) {
            return Ok(false);
        }
        if now != self.bytes {
            return Err(LockFileError::Changed(self.path().to_owned()));
        }
        replace(self.path(), &text).map_err(|error| self.not_writable(error))?;
        Ok(true)
    }

    fn not_writable(&self, error: io::Error) -> LockFileError {
        LockFileError::NotWritable(FileError::of("write", self.path())(error))
    }
}

/// Decodes bytes as text. An editor may have saved the lock as UTF-16.
fn lossy_text(bytes: &[u8]) -> String {
    utf16(bytes).unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

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
    }

    #[test]
    fn a_malformed_lock_can_be_replaced_and_another_file_cannot() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        let lock = Lock::new(FORMAT_EPOCH);
        let utf16 = |text: &str| {
            let units = text.encode_utf16().flat_map(u16::to_le_bytes);
            [0xff, 0xfe].into_iter().chain(units).collect::<Vec<u8>>()
        };
        fs::write(&path, utf16(&lock.write())).unwrap();
        let error = LockFile::read(&path).unwrap_err();
        assert!(matches!(error, LockFileError::NotText { is_lock: true, .. }), "{error}");
        let text = safe_text::with_causes(&error);
        assert!(text.contains("it is UTF-16, not UTF-8"), "{text}");
        let (file, _) = LockFile::read_to_rebuild(&path).unwrap();
        assert!(file.write(&lock).unwrap());
        fs::write(&path, utf16("version = 2\n")).unwrap();
        let error = LockFile::read(&path).unwrap_err();
        assert!(matches!(error, LockFileError::NotText { is_lock: false, .. }), "{error}");
        for (damage, is_text) in [("[[entry]]\nname = 1\n", true), ("# \u{e9}", false)] {
            let mut bytes = format!("{}{damage}", lock.write()).into_bytes();
            if !is_text {
                bytes.pop();
            }
            fs::write(&path, bytes).unwrap();
            LockFile::read_any_epoch(&path).unwrap_err();
            let (file, error) = LockFile::read_to_rebuild(&path).unwrap();
            assert!((file.lock.is_none(), error.is_some()) == (true, true));
            assert!(file.write(&lock).unwrap());
            let (file, error) = LockFile::read_to_rebuild(&path).unwrap();
            assert!(file.lock == Some(lock.clone()) && error.is_none());
        }
        fs::write(&path, "my thesis\n").unwrap();
        assert!(matches!(LockFile::read_to_rebuild(&path), Err(LockFileError::Foreign(_))));
    }

    #[test]
    fn a_lock_of_another_epoch_keeps_its_pins() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("Boxfile.lock");
        fs::write(&path, Lock::new(FORMAT_EPOCH + 1).write()).unwrap();
        let file = LockFile::read_any_epoch(&path).unwrap();
        assert_eq!(file.lock, Some(Lock::new(FORMAT_EPOCH + 1)));
        assert!(file.write(&Lock::new(FORMAT_EPOCH)).unwrap());
        assert_eq!(LockFile::read(&path).unwrap().lock, Some(Lock::new(FORMAT_EPOCH)));
    }

    #[test]
    fn a_lock_is_not_written_through_a_link_that_leads_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("checkout/Boxfile.lock");
        fs::create_dir(directory.path().join("checkout")).unwrap();
        fs::write(directory.path().join("bashrc"), "precious").unwrap();
        let file = LockFile::read(&path).unwrap();
        symlink("../bashrc", &path).unwrap();
        file.check_writable(&Lock::new(FORMAT_EPOCH)).unwrap_err();
        assert!(path.is_symlink());
    }
}
