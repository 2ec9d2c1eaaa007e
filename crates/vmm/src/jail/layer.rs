//! The layers of the jail, and what is known of them.

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
        /// A user namespace: no capability in it counts outside of it.
        UserNamespace "user-namespace",
        /// A PID namespace: other processes cannot be named.
        PidNamespace "pid-namespace",
        /// A namespace of System V objects and POSIX message queues.
        IpcNamespace "ipc-namespace",
        /// A network namespace without any interface that is up.
        NetworkNamespace "network-namespace",
        /// A namespace of host names.
        UtsNamespace "uts-namespace",
        /// A namespace of control groups: the host's are not seen.
        CgroupNamespace "cgroup-namespace",
        /// A mount namespace, and in it a root directory with nothing but what the machine needs.
        MountNamespace "mount-namespace",
        /// A user and a group that nothing else has, where root starts the machine.
        UserId "user-id",
        /// No capabilities, and none to get.
        Capabilities "capabilities",
        /// Limits on what a process may use (setrlimit(2)).
        ResourceLimits "resource-limits",
        /// Rules of Landlock: which files may be opened, and no TCP.
        Landlock "landlock",
        /// A filter that kills the process at a system call that no machine makes.
        SystemCalls "system-calls",
    }
}

/// A layer that this host does not give, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The layer.
    pub layer: Layer,
    /// The reason, for people.
    pub reason: String,
}

impl Missing {
    /// Notes why a layer is missing.
    pub fn new(layer: Layer, reason: impl fmt::Display) -> Self {
        Self { layer, reason: reason.to_string() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.layer.name(), self.reason)
    }
}

/// The treatment of a host on which a layer is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Not to start the machine.
    Require,
    /// To start it, and to say which.
    BestEffort,
    /// As [`Policy::BestEffort`]; a system call that the filter forbids is named.
    Trace,
}

impl Policy {
    /// Returns that of a run for which none was chosen.
    pub const fn default_of(is_root: bool) -> Self {
        if is_root { Self::Require } else { Self::BestEffort }
    }
}

/// Why a directory of the host cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum Unshared {
    /// This one cannot.
    #[error("{reason}")]
    Directory {
        /// Which one, and why.
        reason: String,
        /// Whether this user may not look at it.
        is_forbidden: bool,
    },
    /// The box's own files cannot be opened again beside them.
    #[error("the box is not there any more: {0}")]
    Box(String),
    /// The host gives no mount namespace, and they are shared only where nothing else of the host is.
    #[error("directories are shared only in a mount namespace, which this host does not give: {0}")]
    Host(String),
}

impl Unshared {
    /// Returns why a directory cannot be shared or kept, in one word `failed`.
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
    /// The layers that are not there.
    pub missing: Vec<Missing>,
    /// The version of Landlock's interface that is enforced.
    pub landlock_abi: Option<i32>,
    /// Why a directory of the host cannot be served; the machine does not start then.
    #[serde(default)]
    pub unshared: Option<Unshared>,
    /// The user and the group that it is to itself.
    #[serde(default)]
    pub ids: (u32, u32),
    /// How long it took to put up, in nanoseconds.
    pub taken_ns: u64,
}

/// Lists layers of the jail.
pub(crate) fn missing(layers: &[Missing]) -> String {
    layers.iter().map(|it| shown(&it.to_string())).collect::<Vec<_>>().join(", ")
}
