//! The typed result: what a valid Boxfile declares, with every default filled in.
//!
//! Both syntaxes, every base file and the chosen profile end in this one type. Two Boxfiles that
//! declare the same have equal models, but for the places ([`Spanned::span`]), and so the same
//! [`Boxfile::canonical`] form.

mod component;
mod image;
mod run;

use box_digest::Digest;
use serde::{Serialize, Serializer};

use crate::{Platform, Spanned};

pub use component::{
    Agent, AgentKind, Binary, Business, Component, Health, Limits, Namespaces, ResourceLimits,
};
pub use image::ImageRef;
pub use run::{
    Access, Cap, Delivery, Fallback, Logs, Network, NetworkMode, Preset, Sandbox, Scope, Scratch,
    Secret, Share, Task,
};

/// A valid Boxfile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Boxfile {
    /// The box's name: lower-case letters, digits and inner hyphens, at most 63.
    pub name: String,
    /// The platforms that the box is for: at least one, each once, in the order of the
    /// declaration. The first is built unless the command line names another.
    pub platforms: Vec<Spanned<Platform>>,
    /// The AI agent.
    pub agent: Agent,
    /// The business application.
    pub business: Option<Business>,
    /// A directory of skills: every directory in it that has a `SKILL.md` is one.
    pub skills_dir: Option<SkillsDir>,
    /// The skills that are declared one by one, sorted by name; each name once.
    pub skills: Vec<Skill>,
    /// The virtual machine's size; its memory exceeds the sum of the components' limits.
    pub vm: Vm,
    /// How the images lie in the rootfs.
    pub layout: Layout,
    /// What is done where both images have something at a path (layout "merged" only), in the
    /// order of the declaration: the first pattern that fits decides.
    pub conflicts: Vec<Conflict>,
    /// Host directories that the guest sees, sorted by name.
    pub shares: Vec<Share>,
    /// Empty disks for what a run writes, sorted by name.
    pub scratch: Vec<Scratch>,
    /// What the guest can reach.
    pub network: Network,
    /// What the launcher hands over at run time, by name; no value is in a Boxfile.
    pub secrets: Vec<Secret>,
    /// The task under `/task`.
    pub task: Option<Task>,
    /// What is recorded under `/logs`.
    pub logs: Option<Logs>,
    /// The capabilities under `/cap`, sorted by kind; each once.
    pub caps: Vec<Cap>,
    /// The policy for the commands that the agent runs.
    pub sandbox: Option<Sandbox>,
    /// What each phase of the start may take.
    pub budget: Budget,
    /// The kernel that the box boots; nothing where the builder is to choose.
    pub kernel: Option<Kernel>,
    /// How many directories above the Boxfile's own still belong to the checkout: as many as the
    /// farthest base file lies up. Paths may lead there and no farther.
    #[serde(skip)]
    pub climb: usize,
}

impl Boxfile {
    /// Returns the canonical form: one line of JSON with every default filled in (but the agent's
    /// port, which its image may know) and without places, the same for both syntaxes, for any order of declarations, and for a profile or
    /// base file that was merged in as for the same declarations written in one file.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| {
            unreachable!(
                "the model has neither maps with other keys than texts nor floats: {error}"
            )
        })
    }
}

/// Whether a skill is part of the box.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillMode {
    /// Baked into the rootfs, and part of the box's digest.
    #[default]
    Bake,
    /// Mounted when the box is launched; not part of the digest.
    Mount,
}

/// A directory whose every directory with a `SKILL.md` is a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SkillsDir {
    /// The directory, relative to the main Boxfile's.
    pub dir: Spanned<String>,
    /// Whether they are baked or mounted.
    pub mode: SkillMode,
}

/// A directory with a `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Skill {
    /// The skill's name, by the same rule as the box's.
    pub name: String,
    /// The directory, relative to the main Boxfile's.
    pub path: Spanned<String>,
    /// Whether it is baked or mounted.
    pub mode: SkillMode,
}

/// The virtual machine's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Vm {
    /// Virtual CPUs, 1 to 16; 2 by default.
    pub cpus: u8,
    /// Memory in bytes: whole MiB, from 64 MiB to 64 GiB. By default the sum of the components'
    /// limits, rounded up to MiB, and 256 MiB for the kernel and init.
    pub memory: u64,
}

/// How the images lie in the rootfs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Each image keeps its whole root.
    #[default]
    Split,
    /// Both images share one root.
    Merged,
}

/// What is done where both images have something at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Conflict {
    /// The paths that it is about: an absolute path in which `*` stands for any characters but
    /// `/`, and `**` for any characters.
    pub pattern: Spanned<String>,
    /// What is done.
    pub policy: ConflictPolicy,
}

/// A way out of a conflict between two images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConflictPolicy {
    /// The agent image's entry is kept.
    PreferAgent,
    /// The business image's entry is kept.
    PreferBusiness,
    /// Neither is kept.
    Drop,
    /// The two files are united: passwd, group and shadow only.
    Merge,
}

/// What each phase of the start may take, in milliseconds, never 0; a phase without a figure is
/// not limited. No phase may take more than `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Budget {
    /// The launcher started → the virtual CPU runs.
    pub vmm: Option<u64>,
    /// → init's first instruction.
    pub kernel: Option<u64>,
    /// → the agent's program is executed.
    pub init: Option<u64>,
    /// → the health check has passed.
    pub ready: Option<u64>,
    /// The launcher started → the agent is ready. By default 5000, or 3000 for a box without an
    /// image.
    pub total: Option<u64>,
}

/// The kernel that a box boots; at least one of the two is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kernel {
    /// The kernel file; a relative path is relative to the main Boxfile.
    pub path: Option<Spanned<String>>,
    /// The sha256 that the file must have.
    #[serde(serialize_with = "digits")]
    pub sha256: Option<Digest>,
}

/// Writes a sha256 as the language does, which is without its algorithm.
fn digits<S: Serializer>(
    digest: &(impl Copy + Into<Option<Digest>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let digest: Option<Digest> = (*digest).into();
    digest.map(|it| it.hex()).serialize(serializer)
}
