//! Declarations of the box as a whole, and of the build.

use box_image::SkillMode;
use box_image::rules::MAX_CPUS;

use super::{
    AGENT, BUSINESS, CAP, Choice, Count, Declaration, Kind, LOGS, MOST_MEMORY, NETWORK, SANDBOX,
    SCRATCH, SECRET, SHARE, TASK, choice, optional, prop, required, required_prop,
};
use crate::ConflictPolicy;
use crate::units::MIB;

/// Less does not start a kernel with its page tables, init and one small program.
pub(crate) const LEAST_MACHINE: u64 = 64 * MIB;

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

const PLATFORMS: &[Choice] =
    &[choice("linux/amd64", "x86-64"), choice("linux/arm64", "64-bit ARM")];

pub(crate) const SKILL_MODES: &[Choice] = &[
    choice(SkillMode::Baked.name(), "part of the box and of its digest"),
    choice(
        SkillMode::Mounted.name(),
        "mounted at launch and not part of the digest; today's launcher refuses it",
    ),
];

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

pub(crate) static LAYOUT: Declaration = Declaration::one("layout", "kind", Kind::OneOf(LAYOUTS));

const LAYOUTS: &[Choice] = &[
    choice(
        "split",
        "each image keeps its whole root; nothing can conflict, and equal files are stored once",
    ),
    choice(
        "merged",
        "both images share one root; what differs at the same path needs a `conflict` policy",
    ),
];

pub(crate) static CONFLICT: Declaration = Declaration {
    name: "conflict",
    count: Count::Keyed,
    first: Some(required("pattern", Kind::Glob)),
    props: &[required_prop("policy", Kind::OneOf(POLICIES))],
    ..Declaration::NEW
};

const POLICIES: &[Choice] = &[
    choice(ConflictPolicy::PreferAgent.name(), "the agent image's entry is kept"),
    choice(ConflictPolicy::PreferBusiness.name(), "the business image's entry is kept"),
    choice(ConflictPolicy::Drop.name(), "neither is kept"),
    choice(
        ConflictPolicy::Merge.name(),
        "both are united, line by line: for `/etc/passwd`, `/etc/group`, `/etc/shadow` and \
         `/etc/gshadow`, by these names",
    ),
];

pub(crate) static BUDGET: Declaration = Declaration {
    name: "budget",
    props: &[
        prop("vmm", Kind::Duration, ""),
        prop("kernel", Kind::Duration, ""),
        prop("init", Kind::Duration, ""),
        prop("ready", Kind::Duration, ""),
        prop("total", Kind::Duration, "5s, or 3s for a box without an image"),
    ],
    ..Declaration::NEW
};

pub(crate) static KERNEL: Declaration = Declaration {
    name: "kernel",
    first: Some(optional("path", Kind::AnyPath)),
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
