//! The error of every module of this crate.

use std::io;
use std::path::{Path, PathBuf};

use testkit::FileError;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, KitError>;

/// Why a part of the tests' environment could not be built, fetched or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum KitError {
    /// A file or directory could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A program is not installed.
    #[error("{program} is missing; {remedy}")]
    Missing {
        program: String,
        /// The command that installs it.
        remedy: String,
    },
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    /// A program ended with a failure.
    #[error("{command} failed ({status}):\n{output}")]
    Failed {
        command: String,
        status: String,
        /// The end of the program's output.
        output: String,
    },
    /// The digest of a file is not the pinned one.
    #[error("{} has sha256 {found}, and {expected} is pinned; delete it and try again", path.display())]
    Digest {
        path: PathBuf,
        /// The pinned digest, in hexadecimal.
        expected: String,
        /// The file's digest, in hexadecimal.
        found: String,
    },
    /// A start of the virtual host was repeated, and its result is not the kept one.
    #[error(
        "two starts of the virtual host with the same inputs, by the tests of {module}, have different results ({key}); all kept \
         results are removed at the end of this run"
    )]
    AnotherResult { key: String, module: String },
    /// The package with the guest kernel is unavailable.
    #[error(transparent)]
    Package(#[from] guest_kernel::PackageError),
    /// A document or image does not follow its format.
    #[error("{what} is malformed: {why}")]
    Malformed { what: String, why: String },
    /// The virtual host could not be made or did not run to its end.
    #[error(transparent)]
    Host(#[from] virtual_host::HostError),
}

impl KitError {
    /// Returns a function that adds the action and the file to an I/O error.
    pub fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let about = FileError::about(what, path);
        move |source| Self::File(about(source))
    }

    /// Returns the error of a malformed document.
    pub fn malformed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Malformed { what: what.into(), why: why.to_string() }
    }
}
