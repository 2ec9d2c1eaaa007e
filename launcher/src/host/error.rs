//! The reasons why this host does not run a box.

use std::path::PathBuf;

use safe_text::readable;

use crate::streams::console::INTERNAL_ERROR;

/// Why no guest runs under this host's KVM.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum KvmError {
    /// There is no device.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// This user may not open the device.
    #[error("cannot open {}: {reason}", path.display())]
    Denied {
        path: PathBuf,
        reason: String,
        /// Those to whom it is open.
        allowed: Allowed,
    },
    /// The device cannot be opened for another reason.
    #[error("cannot open {}: {reason}", path.display())]
    Open { path: PathBuf, reason: String },
    /// A guest ran, and failed at what kernels need. So it will until the host boots again.
    #[error("this host's KVM cannot run a guest: {0}")]
    Unusable(String),
    /// No guest was started, this time.
    #[error("this host's KVM did not start a guest: {0}")]
    Failed(String),
    /// The box's own kernel made KVM give up.
    #[error("this host's KVM cannot run the box's kernel ({INTERNAL_ERROR})")]
    Kernel,
    /// The guest was not seen to its end, which proves nothing.
    #[error("it is not known whether this host's KVM can run a guest: {0}")]
    Unknown(String),
}

/// Those to whom the device's permission bits open it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// The members of this group.
    Group(String),
    /// Its owner alone.
    Owner(String),
    /// This user, too: something else forbids it, such as a container.
    Everybody,
}

/// Why a box asks for more of this host than it may take.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PolicyError {
    /// More virtual CPUs or memory.
    #[error("the box asks for {0}")]
    TooMuch(String),
    /// The scratch disks of the box may hold more than it may take, in bytes.
    #[error("the box asks for scratch disks of {}, and may have {}", readable(*asked), readable(*most))]
    TooMuchScratch { asked: u64, most: u64 },
}
