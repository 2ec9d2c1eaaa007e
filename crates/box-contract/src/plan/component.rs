//! How a component runs: its program, its user, and what it may have.

use serde::{Deserialize, Serialize};

use super::is_default;
use crate::capabilities::Capabilities;
use crate::defaults::AGENT_PORT;
use crate::named_enum;

named_enum! {
    /// One of the two components of a box.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ComponentName {
        /// The AI agent, which every box has.
        Agent "agent",
        /// The business application, which a box may have.
        Business "business",
    }
}

impl ComponentName {
    /// Returns the component with this name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// The kind of the agent. All kinds run alike; this informs people and tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Any OCI image.
    #[default]
    OciImage,
    /// The A3S Code agent.
    A3sCode,
    /// The OpenCode agent.
    Opencode,
    /// A program of the checkout.
    LocalBinary,
    /// A program that was fetched, with a sha256 in the Boxfile.
    RemoteBinary,
}

impl AgentKind {
    /// Returns the port on which an agent of this kind listens by default: [`AGENT_PORT`], or that of
    /// `opencode serve`.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Opencode => 4096,
            _ => AGENT_PORT,
        }
    }
}

named_enum! {
    /// When a program that has ended is started again.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Restart {
        /// Not at all.
        #[default]
        Never "never",
        /// When it has ended with another status than 0.
        OnFailure "on-failure",
        /// Whatever its status is.
        Always "always",
    }
}

impl Restart {
    /// Returns whether a program that has ended with a status is started again.
    pub const fn applies(self, status: u8) -> bool {
        match self {
            Self::Never => false,
            Self::OnFailure => status != 0,
            Self::Always => true,
        }
    }
}

/// How one component runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComponentPlan {
    /// The component's root in the rootfs, absolute.
    pub root: String,
    /// The program and its arguments, never joined into a string. Empty where neither the Boxfile
    /// nor the image names a program (business only).
    pub argv: Vec<String>,
    /// The environment as `NAME=value`, sorted by name, each name once.
    pub env: Vec<String>,
    /// The names of the variables that may be given at launch, sorted, each once. One that [`ComponentPlan::env`] has,
    /// too, has its default there; each other one has to be given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch_env: Vec<String>,
    /// The working directory, absolute; made at start where the image lacks it.
    pub workdir: String,
    /// The user of the program.
    pub user: User,
    /// The host name in the component's UTS namespace.
    pub hostname: String,
    /// Which namespaces the component has for itself.
    pub namespaces: Namespaces,
    /// The component's limits.
    pub limits: Limits,
    /// The limits of each of its processes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rlimits: Rlimits,
    /// The capabilities of its root.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capabilities: Capabilities,
    /// Whether the program is started once the agent is ready (business only); otherwise nothing
    /// starts it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub autostart: bool,
    /// When it is started again (business only).
    #[serde(default, skip_serializing_if = "is_default")]
    pub restart: Restart,
    /// The number of the signal that asks its program to end; `None` for SIGTERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<u8>,
    /// The TCP port on which the agent listens; init bridges the vsock port of the same number
    /// to it. Nothing where the component offers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When the component is ready. `None`: as soon as it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

impl ComponentPlan {
    /// Returns the value of a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// Sets a variable, instead of the one of its name that is there.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        let assigned = format!("{name}=");
        self.env.retain(|it| !it.starts_with(&assigned));
        self.env.push(assigned + value);
    }
}

/// A numeric user and group; names are resolved against the image when the box is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct User {
    /// The numeric user id in the guest.
    pub uid: u32,
    /// The numeric id of the primary group in the guest.
    pub gid: u32,
    /// Supplementary group ids, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<u32>,
}

impl User {
    /// The superuser of the guest.
    pub const ROOT: Self = Self { uid: 0, gid: 0, groups: Vec::new() };
}

/// Which Linux namespaces a component has for itself; without one it shares init's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespaces {
    /// Its own mounts. Off, its mounts are seen by the other component, too.
    pub mount: bool,
    /// Its own process ids.
    pub pid: bool,
    /// Its own System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Its own host name.
    pub uts: bool,
    /// Its own network. Off, agent and business talk over loopback.
    pub net: bool,
}

impl Namespaces {
    /// All but a network.
    pub const DEFAULT: Self = Self { mount: true, pid: true, ipc: true, uts: true, net: false };
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// cgroup v2 `memory.max`, in bytes.
    pub memory_bytes: u64,
    /// cgroup v2 `cpu.weight`, 1 to 10000.
    pub cpu_weight: u16,
    /// cgroup v2 `pids.max`.
    pub pids: u64,
}

/// The limits of each process of a component, as `setrlimit(2)` has them; each value is the soft and
/// the hard limit at once. Nothing: what holds for every workload of a box.
///
/// These are no substitute for [`Limits`]: a program gets all of them again with every process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rlimits {
    /// Open files (`RLIMIT_NOFILE`). The kernel refuses more than its `fs.nr_open`, 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nofile: Option<u64>,
    /// Processes and threads of the same user, in the whole box (`RLIMIT_NPROC`). The kernel does
    /// not hold root to it, so a plan that asks for it as root is not started (see
    /// [`super::RunPlan::unsupported`]); [`Limits::pids`] holds everybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nproc: Option<u64>,
    /// Address space, in bytes (`RLIMIT_AS`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_bytes: Option<u64>,
    /// Processor time, in seconds, after which the process is killed (`RLIMIT_CPU`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// The size of a core dump, in bytes (`RLIMIT_CORE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_bytes: Option<u64>,
    /// The size of a file that is written, in bytes (`RLIMIT_FSIZE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsize_bytes: Option<u64>,
}

/// The service of gRPC by which agents of A3S are talked to.
pub const A3S_SERVICE: &str = "a3s.code.agent.v1.CodeAgentService";

/// How init finds out that a component is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Health {
    /// A TCP connection to loopback on this port succeeds.
    Tcp {
        /// The TCP port on loopback.
        port: u16,
    },
    /// `GET path` on loopback on this port is answered with a 2xx status.
    Http {
        /// The TCP port on loopback.
        port: u16,
        /// The path, with its leading slash.
        path: String,
    },
    /// The standard health check of gRPC on this port, without encryption, is answered with `SERVING`.
    Grpc {
        /// The TCP port on loopback.
        port: u16,
        /// The service that is asked for; empty for the whole server.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        service: String,
    },
    /// `HealthCheck` of the interface of A3S agents ([`A3S_SERVICE`]), by gRPC on this port, is answered with `HEALTHY`.
    A3s {
        /// The TCP port on loopback.
        port: u16,
    },
    /// This program, run inside the component, exits with 0.
    Exec {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}
