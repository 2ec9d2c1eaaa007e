//! Opens the files of an image by their names, in a directory or in an archive.

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
    /// Returns the path of the directory or archive, for messages.
    fn title(&self) -> String;

    /// Returns the path of a file, for messages.
    fn at(&self, name: &str) -> String;

    /// Opens a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// The file exists, but cannot be read.
    fn open(&self, name: &str) -> Result<Option<Opened>, SourceError>;
}

/// The maximum size of a Git LFS pointer, in bytes.
/// [The specification](https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md#the-pointer) requires
/// less than 1024.
const MAX_LFS_POINTER: u64 = 1024;

/// Returns whether a file is a Git LFS pointer.
fn is_pointer(file: &File) -> io::Result<bool> {
    let mut start = [0; 64];
    let read = file.read_at(&mut start, 0)?;
    Ok(is_lfs_pointer(&start[..read]))
}

/// The files of a directory. Their names are constants or digests, so no name leads out of the directory with `..`.
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
        // The files of a layout may be symbolic links, for example into another store.
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
