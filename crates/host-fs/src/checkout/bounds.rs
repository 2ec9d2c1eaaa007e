//! The bounds of a reader: a directory, without the homes that lie below it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::known::{Identity, Known};

/// The directory that a reader keeps to, and which of what lies in it is not read.
///
/// A home that lies below that directory is no part of it: its keys and tokens are checked in nowhere. Where whoever names
/// the files lies in that home himself, his own directory is read, as it would be without a directory around it.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// The directory.
    root: PathBuf,
    /// The directory, without links, that has the file whose author names what is read.
    own: PathBuf,
    homes: Known,
}

/// Something lies in a home.
#[derive(Debug, thiserror::Error)]
#[error("{} is a home directory, and no part of the checkout", .0.display())]
pub struct InHome(pub PathBuf);

impl Bounds {
    /// Keeps a reader to a directory. `own` is the directory of the file that names what is read.
    pub fn new(root: &Path, own: &Path, homes: Known) -> Self {
        let own = super::real(own).unwrap_or_else(|_| own.to_owned());
        Self { root: root.to_owned(), own, homes }
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        &self.root
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
        Self { root: root.as_ref().to_owned(), own: PathBuf::new(), homes: Known::default() }
    }
}
