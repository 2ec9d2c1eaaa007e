//! Errors of the records of boxes.

use std::path::PathBuf;

use host_fs::OsError;

/// Why a record could not be created, found or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RecordError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// No box that was started has this name.
    #[error("no started box has the name {0}")]
    NoBox(String),
    /// The box with this name is running.
    #[error("the box {0} is running")]
    StillRunning(String),
    /// A box with this name exists already.
    #[error("the name {0} is taken by another box")]
    NameTaken(String),
    /// Another process is updating the box with this name.
    #[error("another command is updating the box {0}")]
    BeingUpdated(String),
    /// The name is not valid for a box.
    #[error("{0:?} cannot be the name of a box")]
    BadName(String),
    /// There is something other than a regular file at the path for a task's result.
    #[error("{}: there is something other than a file", .0.display())]
    ResultPlace(PathBuf),
}
