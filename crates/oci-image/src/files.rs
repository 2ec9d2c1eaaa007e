//! Files by their names: those of a directory, or of an archive.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use host_fs::FileError;
use host_fs::read::{Links, open_regular};

use super::archive::is_lfs_pointer;
use super::error::SourceError;
use super::source::Opened;

pub(super) trait Files: fmt::Debug + Send + Sync {
    /// Names the place for people.
    fn title(&self) -> String;

    /// Says for people where a file is.
    fn at(&self, name: &str) -> String;

    /// Opens a file; `None` if it does not exist.
    ///
    /// # Errors
    /// It is there, but is no file that can be read.
    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError>;
}

/// The most bytes of a pointer (Git LFS, "The Pointer": less than 1024).
const MAX_LFS_POINTER: u64 = 1024;

/// Returns whether a file is a pointer of Git LFS, in the place of what it should be.
fn is_pointer(file: &File) -> io::Result<bool> {
    let mut start = [0; 64];
    let read = file.read_at(&mut start, 0)?;
    Ok(is_lfs_pointer(&start[..read]))
}

/// The files of a directory. The names are ours, or made of digests: none leads out of it.
#[derive(Debug)]
pub(super) struct Directory(pub(super) PathBuf);

impl Files for Directory {
    fn title(&self) -> String {
        self.0.display().to_string()
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError> {
        let path = self.0.join(name);
        // A layout can be a farm of links into another store.
        match open_regular(&path, Links::Follow) {
            Ok(file) => {
                let size = file.metadata().map_err(FileError::of("read", &path))?.len();
                if size <= MAX_LFS_POINTER
                    && is_pointer(&file).map_err(FileError::of("read", &path))?
                {
                    return Err(SourceError::LfsPointer(path));
                }
                Ok(Some(Opened { reader: Box::new(file), size }))
            }
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(FileError::of("read", &path)(error).into()),
        }
    }
}
