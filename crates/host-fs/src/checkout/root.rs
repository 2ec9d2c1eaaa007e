//! A directory that was found once, and stays the same one.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::known::Identity;
use crate::read::{Links, ReadError, open_regular_at};
use crate::way::Way;

/// An open directory. A program that may write to the directory around it, in a box for example, can put a link or another
/// directory in its place at any moment: that changes nothing of what is reached from here.
#[derive(Debug, Clone)]
pub struct Root {
    way: Arc<Way>,
    /// A path on the way.
    path: PathBuf,
}

impl Root {
    /// Finds a directory by a path that may have links; the empty path is the current directory.
    ///
    /// # Errors
    /// The operating system's; also if somebody exchanges a directory on the way meanwhile.
    pub fn of(path: &Path) -> io::Result<Self> {
        let way = Way::of(if path == Path::new("") { Path::new(".") } else { path })?;
        Ok(Self { path: way.path().to_owned(), way: Arc::new(way) })
    }

    /// Returns the directory with this path without links, if the way to this one led through it.
    pub fn around(&self, path: &Path) -> Option<Self> {
        self.way.open_of(path)?;
        Some(Self { way: Arc::clone(&self.way), path: path.to_owned() })
    }

    /// Returns its path without links, when it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// The operating system's.
    pub fn identity(&self) -> io::Result<Identity> {
        Identity::of_open(self.open()?)
    }

    /// Opens a regular file for reading that somebody has named in it. A link in its place is followed.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open_named(&self, name: &Path) -> Result<File, ReadError> {
        open_regular_at(self.open()?, name, Links::Follow)
    }

    /// Returns the directory.
    pub(super) fn open(&self) -> io::Result<BorrowedFd<'_>> {
        self.way.open_of(&self.path).ok_or_else(|| Errno::NOENT.into())
    }
}
