//! Errors about snapshots.

use box_digest::Digest;
use host_fs::OsError;
use vmm::signals::Stopped;

/// Why a snapshot cannot be made, used or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum SnapshotError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal has ended the copy.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// There is no snapshot with this name.
    #[error("there is no snapshot {0:?}")]
    Missing(String),
    /// A snapshot with this name exists already.
    #[error("there is a snapshot {0} already")]
    Exists(String),
    /// The name is not valid for a snapshot.
    #[error("{0:?} cannot be the name of a snapshot")]
    BadName(String),
    /// The box is running, so its programs may change the disk during the copy.
    #[error("{name} is running, and a running box may write to its disk")]
    Running { name: String, is_environment: bool },
    /// The box keeps nothing of what its programs write to its root, or has not been started since its disk was removed.
    #[error("{0} has no disk")]
    NoDisk(String),
    /// The record is missing or malformed, or the disk has another size than the record.
    #[error("the snapshot {name} is damaged: {reason}")]
    Damaged { name: String, reason: String },
    /// The snapshot belongs to another box than the one that is started.
    #[error("the snapshot {name} is of the box {of}, and this start is of the box {started}")]
    OtherBox { name: String, of: Digest, started: Digest },
}
