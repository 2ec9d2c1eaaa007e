//! Errors of a VMM process and of its jail.

use std::path::PathBuf;

use box_layout::OpenError;
use host_fs::OsError;

use crate::jail::{Missing, Unshared, missing};
use crate::krun::KrunError;
use crate::signals::Stopped;

/// Why a VMM process could not be started or confined.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum VmmError {
    /// A system call failed.
    #[error(transparent)]
    Os(#[from] OsError),
    /// libkrun refused a call.
    #[error(transparent)]
    Krun(#[from] KrunError),
    /// A blob does not match its description in the box.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The jail lacks layers, and the policy requires all of them.
    #[error("this host does not give all layers of the jail: it lacks {}", missing(.0))]
    Jail(Vec<Missing>),
    /// The VMM process has not confined itself before the deadline.
    #[error("the VMM process did not enter its jail in time")]
    NoJail,
    /// A Unix socket's path is longer than a socket's address allows.
    #[error("the socket path {} is longer than {limit} bytes", path.display())]
    SocketPath { path: PathBuf, limit: usize },
    /// A directory of the host cannot be served.
    #[error(transparent)]
    Unshared(#[from] Unshared),
    /// The shares that the guest may write to belong to several users or groups.
    #[error("writable directories of several users or groups cannot be shared")]
    SharedOwners,
    /// A signal asked for the end of the run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
