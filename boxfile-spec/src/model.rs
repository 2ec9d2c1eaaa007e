//! The typed result: what a valid Boxfile declares, with every default filled in.

use std::collections::BTreeMap;

use crate::Spanned;

/// A valid Boxfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boxfile {
    /// The box's name: lower-case letters, digits and inner hyphens, at most 63.
    pub name: String,
    /// The AI agent.
    pub agent: Component,
    /// The business application.
    pub business: Option<Component>,
    /// The skills, sorted by name; each name once.
    pub skills: Vec<Skill>,
    /// The virtual machine's size; its memory exceeds the sum of the components' limits.
    pub vm: Vm,
    /// How the images lie in the rootfs.
    pub layout: Layout,
    /// What each phase of the start may take.
    pub budget: Budget,
    /// The kernel that the box boots; nothing where the builder is to choose.
    pub kernel: Option<Kernel>,
}

/// The agent or the business application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// The image that holds the component's files.
    pub image: Spanned<ImageRef>,
    /// Replaces the image's entrypoint; at least the program.
    pub entrypoint: Option<Vec<String>>,
    /// Replaces the image's command; may be empty.
    pub args: Option<Vec<String>>,
    /// Environment variables on top of the image's. No name and no value contains NUL.
    pub env: BTreeMap<String, String>,
    /// Replaces the image's working directory; absolute.
    pub workdir: Option<String>,
    /// The TCP port on which the agent listens, 4088 by default; nothing for the business
    /// application.
    pub port: Option<u16>,
    /// When the agent counts as ready: by default as soon as its port accepts a connection.
    /// Nothing: as soon as it is started. Always nothing for the business application.
    pub health: Option<Health>,
    /// Which namespaces the component has for itself.
    pub namespaces: Namespaces,
    /// The host name in the component's UTS namespace (RFC 1123 label): `agent-host` or
    /// `business-host` by default.
    pub hostname: String,
    /// What the component may take.
    pub limits: Limits,
}

/// Where an image comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageRef {
    /// An OCI image layout directory: `oci:PATH` or `oci:PATH:TAG`.
    OciLayout {
        /// The directory; a relative one is relative to the Boxfile. Neither empty nor with NUL.
        path: String,
        /// Which of the layout's images, where it holds several.
        tag: Option<String>,
    },
}

/// How the launcher finds out that the agent is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// A TCP connection to loopback succeeds.
    Tcp {
        /// The port.
        port: u16,
    },
    /// `GET path` on loopback is answered with a 2xx status.
    Http {
        /// The port.
        port: u16,
        /// The path: it starts with `/` and has neither white space nor control characters.
        path: String,
    },
    /// This program, run inside the component, exits with 0.
    Exec {
        /// The program and its arguments; at least the program.
        argv: Vec<String>,
    },
}

/// Which Linux namespaces a component has for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces {
    /// Its own mounts.
    pub mount: bool,
    /// Its own process ids.
    pub pid: bool,
    /// Its own System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Its own host name.
    pub uts: bool,
    /// Its own network. Off by default, so that agent and business can talk over loopback.
    pub net: bool,
}

impl Default for Namespaces {
    fn default() -> Self {
        Self { mount: true, pid: true, ipc: true, uts: true, net: false }
    }
}

/// What a component may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory in bytes, from 4 MiB to 64 GiB (cgroup v2 `memory.max`).
    pub memory: u64,
    /// Share of the CPU against the other component, 1 to 10000 (cgroup v2 `cpu.weight`).
    pub cpu_weight: u16,
    /// Greatest number of processes and threads, 1 to 4194304 (cgroup v2 `pids.max`; the upper
    /// bound is the kernel's `PID_MAX_LIMIT`).
    pub pids: u64,
}

/// A directory with a `SKILL.md` that is baked into the box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The skill's name, by the same rule as the box's.
    pub name: String,
    /// The directory, relative to the Boxfile's; it has no `..`.
    pub path: Spanned<String>,
}

/// The virtual machine's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vm {
    /// Virtual CPUs, 1 to 16; 2 by default.
    pub cpus: u8,
    /// Memory in bytes: whole MiB, from 64 MiB to 64 GiB. By default the sum of the components'
    /// limits, rounded up to MiB, and 256 MiB for the kernel and init.
    pub memory: u64,
}

/// How the images lie in the rootfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// Each image keeps its whole root.
    #[default]
    Split,
}

/// What each phase of the start may take, in milliseconds, never 0; a phase without a figure is
/// not limited. No phase may take more than `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The launcher started → the virtual CPU runs.
    pub vmm: Option<u64>,
    /// → init's first instruction.
    pub kernel: Option<u64>,
    /// → the agent's program is executed.
    pub init: Option<u64>,
    /// → the health check has passed.
    pub ready: Option<u64>,
    /// The launcher started → the agent is ready; 5000 by default.
    pub total: Option<u64>,
}

/// The kernel that a box boots; at least one of the two is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel file; a relative path is relative to the Boxfile.
    pub path: Option<Spanned<String>>,
    /// The sha256 that the file must have.
    pub sha256: Option<[u8; 32]>,
}
