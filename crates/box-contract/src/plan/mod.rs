//! The run plan: everything that the launcher and init do, decided at build time.
//!
//! It carries all that a Boxfile can declare. What a version does not enforce, [`RunPlan::unsupported`]
//! names, and neither the launcher nor init starts such a box: a declaration is carried out or
//! refused, never ignored. What no version could carry out, [`RunPlan::check`] refuses.
//!
//! A declaration that is absent leaves no trace in the JSON, so that a box which does without it
//! keeps its digest when the language grows.

mod check;
mod component;
mod difference;
mod reserved;
mod resources;
mod sandbox;
#[cfg(test)]
pub(crate) mod tests;
mod unsupported;

use serde::{Deserialize, Serialize};

use crate::Budget;

pub use check::{MAX_PLAN, MAX_SCRATCH, PlanError};
pub use component::{
    A3S_SERVICE, AgentKind, ComponentName, ComponentPlan, Health, Limits, Namespaces, Restart,
    Rlimits, User,
};
pub use difference::{FieldDifference, differences};
pub use reserved::reserved_place;
pub use resources::{
    Access, CapPlan, LogsPlan, NetworkLimits, NetworkMode, NetworkPlan, PeerPlan, Scope,
    ScratchPlan, SecretDelivery, SecretPlan, SharePlan, SkillMode, SkillPlan, TaskPlan,
};
pub use sandbox::{SandboxFallback, SandboxPlan, SandboxPreset};
pub use unsupported::Unsupported;

/// Where the plan lies in the rootfs of a box before [`SEGMENTED_EPOCH`](crate::manifest::SEGMENTED_EPOCH), as JSON.
pub const PLAN_PATH: &str = "/boxbuild/plan.json";
/// Where a rootfs of the layout "merged" has the package databases of the images, below a directory
/// for each component: `/boxbuild/packages/agent/var/lib/dpkg/status`.
pub const PACKAGES_PATH: &str = "/boxbuild/packages";
/// The directory of the rootfs that holds what the box adds to each component's root; see [`system_path`].
const SYSTEM_PATH: &str = "/boxbuild/system";
/// The directory of the rootfs in which init mounts what the components' roots are built on.
pub const RUN_PATH: &str = "/run";
/// Where skills lie in each component, and baked ones in the rootfs.
pub const SKILLS_PATH: &str = "/a3s/skills";
/// The file that the directory of a skill has at least (<https://agentskills.io/specification>).
pub const SKILL_DEFINITION: &str = "SKILL.md";
/// Where the agent finds the names of the tools that it may see: a JSON array. Without the file they are all.
pub const TOOLS_PATH: &str = "/a3s/tools.json";
/// The program by which the agent runs commands in the business component, in the agent's root.
pub const BOX_EXEC_PATH: &str = "/a3s/bin/box-exec";
/// The socket on which it asks for them, which only the agent's user can open.
pub const EXEC_SOCKET_PATH: &str = "/a3s/run/box-exec.sock";
/// The directory of the rootfs that holds the components' roots: one for each component, or in the
/// layout "merged" one for both.
pub const ROOTS_PATH: &str = "/roots";
/// Init in the first root, the directory in the VMM's memory from which the kernel starts it; the
/// path is on libkrun's kernel command line.
pub const INIT_PATH: &str = "/init.krun";
/// The file of the first root that the launcher writes for one boot; it can be opened once. It has the nonce, a byte that says
/// whether mounts of the host follow ([`MOUNTS_FOLLOW`](crate::wire::MOUNTS_FOLLOW)), and the verified bytes of the box's
/// config ([`BoxConfig`](crate::BoxConfig)). The init of a box of epoch 3 reads no further than that byte.
pub const NONCE_PATH: &str = "/nonce";
/// The length of the nonce: hexadecimal digits.
pub const NONCE_LENGTH: usize = 64;
/// The directory of the first root at which init mounts the rootfs.
pub const NEW_ROOT: &str = "/newroot";
/// The vsock port of the host on which init reports; the host listens.
pub const CONTROL_PORT: u32 = 1024;

/// How many connections to the agent's port are carried at once.
pub const MAX_CLIENTS: usize = 64;

/// Returns where a rootfs has what the box adds to a component's root: a layer that init puts above the image.
pub fn system_path(component: ComponentName) -> String {
    format!("{SYSTEM_PATH}/{}", component.name())
}

/// The work of the launcher and init, from the first mount to power-off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunPlan {
    /// The box's name.
    pub name: String,
    /// How the images lie in the rootfs.
    pub layout: Layout,
    /// The agent's origin.
    #[serde(default, skip_serializing_if = "is_default")]
    pub agent_kind: AgentKind,
    /// The names of the tools that the agent may see, sorted. Empty: the agent decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The component that is started, and whose readiness is the box's.
    pub agent: ComponentPlan,
    /// The component in which commands run; nothing of it is started by itself, unless it says
    /// [`ComponentPlan::autostart`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub business: Option<ComponentPlan>,
    /// The skills under [`SKILLS_PATH`], sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillPlan>,
    /// The host's directories that components see, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<SharePlan>,
    /// The empty disks that components get, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scratch: Vec<ScratchPlan>,
    /// The part of the host's network that components reach.
    #[serde(default, skip_serializing_if = "is_default")]
    pub network: NetworkPlan,
    /// The secrets, which are handed over at launch and are never in a box, sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretPlan>,
    /// The agent's task, shown in `/task`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskPlan>,
    /// The logs in `/logs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logs: Option<LogsPlan>,
    /// The capabilities in `/cap`, each kind once, in the order of [`CapPlan`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caps: Vec<CapPlan>,
    /// The rules for commands in the business component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxPlan>,
    /// The virtual machine's size.
    pub vm: Vm,
    /// The greatest duration of each phase of the start.
    pub budget: Budget,
}

impl RunPlan {
    /// Returns the variables that may be given at launch: a component and a name each, those of the agent first. A
    /// [`Variable`](crate::wire::Variable) names one by its place here.
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

    /// Returns the plan of a component to change it, if the box has it.
    pub const fn component_mut(&mut self, name: ComponentName) -> Option<&mut ComponentPlan> {
        match name {
            ComponentName::Agent => Some(&mut self.agent),
            ComponentName::Business => self.business.as_mut(),
        }
    }

    /// Returns where shares and scratch disks are mounted in a component.
    pub fn mount_points(&self, component: ComponentName) -> impl Iterator<Item = &str> {
        let shares = self.shares.iter().map(|it| (it.scope, &it.guest));
        let disks = self.scratch.iter().map(|it| (it.scope, &it.guest));
        let own = shares.chain(disks).filter(move |(scope, _)| scope.includes(component));
        own.map(|(_, guest)| guest.as_str())
    }

    /// Returns whether a component has the program by which commands are run in the other one.
    pub fn calls_from(&self, component: ComponentName) -> bool {
        component == ComponentName::Agent && self.business.is_some()
    }

    /// Returns the components that the box has, in the order of [`ComponentName::ALL`].
    pub fn components(&self) -> impl Iterator<Item = (ComponentName, &ComponentPlan)> {
        ComponentName::ALL.into_iter().filter_map(|name| Some((name, self.component(name)?)))
    }

    /// Returns how much memory the components may take together, in bytes.
    pub fn memory_limits(&self) -> u64 {
        let limits = self.components().map(|(_, plan)| plan.limits.memory_bytes);
        limits.fold(0, u64::saturating_add)
    }
}

/// How the images lie in the rootfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Each image keeps its whole root: `/roots/agent` and `/roots/business`.
    #[default]
    Split,
    /// Both images are one root: `/roots/merged`. Each component has its own scratch layer over it.
    /// How conflicts were decided is not here: the rootfs is already merged.
    Merged,
}

/// The virtual machine's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Vm {
    /// Virtual CPUs, 1 to 16 ([`crate::rules::MAX_CPUS`]).
    pub cpus: u8,
    /// Memory in MiB.
    pub memory_mib: u32,
}

/// Returns `true` if a declaration says only what holds without it.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
