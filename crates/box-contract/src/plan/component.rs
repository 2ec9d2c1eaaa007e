//! The plan of a component: its program, its user, its namespaces and its limits.

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

/// The kind of the agent. It is informative: agents of all kinds run alike.
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
    /// A program in the checkout.
    LocalBinary,
    /// A downloaded program, with its SHA-256 in the Boxfile.
    RemoteBinary,
}

impl AgentKind {
    /// Returns the default port of an agent of this kind: [`AGENT_PORT`], or the default of `opencode serve`.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Opencode => 4096,
            _ => AGENT_PORT,
        }
    }
}

named_enum! {
    /// When a program is restarted after its end.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Restart {
        /// Not at all.
        #[default]
        Never "never",
        /// After an exit status other than 0.
        OnFailure "on-failure",
        /// After any exit status.
        Always "always",
    }
}

impl Restart {
    /// Returns whether a program is restarted after this exit status.
    pub const fn applies(self, status: u8) -> bool {
        match self {
            Self::Never => false,
            Self::OnFailure => status != 0,
            Self::Always => true,
        }
    }
}

named_enum! {
    /// Whether the programs of a component can change its system: the root directory itself, the
    /// [`SYSTEM_DIRECTORIES`](super::SYSTEM_DIRECTORIES) and the [`PACKAGE_DATABASES`](super::PACKAGE_DATABASES).
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum SystemDirectories {
        /// As far as the permissions of the files allow it. The changes are in the component's writable layer.
        #[default]
        Writable "writable",
        /// Not at all, whoever the user is.
        ReadOnly "read-only",
    }
}

/// The plan of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComponentPlan {
    /// The absolute path of the component's root directory in the rootfs.
    pub root: String,
    /// The program and its arguments, never joined into one string. Empty if neither the Boxfile nor the image declares
    /// a program (business only).
    pub argv: Vec<String>,
    /// The environment as `NAME=value`, sorted by name, without duplicates.
    pub env: Vec<String>,
    /// The names of the variables that can be set at launch, sorted, without duplicates. [`ComponentPlan::env`] has the
    /// default of a variable. A variable without a default must be set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launch_env: Vec<String>,
    /// The working directory, absolute. Init creates it if the image lacks it.
    pub workdir: String,
    /// The user of the program.
    pub user: User,
    /// The host name in the component's UTS namespace.
    pub hostname: String,
    /// The namespaces that the component does not share with init.
    pub namespaces: Namespaces,
    /// The limits of the component as a whole.
    pub limits: Limits,
    /// The limits of each process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rlimits: Rlimits,
    /// The capabilities of the component's root user.
    #[serde(default, skip_serializing_if = "is_default")]
    pub capabilities: Capabilities,
    /// Whether the component's programs can change its system.
    #[serde(default, skip_serializing_if = "is_default")]
    pub system: SystemDirectories,
    /// Whether init starts the program once the agent is ready (business only). If false, the program never starts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub autostart: bool,
    /// When the program is restarted (business only).
    #[serde(default, skip_serializing_if = "is_default")]
    pub restart: Restart,
    /// The number of the signal that asks the program to end. `None` means SIGTERM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<u8>,
    /// The TCP port on which the component listens. Init forwards the vsock port of the same number to it. `None` if
    /// the component offers no port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The health check. `None` means that the component is ready as soon as its program is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

impl ComponentPlan {
    /// Returns the value of a variable of the environment.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='))
    }

    /// Sets a variable of the environment: removes its previous value, and appends the new one. The list is then not sorted.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        let assigned = format!("{name}=");
        self.env.retain(|it| !it.starts_with(&assigned));
        self.env.push(assigned + value);
    }
}

/// A numeric user and its groups. Names are resolved against the image when the box is built.
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
    /// The guest's superuser.
    pub const ROOT: Self = Self { uid: 0, gid: 0, groups: Vec::new() };
}

/// The Linux namespaces that a component does not share with init. See
/// [namespaces(7)](https://man7.org/linux/man-pages/man7/namespaces.7.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespaces {
    /// Mount namespace. Without it, the other component sees this component's mounts, too.
    pub mount: bool,
    /// PID namespace.
    pub pid: bool,
    /// IPC namespace: System V IPC and POSIX message queues.
    pub ipc: bool,
    /// UTS namespace: the host name.
    pub uts: bool,
    /// Network namespace. Without it, agent and business reach each other over loopback.
    pub net: bool,
}

impl Namespaces {
    /// Separate namespaces of all kinds except the network.
    pub const DEFAULT: Self = Self { mount: true, pid: true, ipc: true, uts: true, net: false };
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The limits of a component as a whole. See [cgroup v2](https://docs.kernel.org/admin-guide/cgroup-v2.html).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// `memory.max`, in bytes.
    pub memory_bytes: u64,
    /// `cpu.weight`, 1 to 10000.
    pub cpu_weight: u16,
    /// `pids.max`.
    pub pids: u64,
}

/// The limits of each process of a component, as in
/// [setrlimit(2)](https://man7.org/linux/man-pages/man2/setrlimit.2.html). Each value is both the soft and the hard
/// limit. `None` means the default of all processes of a box.
///
/// They are no substitute for [`Limits`], because a program can exceed each of them in total by starting more processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Rlimits {
    /// Open files (`RLIMIT_NOFILE`). The kernel refuses values over its `fs.nr_open`, 1048576.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nofile: Option<u64>,
    /// Processes and threads of the same user in the whole box (`RLIMIT_NPROC`). The kernel does not apply this limit
    /// to root, so a plan that sets it for a root program is not started (see [`super::RunPlan::unsupported`]).
    /// [`Limits::pids`] applies to all users.
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
    /// The size of a written file, in bytes (`RLIMIT_FSIZE`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fsize_bytes: Option<u64>,
}

/// The full name of the gRPC service of A3S agents.
pub const A3S_SERVICE: &str = "a3s.code.agent.v1.CodeAgentService";

/// The check by which init detects that a component is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Health {
    /// A TCP connection to this port on loopback succeeds.
    Tcp {
        /// The TCP port on loopback.
        port: u16,
    },
    /// The response to `GET path` from this port on loopback has a 2xx status.
    Http {
        /// The TCP port on loopback.
        port: u16,
        /// The path, with its leading slash.
        path: String,
    },
    /// The standard [gRPC health check](https://github.com/grpc/grpc/blob/master/doc/health-checking.md) on this port,
    /// without TLS, returns `SERVING`.
    Grpc {
        /// The TCP port on loopback.
        port: u16,
        /// The name of the checked service. Empty means the whole server.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        service: String,
    },
    /// `HealthCheck` of the A3S agents' gRPC service ([`A3S_SERVICE`]) on this port returns `HEALTHY`.
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
