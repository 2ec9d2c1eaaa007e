//! The errors of a store.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::FileError;

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum StoreError {
    /// The operating system refused something.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file system of the store in this directory is full, or nearly (a twentieth of it stays free for others, at most
    /// 1 GiB), or the user's quota on it is.
    #[error("no space left in the store {}", .0.display())]
    Full(PathBuf),
    /// The directory holds something else, or the store of another version.
    #[error("{} is not a store of this boxbuild: it holds {found}", path.display())]
    NotAStore {
        path: PathBuf,
        /// The name of a foreign file in it, or the content of its file `version`.
        found: String,
    },
    /// Another user can change this directory of the store.
    #[error("another user can write to {}, and so change what is built or started from it", .0.display())]
    Shared(PathBuf),
    /// The name belongs to another Boxfile, which is still there.
    #[error("the name {name} belongs to the box of {}", owner.display())]
    NameTaken { name: String, owner: PathBuf },
    /// Another process keeps the store locked.
    #[error("another process keeps the store {} locked", .0.display())]
    Busy(PathBuf),
    /// The store does not hold the blob.
    #[error("the store has no blob {}", .0.hex())]
    Missing(Digest),
    /// A blob in the store is no longer what its name says.
    #[error("the blob {} is damaged: {}", blob.hex(), path.display())]
    Damaged { blob: Digest, path: PathBuf },
}

impl StoreError {
    /// Returns the directory of the store if an error, or one of its causes, is that the store is
    /// full: writers of the store pass that on as an [`io::Error`].
    pub fn full<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Path> {
        if let Some(Self::Full(root)) = error.downcast_ref() {
            return Some(root);
        }
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        Self::full(inner.map(|it| it as &(dyn Error + 'static)).or_else(|| error.source())?)
    }

    /// Names the store in `root` where this error is that a file system is full.
    pub(crate) fn within(self, root: &Path) -> Self {
        match self {
            Self::File(error) if is_full(&error.source) => Self::Full(root.to_owned()),
            error => error,
        }
    }
}

/// Names the store in `root` where an error is that a file system is full.
pub(crate) fn io_within(root: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| match is_full(&error) {
        true => io::Error::new(error.kind(), StoreError::Full(root.to_owned())),
        false => error,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Attaches what was being done, and to which file, to an [`io::Error`].
pub(crate) trait IoContext<T> {
    /// Turns the error into [`StoreError::File`].
    fn context(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        Ok(self.map_err(FileError::of(doing, path))?)
    }
}
