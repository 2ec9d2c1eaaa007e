//! Declarations of the box as a whole, and of the build.

use box_contract::SkillMode;
use box_contract::rules::{LEAST_VM_MIB, MAX_CPUS};

use super::{
    AGENT, BUSINESS, CAP, Count, Declaration, Kind, LOGS, MOST_MEMORY, NETWORK, SANDBOX, SCRATCH,
    SECRET, SHARE, TASK, optional, prop, required, required_prop,
};
use crate::ConflictPolicy;
use crate::units::MIB;
use box_contract::Platform;

/// Less does not start a kernel with its page tables, init and one small program.
pub(crate) const LEAST_MACHINE: u64 = LEAST_VM_MIB as u64 * MIB;

/// The declarations of a file, in the order in which the reference explains them.
pub(crate) static TOP: &[&Declaration] = &[
    &BOX, &EXTENDS, &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &VM, &LAYOUT, &CONFLICT, &SHARE,
    &SCRATCH, &NETWORK, &SECRET, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL, &PROFILE,
];

pub(crate) static BOX: Declaration =
    Declaration { count: Count::Required, ..Declaration::one("box", "name", Kind::Name) };

pub(crate) static EXTENDS: Declaration = Declaration::one("extends", "path", Kind::Path);

pub(crate) static PLATFORM: Declaration =
    Declaration::some("platform", ["name", "names"], Kind::OneOf(PLATFORMS));

const PLATFORMS: &[&str] = &[Platform::LinuxAmd64.name(), Platform::LinuxArm64.name()];

const SKILL_MODES: &[&str] = &[SkillMode::Baked.name(), SkillMode::Mounted.name()];

pub(crate) static SKILL: Declaration = Declaration {
    name: "skill",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name)),
    props: &[required_prop("path", Kind::Path), prop("mode", Kind::OneOf(SKILL_MODES), "`bake`")],
    ..Declaration::NEW
};

pub(crate) static SKILLS: Declaration = Declaration {
    name: "skills",
    props: &[required_prop("dir", Kind::Path), prop("mode", Kind::OneOf(SKILL_MODES), "`bake`")],
    ..Declaration::NEW
};

pub(crate) static VM: Declaration = Declaration {
    name: "vm",
    props: &[
        prop("cpus", Kind::Integer { least: 1, most: MAX_CPUS as u64 }, "2"),
        prop(
            "memory",
            Kind::Size { least: LEAST_MACHINE, most: MOST_MEMORY },
            "the components' limits, rounded up to MiB, and 256MiB",
        ),
    ],
    ..Declaration::NEW
};

pub(crate) static LAYOUT: Declaration =
    Declaration::one("layout", "kind", Kind::OneOf(&["split", "merged"]));

pub(crate) static CONFLICT: Declaration = Declaration {
    name: "conflict",
    count: Count::Keyed,
    first: Some(required("pattern", Kind::Glob)),
    props: &[required_prop("policy", Kind::OneOf(POLICIES))],
    ..Declaration::NEW
};

const POLICIES: &[&str] = &[
    ConflictPolicy::PreferAgent.name(),
    ConflictPolicy::PreferBusiness.name(),
    ConflictPolicy::Drop.name(),
    ConflictPolicy::Merge.name(),
];

pub(crate) static BUDGET: Declaration = Declaration {
    name: "budget",
    props: &[
        prop("vmm", Kind::Duration, ""),
        prop("jail", Kind::Duration, ""),
        prop("kernel", Kind::Duration, ""),
        prop("init", Kind::Duration, ""),
        prop("ready", Kind::Duration, ""),
        prop("total", Kind::Duration, "5s, or 3s for a box without an image"),
    ],
    ..Declaration::NEW
};

pub(crate) static KERNEL: Declaration = Declaration {
    name: "kernel",
    first: Some(optional("path", Kind::Kernel)),
    props: &[prop("sha256", Kind::Sha256, "")],
    ..Declaration::VALUE
};

pub(crate) static PROFILE: Declaration = Declaration {
    name: "profile",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name)),
    children: &[
        &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &VM, &LAYOUT, &CONFLICT, &SHARE, &SCRATCH,
        &NETWORK, &SECRET, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL,
    ],
    ..Declaration::NEW
};
