//! The layers of the jail, and their state.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

use box_contract::named_enum;
use safe_text::shown;
use serde::{Deserialize, Serialize};

named_enum! {
    /// One layer of the jail.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Layer {
        /// A control group that bounds memory, processes and CPU time (cgroups(7), version 2).
        ControlGroup "control-group",
        /// A user namespace: the process's capabilities have no effect outside of it.
        UserNamespace "user-namespace",
        /// A PID namespace: other processes have no id that the process could use.
        PidNamespace "pid-namespace",
        /// A namespace of System V objects and POSIX message queues.
        IpcNamespace "ipc-namespace",
        /// A network namespace in which no interface is up.
        NetworkNamespace "network-namespace",
        /// A namespace of host names.
        UtsNamespace "uts-namespace",
        /// A namespace of control groups: the host's groups are invisible.
        CgroupNamespace "cgroup-namespace",
        /// A mount namespace with a root directory that has only what the VM needs.
        MountNamespace "mount-namespace",
        /// A user and a group that no other process has, or the owner of the shares. Only if root starts the VM.
        UserId "user-id",
        /// No capabilities, and no way to gain any.
        Capabilities "capabilities",
        /// Limits on what a process may use (setrlimit(2)).
        ResourceLimits "resource-limits",
        /// Landlock rules: a list of files that may be opened, and no TCP.
        Landlock "landlock",
        /// A filter that kills the process at a system call that the VMM does not need.
        SystemCalls "system-calls",
    }
}

/// A layer that is unavailable on this host, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The layer.
    pub layer: Layer,
    /// The reason, as text for the user.
    pub reason: String,
}

impl Missing {
    /// Records that a layer is missing.
    pub fn new(layer: Layer, reason: impl fmt::Display) -> Self {
        Self { layer, reason: reason.to_string() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.layer.name(), self.reason)
    }
}

/// The reaction to a missing layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Refuse to start the VM.
    Require,
    /// Start the VM, and report the missing layers.
    BestEffort,
    /// Like [`Policy::BestEffort`], and log a system call that the filter forbids.
    Trace,
}

impl Policy {
    /// Returns the policy of a run that sets none.
    pub const fn default_of(is_root: bool) -> Self {
        if is_root { Self::Require } else { Self::BestEffort }
    }
}

/// Why directories of the host cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Unshared {
    /// A directory cannot be served.
    #[error("{reason}")]
    Directory {
        /// The directory and the reason.
        reason: String,
        /// Whether the cause is a lack of permission.
        is_forbidden: bool,
    },
    /// A file of the box cannot be opened again, which writable shares require.
    #[error("the box does not exist any more: {0}")]
    Box(String),
    /// The host allows no mount namespace. Directories are shared only in a mount namespace, because it hides the rest
    /// of the host.
    #[error("directories are shared only in a mount namespace, which this host does not give: {0}")]
    Host(String),
}

impl Unshared {
    /// Returns the error for a directory. `failed` is the participle for the message: `shared` or `kept`.
    pub(super) fn directory(path: &Path, failed: &str, error: &io::Error) -> Self {
        let is_forbidden = error.kind() == ErrorKind::PermissionDenied;
        Self::Directory {
            reason: format!("{} cannot be {failed}: {error}", path.display()),
            is_forbidden,
        }
    }
}

/// The report of a VMM process on its jail, before the guest's first instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The missing layers.
    pub missing: Vec<Missing>,
    /// The version of the kernel's Landlock ABI. `None` if Landlock is missing.
    pub landlock_abi: Option<i32>,
    /// Why a directory of the host cannot be served. `None` if all can be. If set, the VM does not start.
    #[serde(default)]
    pub unshared: Option<Unshared>,
    /// The user and the group of the process, as seen in its user namespace.
    #[serde(default)]
    pub ids: (u32, u32),
    /// The time that it took to set up the jail, in nanoseconds.
    pub taken_ns: u64,
}

/// Returns a list of missing layers as text.
pub(crate) fn missing(layers: &[Missing]) -> String {
    layers.iter().map(|it| shown(&it.to_string())).collect::<Vec<_>>().join(", ")
}
