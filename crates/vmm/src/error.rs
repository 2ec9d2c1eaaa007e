//! Errors of a VMM process and of its jail.

use std::io;
use std::path::{Path, PathBuf};

use box_layout::OpenError;

use crate::jail::{Missing, Unshared, missing};
use crate::krun::KrunError;

/// Why a VMM process could not be started or confined.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum VmmError {
    /// A file or directory could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The failed action, as a verb: `open`, `read`, `make`.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A call of the operating system failed.
    #[error("cannot {action}: {source}")]
    System {
        action: &'static str,
        #[source]
        source: io::Error,
    },
    /// libkrun refused a call.
    #[error(transparent)]
    Krun(#[from] KrunError),
    /// A blob of the box is not what the box names.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The jail lacks layers, and all are asked for.
    #[error("this host does not give all layers of the jail: it lacks {}", missing(.0))]
    Jail(Vec<Missing>),
    /// The VMM process has not confined itself in time.
    #[error("the process of the machine did not confine itself in time")]
    NoJail,
    /// A Unix socket's path does not fit its address.
    #[error("the socket path {} is longer than {limit} bytes", path.display())]
    SocketPath { path: PathBuf, limit: usize },
    /// A directory of the host cannot be served.
    #[error(transparent)]
    Unshared(#[from] Unshared),
    /// Directories to be written to belong to several users.
    #[error("directories of several users or groups cannot be shared to be written to")]
    SharedOwners,
    /// A signal asked for the end; holds its number.
    #[error("stopped by signal {0}")]
    Signal(i32),
}

impl VmmError {
    /// Wraps an I/O error about a file.
    pub fn file(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::File { action, path, source }
    }

    /// Wraps an error of the operating system.
    pub fn system<E: Into<io::Error>>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { action, source: source.into() }
    }
}
