//! Declarations of the box as a whole, and of the build.

use box_contract::rules::{MAX_CPUS, MIN_VM_MIB};
use box_contract::{Platform, SkillMode};

use super::DefaultValue::{Duration, Number, Size, Word};
use super::{
    AGENT, BUSINESS, CAP, Count, DISK, Declaration, HOOK, Kind, LOGS, MAX_MEMORY, MCP, NETWORK,
    PUBLISH, SANDBOX, SCRATCH, SECRET, SERVICE, SHARE, SSH_AGENT, TASK, VOLUME, default_prop,
    dependent_prop, optional, prop, required_prop,
};
use crate::ConflictPolicy;
use crate::units::MIB;

/// The least memory of a VM. With less, a kernel with its page tables, init and one small program
/// do not start.
pub(crate) const MIN_MACHINE: u64 = MIN_VM_MIB as u64 * MIB;

/// The default number of the VM's CPUs.
pub(crate) const DEFAULT_CPUS: u8 = 2;
/// The memory of a VM beyond the components' limits, for the kernel and init.
pub(crate) const MEMORY_RESERVE: u64 = 256 * MIB;
/// The time within which a box of OCI images must be ready.
pub(crate) const IMAGE_TOTAL_MS: u64 = 5000;
/// The time within which a box without an image must be ready.
pub(crate) const BINARY_TOTAL_MS: u64 = 3000;

/// The declarations of a file, in the order in which the reference explains them.
pub(crate) static TOP: &[&Declaration] = &[
    &BOX, &EXTENDS, &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &AGENTS, &MCP, &HOOK, &VM,
    &LAYOUT, &CONFLICT, &SHARE, &VOLUME, &SCRATCH, &DISK, &NETWORK, &PUBLISH, &SECRET, &SERVICE,
    &SSH_AGENT, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL, &PROFILE,
];

pub(crate) static BOX: Declaration =
    Declaration::one("box", "name", Kind::Name).with_count(Count::Required);

pub(crate) static EXTENDS: Declaration = Declaration::one("extends", "path", Kind::Path);

pub(crate) static PLATFORM: Declaration =
    Declaration::some("platform", ["name", "names"], Kind::OneOf(PLATFORMS));

const PLATFORMS: &[&str] = &[Platform::LinuxAmd64.name(), Platform::LinuxArm64.name()];

const SKILL_MODE: Kind = Kind::OneOf(&[SkillMode::Baked.name(), SkillMode::Mounted.name()]);

pub(crate) static SKILL: Declaration =
    Declaration::keyed("skill", "name", Kind::Name).with_props(&[
        required_prop("path", Kind::Path),
        default_prop("mode", SKILL_MODE, Word(SkillMode::Baked.name())),
    ]);

pub(crate) static SKILLS: Declaration = Declaration::new("skills").with_props(&[
    required_prop("dir", Kind::Path),
    default_prop("mode", SKILL_MODE, Word(SkillMode::Baked.name())),
]);

pub(crate) static AGENTS: Declaration =
    Declaration::new("agents").with_props(&[required_prop("dir", Kind::BakedPath)]);

pub(crate) static VM: Declaration = Declaration::new("vm").with_props(&[
    default_prop("cpus", Kind::count_to(MAX_CPUS as u64), Number(DEFAULT_CPUS as u64)),
    dependent_prop(
        "memory",
        Kind::size(MIN_MACHINE, MAX_MEMORY),
        "the sum of the components' limits, rounded up to MiB, plus {}",
        &[Size(MEMORY_RESERVE)],
    ),
]);

pub(crate) static LAYOUT: Declaration =
    Declaration::one("layout", "kind", Kind::OneOf(&["split", "merged"]));

pub(crate) static CONFLICT: Declaration = Declaration::keyed("conflict", "pattern", Kind::Glob)
    .with_props(&[required_prop("policy", Kind::OneOf(POLICIES))]);

const POLICIES: &[&str] = &[
    ConflictPolicy::PreferAgent.name(),
    ConflictPolicy::PreferBusiness.name(),
    ConflictPolicy::Drop.name(),
    ConflictPolicy::Merge.name(),
];

pub(crate) static BUDGET: Declaration = Declaration::new("budget").with_props(&[
    prop("vmm", Kind::Duration),
    prop("jail", Kind::Duration),
    prop("kernel", Kind::Duration),
    prop("init", Kind::Duration),
    prop("ready", Kind::Duration),
    dependent_prop(
        "total",
        Kind::Duration,
        "{}, or {} for a box without an image",
        &[Duration(IMAGE_TOTAL_MS), Duration(BINARY_TOTAL_MS)],
    ),
]);

pub(crate) static KERNEL: Declaration = Declaration::new("kernel")
    .with_first(optional("path", Kind::Kernel))
    .with_props(&[prop("sha256", Kind::Sha256)])
    .replacing();

pub(crate) static PROFILE: Declaration = Declaration::keyed("profile", "name", Kind::Name)
    .with_children(&[
        &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &AGENTS, &MCP, &HOOK, &VM, &LAYOUT,
        &CONFLICT, &SHARE, &VOLUME, &SCRATCH, &DISK, &NETWORK, &PUBLISH, &SECRET, &SERVICE,
        &SSH_AGENT, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL,
    ]);
