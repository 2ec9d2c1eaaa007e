//! The bounds of a reader: a directory, without the homes that lie below it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Root;
use crate::known::{Identity, Known};

/// The directory that a reader keeps to, and which of what lies in it is not read.
///
/// The directory is found once, when the bounds are made. What is put in its place afterwards is not read.
///
/// A home that lies below that directory is no part of it: its keys and tokens are checked in nowhere. Where whoever names
/// the files lies in that home himself, his own directory is read, as it would be without a directory around it.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The directory, or why there was none.
    root: Result<Root, Errno>,
    /// The directory, without links, that has the file whose author names what is read.
    own: PathBuf,
    homes: Known,
}

/// Something lies in a home.
#[derive(Debug, thiserror::Error)]
#[error("{} is a home directory, and no part of the checkout", .0.display())]
pub struct InHome(pub PathBuf);

impl Bounds {
    /// Keeps a reader to an open directory. `own` is the path without links of the directory that has the file whose author names
    /// what is read.
    pub fn within(root: Root, own: &Path, homes: Known) -> Self {
        Self { root: Ok(root), own: own.to_owned(), homes }
    }

    /// Refuses everything, as a directory was not found.
    pub fn none() -> Self {
        Self { root: Err(Errno::NOENT), own: PathBuf::new(), homes: Known::default() }
    }

    /// Returns the directory.
    ///
    /// # Errors
    /// That it was not found.
    pub fn root(&self) -> io::Result<&Root> {
        self.root.as_ref().map_err(|error| (*error).into())
    }

    /// Checks an open directory below the root, at a path without links, that leads to what is read.
    pub(super) fn check(&self, open: &OwnedFd, at: &Path, wanted: &Path) -> io::Result<()> {
        let is_around_own = at != self.own && self.own.starts_with(at);
        if is_around_own && wanted.starts_with(&self.own) {
            return Ok(());
        }
        let home = self.homes.find(Identity::of_open(open)?);
        home.map_or(Ok(()), |_| Err(io::Error::other(InHome(at.to_owned()))))
    }
}

/// Keeps a reader to a directory that has no homes below it, or all of whose files are meant.
impl<P: AsRef<Path> + ?Sized> From<&P> for Bounds {
    fn from(root: &P) -> Self {
        Self { root: found(root.as_ref()), own: PathBuf::new(), homes: Known::default() }
    }
}

fn found(root: &Path) -> Result<Root, Errno> {
    // An error without a number says that another directory was put in its place meanwhile.
    Root::of(root).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::STALE))
}
