//! The error of this crate.

use std::io;
use std::path::PathBuf;

/// Why the package, or a file of it, is unavailable.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PackageError {
    /// pip is not installed.
    #[error("there is no python3 with pip")]
    NoPip,
    /// pip failed.
    #[error("{command} failed: {output}")]
    Pip {
        command: String,
        /// The last line of pip's standard error.
        output: String,
    },
    /// pip succeeded and left no wheel.
    #[error("{command} left no wheel")]
    NoWheel { command: String },
    /// A file or directory cannot be read.
    #[error("cannot read {}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The file's digest is not the pinned one.
    #[error("{what} has sha256 {found}, not the pinned {expected}")]
    WrongDigest {
        what: String,
        /// The pinned digest, in hexadecimal.
        expected: &'static str,
        /// The file's digest, in hexadecimal.
        found: String,
    },
    /// The file is not a zip archive, or is damaged.
    #[error("it is not a wheel, or a damaged one")]
    NotAWheel,
    /// The wheel has no file at this path.
    #[error("the wheel has no {path}")]
    NoMember { path: String },
}
