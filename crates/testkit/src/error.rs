//! The error of every module of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, FileError>;

/// A file or directory that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {}: {source}", path.display())]
#[non_exhaustive]
pub struct FileError {
    /// The action that failed, as a verb.
    pub what: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    pub source: io::Error,
}

impl FileError {
    /// Returns a function that adds the action and the file to an I/O error.
    pub fn about(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { what, path, source }
    }
}
