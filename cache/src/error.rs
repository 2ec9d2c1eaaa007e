//! The errors of a store.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::FileError;

use crate::Owner;

/// An error of a store.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum StoreError {
    /// An operation on a file or directory failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store's file system has no space left except the reserve for other programs (a twentieth of it, at most 1 GiB), or the
    /// user's quota is used up.
    #[error("no space left in the store {}", .0.display())]
    Full(PathBuf),
    /// The store's file system has room for `free` bytes besides the reserve for other programs, and `needed` bytes are to be
    /// written.
    #[error(
        "the store {} has room for {}, and {} are needed", root.display(), mebibytes(*free), mebibytes(*needed)
    )]
    NoRoom { root: PathBuf, needed: u64, free: u64 },
    /// The path of the store is a file.
    #[error("the store {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory contains foreign files, or a store of another version.
    #[error("{} is not a store of this boxbuild: it holds {found}", path.display())]
    NotAStore {
        path: PathBuf,
        /// The name of a foreign file in it, or the content of its file `version`.
        found: String,
    },
    /// Another user can change this directory of the store.
    #[error("another user can write to {}, and so change what is built or started from it", .0.display())]
    Shared(PathBuf),
    /// Another user can change these directories above the store, and so put another store in its place.
    #[error("another user can replace the store {}, because they can write to {}", root.display(), listed(above))]
    Replaceable { root: PathBuf, above: Vec<PathBuf> },
    /// The name belongs to another box.
    #[error("the name {name} belongs to {owner}")]
    NameTaken { name: String, owner: Owner },
    /// An attachment of a box exceeds a limit. `reason` is a clause.
    #[error("the box {digest} cannot get an attachment: {reason}")]
    Attachment { digest: Digest, reason: String },
    /// Another process keeps the store locked.
    #[error("another process keeps the store {} locked", .0.display())]
    Busy(PathBuf),
    /// The store has blobs but no references to any of them. The store may be damaged, so nothing is deleted.
    #[error("the store {} has blobs, and nothing that refers to any of them", .0.display())]
    NoRoots(PathBuf),
    /// The store does not have the blob.
    #[error("the store has no blob {}", .0.hex())]
    Missing(Digest),
    /// The content of a blob does not match its digest.
    #[error("the blob {} is damaged: {}", blob.hex(), path.display())]
    Damaged { blob: Digest, path: PathBuf },
}

impl StoreError {
    /// Returns the directory of the store if `error` or one of its causes is [`StoreError::Full`]. Writers of the store wrap that
    /// error in an [`io::Error`].
    pub fn full<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Path> {
        if let Some(Self::Full(root)) = error.downcast_ref() {
            return Some(root);
        }
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        Self::full(inner.map(|it| it as &(dyn Error + 'static)).or_else(|| error.source())?)
    }

    /// Returns whether `error` or one of its causes is [`StoreError::Missing`]. If the blob existed before, a collection has
    /// deleted it in the meantime.
    pub fn is_missing(error: &(dyn Error + 'static)) -> bool {
        if let Some(Self::Missing(_)) = error.downcast_ref() {
            return true;
        }
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        let cause = inner.map(|it| it as &(dyn Error + 'static)).or_else(|| error.source());
        cause.is_some_and(Self::is_missing)
    }

    /// Converts the error of a full file system or an exceeded quota into [`StoreError::Full`].
    pub(crate) fn within(self, root: &Path) -> Self {
        match self {
            Self::File(error) if is_full(&error.source) => Self::Full(root.to_owned()),
            error => error,
        }
    }
}

/// Formats a number of bytes in mebibytes.
fn mebibytes(bytes: u64) -> String {
    let tenths = u128::from(bytes) * 10 / (1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Like [`StoreError::within`], for an [`io::Error`].
pub(crate) fn io_within(root: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| match is_full(&error) {
        true => io::Error::new(error.kind(), StoreError::Full(root.to_owned())),
        false => error,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Adds the operation and the file to an [`io::Error`].
pub(crate) trait IoContext<T> {
    /// Converts the error into [`StoreError::File`].
    fn context(self, doing: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, StoreError> {
        Ok(self.map_err(FileError::of(doing, path))?)
    }
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|it| it.display().to_string()).collect();
    paths.join(" and ")
}
