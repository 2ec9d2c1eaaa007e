//! The run plan: everything that init does, decided at build time.

use serde::{Deserialize, Serialize};

use crate::Budget;

/// Where the plan lies in the rootfs, as JSON.
pub const PLAN_PATH: &str = "/boxbuild/plan.json";
/// Where baked skills lie in the rootfs and in each component.
pub const SKILLS_PATH: &str = "/a3s/skills";
/// The directory of the rootfs that holds one root per component (layout "split").
pub const ROOTS_PATH: &str = "/roots";
/// The vsock port of the host on which init reports; the host listens.
pub const CONTROL_PORT: u32 = 1024;
/// The port on which an agent listens unless the Boxfile names another.
pub const DEFAULT_AGENT_PORT: u16 = 4088;

/// What init does, from the first mount to power-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunPlan {
    /// The box's name.
    pub name: String,
    /// How the images lie in the rootfs.
    pub layout: Layout,
    /// The component that is started, and whose readiness is the box's.
    pub agent: ComponentPlan,
    /// The component in which commands run; nothing of it is started by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business: Option<ComponentPlan>,
    /// The skills under [`SKILLS_PATH`], sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillPlan>,
    /// The virtual machine's size.
    pub vm: Vm,
    /// What each phase of the start may take.
    pub budget: Budget,
}

impl RunPlan {
    /// Returns the plan of a component, if the box has it.
    pub const fn component(&self, name: ComponentName) -> Option<&ComponentPlan> {
        match name {
            ComponentName::Agent => Some(&self.agent),
            ComponentName::Business => self.business.as_ref(),
        }
    }
}

/// How the images lie in the rootfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Each image keeps its whole root: `/roots/agent` and `/roots/business`.
    Split,
}

/// One of the two components of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentName {
    /// The AI agent.
    Agent,
    /// The business application.
    Business,
}

impl ComponentName {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::Agent, Self::Business];

    /// Returns `agent` or `business`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Business => "business",
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
    /// The working directory, absolute; made at start where the image lacks it.
    pub workdir: String,
    /// Who the program runs as.
    pub user: User,
    /// The host name in the component's UTS namespace.
    pub hostname: String,
    /// Which namespaces the component has for itself.
    pub namespaces: Namespaces,
    /// What the component may take.
    pub limits: Limits,
    /// The TCP port on which the agent listens; init bridges the vsock port of the same number
    /// to it. Nothing where the component offers none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// When the component counts as ready. Nothing: as soon as it is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}

/// A numeric user and group; names are resolved against the image when the box is built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Primary group id.
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

impl Default for Namespaces {
    fn default() -> Self {
        Self { mount: true, pid: true, ipc: true, uts: true, net: false }
    }
}

/// What a component may take.
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

/// How init finds out that a component is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Health {
    /// A TCP connection to loopback on this port succeeds.
    Tcp {
        /// The port.
        port: u16,
    },
    /// `GET path` on loopback on this port is answered with a 2xx status.
    Http {
        /// The port.
        port: u16,
        /// The path, with its leading slash.
        path: String,
    },
    /// This program, run inside the component, exits with 0.
    Exec {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

/// A skill of the box: a directory under [`SKILLS_PATH`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillPlan {
    /// The directory's name.
    pub name: String,
}

/// The virtual machine's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vm {
    /// Virtual CPUs, 1 to 16 (libkrunfw is built with `NR_CPUS=16`).
    pub cpus: u8,
    /// Memory in MiB.
    pub memory_mib: u32,
}
