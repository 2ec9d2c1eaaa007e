//! The reasons why this host cannot run a box, or refuses to.

use std::path::PathBuf;

use safe_text::readable;

use crate::streams::console::INTERNAL_ERROR;

/// Why this host's KVM cannot run a guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum KvmError {
    /// The device does not exist.
    #[error("there is no {}", .0.display())]
    Missing(PathBuf),
    /// This user may not open the device.
    #[error("cannot open {}: {reason}", path.display())]
    Denied {
        path: PathBuf,
        reason: String,
        /// The users with access to the device.
        allowed: Allowed,
    },
    /// The device cannot be opened for another reason.
    #[error("cannot open {}: {reason}", path.display())]
    Open { path: PathBuf, reason: String },
    /// A test guest failed at an instruction that kernels need. The result is valid until the host boots again.
    #[error("this host's KVM cannot run a guest: {0}")]
    Unusable(String),
    /// The test guest did not start. The next attempt may succeed.
    #[error("this host's KVM did not start a guest: {0}")]
    Failed(String),
    /// KVM gave up on the box's own kernel.
    #[error("this host's KVM cannot run the box's kernel ({INTERNAL_ERROR})")]
    Kernel,
    /// The test guest was killed, did not end in time, or its process could not be started.
    #[error("it is not known whether this host's KVM can run a guest: {0}")]
    Unknown(String),
}

/// The users with access to the device by its permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// The members of this group.
    Group(String),
    /// Only the device's owner.
    Owner(String),
    /// All users, including this one. Something else, such as a container, forbids the access.
    Everybody,
}

/// Which of its limits on this host a box exceeds.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum PolicyError {
    /// Too many virtual CPUs or too much memory.
    #[error("{} more than the maximum of {most}{}", request(*resource, *is_option, *asked), resource.unit())]
    TooMuch {
        resource: Resource,
        /// Whether the command line asks for it, and not the box.
        is_option: bool,
        asked: u32,
        most: u32,
    },
    /// The declared disks of the box exceed their limit; both sizes are in bytes.
    #[error("the box asks for disks of {}, but may have only {}", readable(*asked), readable(*most))]
    TooMuchScratch { asked: u64, most: u64 },
}

/// What the size of a VM limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// The virtual CPUs.
    Cpus,
    /// The memory, in MiB.
    Memory,
}

impl Resource {
    /// Returns the unit of an amount, with a space in front of it.
    const fn unit(self) -> &'static str {
        match self {
            Self::Cpus => "",
            Self::Memory => " MiB",
        }
    }
}

/// Returns the subject of the message about too large an amount, and its verb.
fn request(resource: Resource, is_option: bool, asked: u32) -> String {
    match (resource, is_option) {
        (Resource::Cpus, true) => format!("--cpus {asked} is"),
        (Resource::Memory, true) => format!("--memory {asked} is"),
        (Resource::Cpus, false) => format!("the box asks for {asked} CPUs, which is"),
        (Resource::Memory, false) => format!("the box asks for {asked} MiB of memory, which is"),
    }
}
