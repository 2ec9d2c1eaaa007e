//! The run plan: all decisions for the launcher and init, made at build time.
//!
//! The plan contains all declarations of a Boxfile. A declaration is carried out or refused, never ignored: the launcher
//! and init do not start a box with a declaration that this version does not enforce ([`RunPlan::unsupported`]), or with
//! a value that no version could carry out ([`RunPlan::check`]).
//!
//! The JSON does not contain a field for an absent declaration. So when a later version adds a declaration, boxes that do
//! not use it keep their digests.

mod agent_config;
mod check;
mod component;
mod difference;
mod reserved;
mod resources;
mod sandbox;
mod services;
mod ssh_agent;
mod system;
#[cfg(test)]
pub(crate) mod tests;
mod unsupported;
mod verify;

use serde::{Deserialize, Serialize};

use crate::Budget;
use crate::logs::LOGS_PATH;
use crate::task::TASK_PATH;

pub use agent_config::{
    AGENT_CONFIG_PATH, AGENT_CONFIG_VARIABLE, AGENT_SUFFIX, AGENTS_PATH, AgentDefinitionPlan,
    HookEvent, HookPlan, McpPlan,
};
pub use check::{MAX_PLAN, MAX_SCRATCH, PlanError};
pub use component::{
    A3S_SERVICE, AgentKind, ComponentName, ComponentPlan, Health, Limits, Namespaces, Restart,
    Rlimits, SystemDirectories, User,
};
pub use difference::{FieldDifference, differences};
pub use reserved::reserved_place;
pub use resources::{
    Access, CapPlan, LogsPlan, NetworkLimits, NetworkMode, NetworkPlan, PeerPlan, PublishPlan,
    Scope, ScratchPlan, SecretDelivery, SecretPlan, SharePlan, SkillMode, SkillPlan, TaskPlan,
    VerifyPlan, VolumePlan,
};
pub use sandbox::{SandboxFallback, SandboxPlan, SandboxPreset};
pub use services::{CAP_PATH, CredentialPlan, ServicePlan};
pub use ssh_agent::{SSH_AGENT_SOCKET, SSH_AGENT_VARIABLE, SshAgentPlan};
pub use system::{PACKAGE_DATABASES, SYSTEM_DIRECTORIES, system_part};
pub use unsupported::Unsupported;
pub use verify::{TaskVerification, can_be_kept};

/// The path of the plan's JSON in the rootfs of a box before [`SEGMENTED_EPOCH`](crate::manifest::SEGMENTED_EPOCH).
pub const PLAN_PATH: &str = "/boxbuild/plan.json";
/// The directory of the images' package databases in a rootfs of the layout "merged", with a subdirectory for each
/// component. For example, `/boxbuild/packages/agent/var/lib/dpkg/status`.
pub const PACKAGES_PATH: &str = "/boxbuild/packages";
/// The directory of the rootfs that contains the files that the box adds to each component's root. See [`system_path`].
const SYSTEM_PATH: &str = "/boxbuild/system";
/// The directory of the rootfs in which init mounts the layers of the components' roots.
pub const RUN_PATH: &str = "/run";
/// The directory of skills in each component, and of baked skills in the rootfs.
pub const SKILLS_PATH: &str = "/a3s/skills";
/// The required file in the directory of a skill (<https://agentskills.io/specification>).
pub const SKILL_DEFINITION: &str = "SKILL.md";
/// The file that lists the names of the tools that the agent may see, as a JSON array. Without the file, the agent may
/// see all tools.
pub const TOOLS_PATH: &str = "/a3s/tools.json";
/// The program by which the agent runs commands in the business component. The path is in the agent's root.
pub const BOX_EXEC_PATH: &str = "/a3s/bin/box-exec";
/// The socket to which [`BOX_EXEC_PATH`] connects. Only the agent's user can open it.
pub const EXEC_SOCKET_PATH: &str = "/a3s/run/box-exec.sock";
/// The directory of the rootfs that contains the components' roots: one per component, or one for both in the layout
/// "merged".
pub const ROOTS_PATH: &str = "/roots";
/// The path of init in the first root, which is a directory in the VMM's memory. libkrun's kernel command line contains
/// this path.
pub const INIT_PATH: &str = "/init.krun";
/// The file of the first root that the launcher writes for one boot. It can be opened once. It contains the nonce, a
/// byte that is [`MOUNTS_FOLLOW`](crate::wire::MOUNTS_FOLLOW) or [`NO_MOUNTS`](crate::wire::NO_MOUNTS), and the
/// verified bytes of the box's config ([`BoxConfig`](crate::BoxConfig)). The init of a box of epoch 3 does not read the
/// config.
pub const NONCE_PATH: &str = "/nonce";
/// The length of the nonce, in hexadecimal digits.
pub const NONCE_LENGTH: usize = 64;
/// The mount point of the rootfs in the first root.
pub const NEW_ROOT: &str = "/newroot";
/// The vsock port at which the host listens for init's control connection.
pub const CONTROL_PORT: u32 = 1024;

/// The maximum number of simultaneous connections to the agent's port.
pub const MAX_CLIENTS: usize = 64;

/// Returns the directory of the rootfs with the files that the box adds to a component's root. Init mounts it as a
/// layer above the image.
pub fn system_path(component: ComponentName) -> String {
    format!("{SYSTEM_PATH}/{}", component.name())
}

/// The plan of all work of the launcher and init, from the first mount to power-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunPlan {
    /// The box's name.
    pub name: String,
    /// The layout of the images in the rootfs.
    pub layout: Layout,
    /// The kind of the agent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub agent_kind: AgentKind,
    /// The names of the tools that the agent may see, sorted. Empty means all tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The agent. The box is ready when the agent is ready.
    pub agent: ComponentPlan,
    /// The business component, in which commands run. Its program starts only with [`ComponentPlan::autostart`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business: Option<ComponentPlan>,
    /// The skills under [`SKILLS_PATH`], sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillPlan>,
    /// The host's directories that components see, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<SharePlan>,
    /// The scratch disks, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<ScratchPlan>,
    /// The volumes of the host, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<VolumePlan>,
    /// The size in bytes of the disk for the files that the components write to their roots. `None` if the Boxfile leaves
    /// the disk to the launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// The access of the components to the host's network.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: NetworkPlan,
    /// The ports that clients on the host can connect to, sorted, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<PublishPlan>,
    /// The secrets, sorted by name. Their values are set at launch and are never in a box.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretPlan>,
    /// The HTTP APIs that the components reach through the host, sorted by name. [`ServicePlan::env`] is in the environment of the
    /// component, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServicePlan>,
    /// The components that sign with the keys of the host's SSH agent. `None` if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh_agent: Option<SshAgentPlan>,
    /// The agent's task, in `/task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlan>,
    /// The logs in `/logs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<LogsPlan>,
    /// The capabilities in `/cap`, at most one of each kind, in the order of [`CapPlan`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caps: Vec<CapPlan>,
    /// The policy for commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxPlan>,
    /// The MCP servers that the agent uses, sorted by name. They are in [`AGENT_CONFIG_PATH`], too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpPlan>,
    /// The agent definitions in [`AGENTS_PATH`], sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentDefinitionPlan>,
    /// The programs that the agent runs at events, each event once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookPlan>,
    /// The VM's size.
    pub vm: Vm,
    /// The time limit of each phase of the start.
    pub budget: Budget,
}

impl RunPlan {
    /// Returns the variables that can be set at launch, each with its component, beginning with the agent. The position
    /// of a variable here is the index in [`Variable`](crate::wire::Variable).
    pub fn launch_variables(&self) -> impl Iterator<Item = (ComponentName, &str)> {
        self.components().flat_map(|(component, plan)| {
            plan.launch_env.iter().map(move |name| (component, name.as_str()))
        })
    }

    /// Returns the plan of a component, if the box has it.
    pub const fn component(&self, name: ComponentName) -> Option<&ComponentPlan> {
        match name {
            ComponentName::Agent => Some(&self.agent),
            ComponentName::Business => self.business.as_ref(),
        }
    }

    /// Returns the plan of a component for changes, if the box has it.
    pub const fn component_mut(&mut self, name: ComponentName) -> Option<&mut ComponentPlan> {
        match name {
            ComponentName::Agent => Some(&mut self.agent),
            ComponentName::Business => self.business.as_mut(),
        }
    }

    /// Returns the name of a declared volume on the host: `BOX.VOLUME`. So a box gets no volume of a box with another name.
    pub fn host_volume(&self, volume: &VolumePlan) -> String {
        format!("{}.{}", self.name, volume.name)
    }

    /// Returns the mount points of shares, volumes and scratch disks in a component.
    pub fn mount_points(&self, component: ComponentName) -> impl Iterator<Item = &str> {
        self.mounts(component).map(|(_, guest)| guest)
    }

    /// Returns the mount points of writable shares, volumes and scratch disks in a component.
    pub fn writable_mount_points(&self, component: ComponentName) -> impl Iterator<Item = &str> {
        let writable = self.mounts(component).filter(|(access, _)| *access == Access::ReadWrite);
        writable.map(|(_, guest)| guest)
    }

    fn mounts(&self, component: ComponentName) -> impl Iterator<Item = (Access, &str)> {
        let shares = self.shares.iter().map(|it| (it.scope, it.access, &it.guest));
        let volumes = self.volumes.iter().map(|it| (it.scope, Access::ReadWrite, &it.guest));
        let disks = self.scratch.iter().map(|it| (it.scope, Access::ReadWrite, &it.guest));
        let all = shares.chain(volumes).chain(disks);
        let own = all.filter(move |(scope, ..)| scope.includes(component));
        own.map(|(_, access, guest)| (access, guest.as_str()))
    }

    /// Returns the paths at which the box itself gives a component something to write: the
    /// [`writable_mount_points`](Self::writable_mount_points), and the agent's result, trajectories and requests.
    pub fn writable_paths(&self, component: ComponentName) -> impl Iterator<Item = &str> {
        let is_agent = component == ComponentName::Agent;
        let own = [
            (self.task.is_some() && is_agent, TASK_PATH),
            (self.logs.is_some() && is_agent, LOGS_PATH),
            (self.has_file_requests(), CAP_PATH),
        ];
        let own = own.into_iter().filter(|(is_there, _)| *is_there).map(|(_, at)| at);
        self.writable_mount_points(component).chain(own)
    }

    /// Returns the verification of the task, if it runs in this component.
    pub fn verification_of(&self, component: ComponentName) -> Option<&VerifyPlan> {
        let verify = self.task.as_ref().and_then(|it| it.verify.as_ref());
        verify.filter(|it| it.component == component)
    }

    /// Returns whether a component contains [`BOX_EXEC_PATH`], which runs commands in the other component.
    pub fn calls_from(&self, component: ComponentName) -> bool {
        component == ComponentName::Agent && self.business.is_some()
    }

    /// Returns the components that the box has, in the order of [`ComponentName::ALL`].
    pub fn components(&self) -> impl Iterator<Item = (ComponentName, &ComponentPlan)> {
        ComponentName::ALL.into_iter().filter_map(|name| Some((name, self.component(name)?)))
    }

    /// Returns the sum of the components' memory limits, in bytes.
    pub fn memory_limits(&self) -> u64 {
        let limits = self.components().map(|(_, plan)| plan.limits.memory_bytes);
        limits.fold(0, u64::saturating_add)
    }
}

/// The layout of the images in the rootfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One root per image: `/roots/agent` and `/roots/business`.
    #[default]
    Split,
    /// One root for both images: `/roots/merged`. Each component has a separate writable layer over it. The rules for
    /// conflicts are not in the plan, because the builder has already merged the images.
    Merged,
}

/// The VM's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vm {
    /// Virtual CPUs, 1 to 16 ([`crate::rules::MAX_CPUS`]).
    pub cpus: u8,
    /// Memory in MiB.
    pub memory_mib: u32,
}

/// Returns whether a value equals its default, so that the JSON omits it.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
