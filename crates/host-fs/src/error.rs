//! An error of the operating system, with the file that it is about.

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

    /// Returns the error of a file that should be a text and is not UTF-8.
    pub fn not_text(path: &Path, error: &std::str::Utf8Error) -> Self {
        let reason = format!("it is not UTF-8 text: see byte {}", error.valid_up_to());
        Self::of("read", path)(io::Error::new(io::ErrorKind::InvalidData, reason))
    }
}
