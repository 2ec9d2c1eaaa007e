//! The error of every module of this crate.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host_fs::trust::Stranger;

/// The result of every fallible function of this crate.
pub type Result<T> = std::result::Result<T, HostError>;

/// Why a virtual host could not be made or started, or gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum HostError {
    /// A file or directory could not be read or written.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The failed action, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// A program is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// The program's name.
        program: String,
        /// The name of the Debian package that has it.
        package: &'static str,
    },
    /// QEMU is older than the virtual host requires.
    #[error("QEMU {version} is too old: the virtual host needs {oldest} or later")]
    OldEmulator { version: String, oldest: &'static str },
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
    /// A package could not be found or downloaded.
    #[error("{command} failed ({status}):\n{output}")]
    NotFetched {
        command: String,
        status: String,
        /// The end of the output of apt.
        output: String,
    },
    /// The file that was named as a package is none.
    #[error("{} is not a Debian package", .0.display())]
    NotAPackage(PathBuf),
    /// A file does not follow its format.
    #[error("{what} is malformed: {why}")]
    Malformed { what: String, why: String },
    /// A program for the virtual host needs shared libraries.
    #[error("{} needs shared libraries, and the virtual host has none", .0.display())]
    Dynamic(PathBuf),
    /// A disk could not be packed.
    #[error("cannot pack {} as a disk: {source}", path.display())]
    Pack { path: PathBuf, source: erofs_writer::Error },
    /// Another user could have changed a prepared kernel in the cache directory.
    #[error("{} is not used: {stranger}", path.display())]
    Stranger { path: PathBuf, stranger: Stranger },
    /// The virtual host did not finish in time.
    #[error(
        "the virtual host did not finish within {} s; its console ended with:\n{console}",
        limit.as_secs()
    )]
    TimeLimit {
        /// The limit, in real time.
        limit: Duration,
        /// The end of the console's log.
        console: String,
    },
    /// The virtual host stopped without a result.
    #[error(
        "the virtual host stopped without a result; QEMU ended with {status} and printed:\n{qemu}\n\
         the console ended with:\n{console}"
    )]
    NoResult {
        status: String,
        qemu: String,
        /// The end of the console's log.
        console: String,
    },
    /// The output could not be written to the caller's streams.
    #[error("cannot pass on the output: {0}")]
    Output(#[source] io::Error),
    /// A step of the virtual host's init failed.
    #[error("the virtual host cannot {what}: {source}")]
    Guest { what: String, source: io::Error },
}

impl HostError {
    /// Returns a function that adds the action and the file to an I/O error.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    /// Returns the error of a malformed file.
    pub(crate) fn malformed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Malformed { what: what.into(), why: why.to_string() }
    }

    /// Returns a function that adds the failed step of the virtual host's init to an error.
    pub(crate) fn guest<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Guest { what, source: source.into() }
    }
}
