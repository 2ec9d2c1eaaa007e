//! A directory that is opened once and stays the same.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::known::Identity;
use crate::read::{Links, ReadError, open_regular_at};
use crate::way::Way;

/// An open directory. A program that may write to its parent, such as one in a box, can replace the directory with a
/// link or another directory at any moment. Paths that are resolved from this handle are not affected.
#[derive(Debug, Clone)]
pub struct Root {
    way: Arc<Way>,
    /// The path of this directory, which `way` contains.
    path: PathBuf,
}

impl Root {
    /// Opens a directory by a path that may have links. The empty path is the current directory.
    ///
    /// # Errors
    /// The operating system's error, or that a directory on the way was replaced meanwhile.
    pub fn of(path: &Path) -> io::Result<Self> {
        let way = Way::of(if path == Path::new("") { Path::new(".") } else { path })?;
        Ok(Self { path: way.path().to_owned(), way: Arc::new(way) })
    }

    /// Returns the directory at `path`, which has no links, if it is on the way to the directory that was opened.
    pub fn around(&self, path: &Path) -> Option<Self> {
        self.way.open_of(path)?;
        Some(Self { way: Arc::clone(&self.way), path: path.to_owned() })
    }

    /// Returns the path without links, at the time of opening.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory's identity.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn identity(&self) -> io::Result<Identity> {
        Identity::of_open(self.open()?)
    }

    /// Opens a regular file in the directory for reading, by a name from a user. A symbolic link is followed.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open_named(&self, name: &Path) -> Result<File, ReadError> {
        open_regular_at(self.open()?, name, Links::Follow)
    }

    /// Returns the handle of the directory.
    pub(super) fn open(&self) -> io::Result<BorrowedFd<'_>> {
        self.way.open_of(&self.path).ok_or_else(|| Errno::NOENT.into())
    }
}
