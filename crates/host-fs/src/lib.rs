//! Reads files of the host within bounds, and puts files and directories in place so that a crash
//! leaves the old or the new.
//!
//! - [`read`] opens and reads regular files, whatever was put in their place.
//! - [`checkout`] keeps paths inside a directory, whatever links are on the way.
//! - [`publish`] puts files and directories in place, whole or not at all.
//! - [`stamp`] recognizes a file that has not changed since it was hashed.
//! - [`trust`] finds who else could have put a file where it is.
//! - [`user`] finds the directories of a user's files.
#![forbid(unsafe_code)]

pub mod checkout;
pub mod publish;
pub mod read;
pub mod stamp;
pub mod trust;
pub mod user;

use std::io;
use std::path::{Path, PathBuf};

/// Something that could not be done to a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {}", path.display())]
#[allow(missing_docs, reason = "the fields are named by the message")]
pub struct FileError {
    /// The operation, as a verb: `read`, `write`.
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

impl FileError {
    /// Returns a function that adds to an error what was tried, for [`Result::map_err`].
    pub fn of<E: Into<io::Error>>(
        doing: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self { doing, path: path.as_ref().to_owned(), source: source.into() }
    }
}
