//! The errors of a store.

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
    /// The directory holds something else, or the store of another version.
    #[error(
        "{} is not a store of this version: its file \"version\" says {found}",
        path.display()
    )]
    NotAStore {
        path: PathBuf,
        /// The content of its file `version`, or that it has no such file.
        found: String,
    },
    /// Another user can change this directory of the store.
    #[error("another user can change {}, and so what is built from it", .0.display())]
    Shared(PathBuf),
    /// The store does not hold the blob.
    #[error("the store holds no blob {}", .0.hex())]
    Missing(Digest),
    /// A blob in the store is no longer what its name says.
    #[error("the blob {} is damaged: {}", blob.hex(), path.display())]
    Damaged { blob: Digest, path: PathBuf },
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
