//! The bounds of a reader: a directory, without the homes below it.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Root;
use crate::known::{Identity, Known};

/// The directory that a reader may not leave, and the homes in it that it must not read.
///
/// The directory is opened once, when the bounds are made. If another directory is moved to its path later, the
/// reader does not see it.
///
/// A home below that directory is not part of the checkout, because its keys and tokens are never checked in. There
/// is one exception: if the file whose author names the paths (a Boxfile, for example) is in a subdirectory of such a
/// home, that subdirectory is readable.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// The directory, or why it was not found.
    root: Result<Root, Errno>,
    /// The directory, with links resolved, of the file whose author names the paths.
    own: PathBuf,
    homes: Known,
}

/// The path is in a home below the checkout. Contains the path of the home.
#[derive(Debug, thiserror::Error)]
#[error("{} is a home directory, and no part of the checkout", .0.display())]
pub struct InHome(pub PathBuf);

impl Bounds {
    /// Restricts a reader to an open directory. `own` is the directory, with links resolved, of the file whose author
    /// names the paths.
    pub fn within(root: Root, own: &Path, homes: Known) -> Self {
        Self { root: Ok(root), own: own.to_owned(), homes }
    }

    /// Refuses all paths, because the directory was not found.
    pub fn none() -> Self {
        Self { root: Err(Errno::NOENT), own: PathBuf::new(), homes: Known::default() }
    }

    /// Returns the directory.
    ///
    /// # Errors
    /// That the directory was not found.
    pub fn root(&self) -> io::Result<&Root> {
        self.root.as_ref().map_err(|error| (*error).into())
    }

    /// Returns [`InHome`] if `open`, a directory on the way to `wanted`, is a home without the exception of [`Bounds`].
    /// `at` is the path of `open`. Both paths are below the root and have no links.
    pub(super) fn check(&self, open: &OwnedFd, at: &Path, wanted: &Path) -> io::Result<()> {
        let is_around_own = at != self.own && self.own.starts_with(at);
        if is_around_own && wanted.starts_with(&self.own) {
            return Ok(());
        }
        let home = self.homes.find(Identity::of_open(open)?);
        home.map_or(Ok(()), |_| Err(io::Error::other(InHome(at.to_owned()))))
    }
}

/// Restricts a reader to a directory in which no home has to be excluded.
impl<P: AsRef<Path> + ?Sized> From<&P> for Bounds {
    fn from(root: &P) -> Self {
        Self { root: found(root.as_ref()), own: PathBuf::new(), homes: Known::default() }
    }
}

fn found(root: &Path) -> Result<Root, Errno> {
    // An error without an errno means that the directory was replaced meanwhile.
    Root::of(root).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::STALE))
}
