//! The model: the declarations of a valid Boxfile, with every default filled in.
//!
//! A Boxfile in KDL or TOML, merged with its base files and the chosen profile, becomes one [`Boxfile`]. Two Boxfiles
//! with the same declarations have equal models except for the spans ([`Spanned::span`]), and so the same
//! [`Boxfile::canonical`] form. The types of the declarations for a run are in its plan, [`box_contract::plan`].

mod component;

use box_contract::{
    Budget, CapPlan, ComponentName, HookPlan, Layout, LogsPlan, McpPlan, NetworkPlan, PublishPlan,
    SandboxPlan, ScratchPlan, SecretPlan, ServicePlan, SharePlan, SkillMode, SshAgentPlan,
    TaskPlan, Vm, VolumePlan, named_enum,
};
use box_digest::Digest;
use serde::{Deserialize, Serialize};

use box_contract::{Platform, image_ref};
use diagnostics::{Span, Spanned};

pub use component::{Agent, BakedFile, Binary, Business, Component, Health};

/// A valid Boxfile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Boxfile {
    /// The box's name: lower-case letters, digits and inner hyphens, at most 64.
    pub name: String,
    /// The platforms that the box is for: at least one, each once, in the order of the
    /// declaration. The first is built unless the command line names another.
    pub platforms: Vec<Spanned<Platform>>,
    /// The AI agent.
    pub agent: Agent,
    /// The business application.
    pub business: Option<Business>,
    /// A directory of skills: every directory in it that has a `SKILL.md` is a skill.
    pub skills_dir: Option<SkillsDir>,
    /// The skills that are declared one by one, sorted by name; each name once.
    pub skills: Vec<Skill>,
    /// The VM's size. Its memory exceeds the sum of the components' limits. The default is 2 CPUs, and 256 MiB more
    /// than this sum.
    pub vm: Vm,
    /// The layout of the images in the rootfs.
    pub layout: Layout,
    /// The policies for paths that both images have (layout "merged" only), in the order of the declarations: the first
    /// pattern that matches decides.
    pub conflicts: Vec<Conflict>,
    /// Host directories that the guest sees, sorted by name. Each span is the span of the guest path.
    pub shares: Vec<Spanned<Share>>,
    /// Disks of the host that outlive the run, sorted by name. Each span is the span of the guest path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Spanned<VolumePlan>>,
    /// Empty disks for the data that a run writes, sorted by name. Each span is the span of the guest path.
    pub scratch: Vec<Spanned<ScratchPlan>>,
    /// The size in bytes of the disk for the files that the components write to their roots. `None` if the launcher decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
    /// The network that the guest can reach; the lists are sorted.
    pub network: NetworkPlan,
    /// The ports that clients on the host can connect to, sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<PublishPlan>,
    /// The secrets that the launcher passes at run time, sorted by name. A Boxfile contains no values. Those
    /// of services stay on the host.
    pub secrets: Vec<SecretPlan>,
    /// The HTTP APIs that components reach through the host, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServicePlan>,
    /// The components that sign with the keys of the host's SSH agent. `None` if none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_agent: Option<SshAgentPlan>,
    /// The task that the guest sees under `/task`.
    pub task: Option<TaskPlan>,
    /// The logs that are recorded under `/logs`.
    pub logs: Option<LogsPlan>,
    /// The host's services that the guest sees under `/cap`, sorted by kind; each kind once.
    pub caps: Vec<CapPlan>,
    /// The policy for the commands that the agent runs; the lists of paths are sorted.
    pub sandbox: Option<SandboxPlan>,
    /// The directory of agent definitions, relative to the main Boxfile's directory. It is one of the agent's files, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents_dir: Option<Spanned<String>>,
    /// The MCP servers that the agent uses, sorted by name. Each span is that of the program or URL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<Spanned<McpPlan>>,
    /// The programs that the agent runs at events, each event once, sorted by the event's name. Each span is that of the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Spanned<HookPlan>>,
    /// The limits of the phases of a start in milliseconds: never 0, and none above `total`. `total` is always set, by
    /// default to 5000, or to 3000 for a box without an image.
    pub budget: Budget,
    /// The kernel that the box boots; `None` if the builder chooses one.
    pub kernel: Option<Kernel>,
}

impl Boxfile {
    /// Returns the canonical form: one line of JSON with every default filled in (except the agent's port, which its
    /// image may declare) and without spans. It has the field `declares_health` if `health` of the agent is declared,
    /// because the image may declare the check, too. It is the same for both syntaxes and for any order of declarations. It is
    /// also the same for declarations that were merged from a profile or base file as for the same declarations in one
    /// file.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| {
            unreachable!(
                "the model has neither maps with other keys than texts nor floats: {error}"
            )
        })
    }

    /// Returns whether the agent has a configuration to read: MCP servers, agent definitions or hooks.
    pub fn has_agent_config(&self) -> bool {
        self.agents_dir.is_some() || !self.mcp.is_empty() || !self.hooks.is_empty()
    }

    /// Returns the declaration of a component. `None` if the box has no business application.
    pub fn component(&self, name: ComponentName) -> Option<&Component> {
        match name {
            ComponentName::Agent => Some(&self.agent.component),
            ComponentName::Business => self.business.as_ref().map(|it| &it.component),
        }
    }

    /// Returns the span of a component's image, or of the agent's program if there is no image.
    pub fn root_span(&self, name: ComponentName) -> Span {
        let image = self.component(name).and_then(|it| it.image.as_ref());
        let program = self.agent.binary.as_ref().map(Binary::span);
        image.map(|image| image.span).or(program).unwrap_or_default()
    }
}

/// A directory in which every directory with a `SKILL.md` is a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkillsDir {
    /// The directory, relative to the main Boxfile's directory.
    pub dir: Spanned<String>,
    /// Whether the skills in the directory are baked or mounted.
    pub mode: SkillMode,
}

/// A directory with a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skill {
    /// The skill's name, which follows the rule of the box's name.
    pub name: String,
    /// The directory, relative to the main Boxfile's directory.
    pub path: Spanned<String>,
    /// Whether the skill is baked or mounted.
    pub mode: SkillMode,
}

/// A directory of the host that the guest sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// Its part of the run plan.
    #[serde(flatten)]
    pub plan: SharePlan,
    /// Whether it may cover files that an image has at its path.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}

/// A policy for paths that both images have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// The paths to which the policy applies: an absolute path with `*` for any characters but `/`, and `**` for any
    /// characters. For example, `/etc/*` matches `/etc/motd` but not `/etc/ssl/cert.pem`.
    pub pattern: Spanned<String>,
    /// The policy.
    pub policy: ConflictPolicy,
}

named_enum! {
    /// A resolution of a conflict between two images.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ConflictPolicy {
        /// The agent image's entry is kept.
        PreferAgent "prefer-agent",
        /// The business image's entry is kept.
        PreferBusiness "prefer-business",
        /// Neither image's entry is kept.
        Drop "drop",
        /// The two files are merged: `/etc/passwd`, `/etc/group`, `/etc/shadow` and `/etc/gshadow` only.
        Merge "merge",
    }
}

/// The kernel that a box boots; at least one of the two fields is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// A [`box_contract::KernelName`], or the path of a kernel file: absolute, or relative to the main Boxfile's
    /// directory.
    pub path: Option<Spanned<String>>,
    /// The sha256 that the file must have.
    #[serde(serialize_with = "image_ref::digits")]
    pub sha256: Option<Digest>,
}
