//! What is declared of the box as a whole, and of the build.

use box_image::bounds::MAX_CPUS;

use super::{
    AGENT, BUSINESS, CAP, Choice, Count, Declaration, Kind, LOGS, MOST_MEMORY, NETWORK, SANDBOX,
    SCRATCH, SECRET, SHARE, TASK, choice, optional, prop, required, required_prop,
};
use crate::units::MIB;

/// Less does not start a kernel with its page tables, init and one small program.
pub(crate) const LEAST_MACHINE: u64 = 64 * MIB;

/// The declarations of a file, in the order in which the reference explains them.
pub(crate) static TOP: &[&Declaration] = &[
    &BOX, &EXTENDS, &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &VM, &LAYOUT, &CONFLICT, &SHARE,
    &SCRATCH, &NETWORK, &SECRET, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL, &PROFILE,
];

pub(crate) static BOX: Declaration = Declaration {
    name: "box",
    summary: "The box's name.",
    count: Count::Required,
    first: Some(required(
        "name",
        Kind::Name,
        "Lower-case letters, digits and inner hyphens, at most 63.",
    )),
    ..Declaration::VALUE
};

pub(crate) static EXTENDS: Declaration = Declaration {
    name: "extends",
    summary: "A base file, which this file completes and overrides.",
    first: Some(required(
        "path",
        Kind::Path,
        "The base file, relative to this one; a name that ends with `.toml` is TOML.",
    )),
    ..Declaration::VALUE
};

pub(crate) static PLATFORM: Declaration = Declaration {
    name: "platform",
    summary: "The platforms that the box is for; `linux/amd64` by default.",
    first: Some(required("name", Kind::OneOf(PLATFORMS), "A platform.")),
    rest: Some(optional("names", Kind::OneOf(PLATFORMS), "Further platforms.")),
    ..Declaration::VALUE
};

const PLATFORMS: &[Choice] =
    &[choice("linux/amd64", "x86-64"), choice("linux/arm64", "64-bit ARM")];

pub(crate) const SKILL_MODES: &[Choice] = &[
    choice("bake", "part of the box and of its digest"),
    choice("mount", "mounted at launch and not part of the digest; today's launcher refuses it"),
];

pub(crate) static SKILL: Declaration = Declaration {
    name: "skill",
    summary: "A directory of the checkout with a `SKILL.md`, at `/a3s/skills/NAME` in each component.",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name, "Its name, by the same rule as the box's.")),
    props: &[
        required_prop("path", Kind::Path, "The directory."),
        prop("mode", Kind::OneOf(SKILL_MODES), "`bake`", "Whether it is part of the box."),
    ],
    ..Declaration::NEW
};

pub(crate) static SKILLS: Declaration = Declaration {
    name: "skills",
    summary: "A directory of skills: each directory in it that has a `SKILL.md` is one, under its own name.",
    props: &[
        required_prop("dir", Kind::Path, "The directory."),
        prop("mode", Kind::OneOf(SKILL_MODES), "`bake`", "Whether they are part of the box."),
    ],
    ..Declaration::NEW
};

pub(crate) static VM: Declaration = Declaration {
    name: "vm",
    summary: "The virtual machine's size.",
    props: &[
        prop("cpus", Kind::Integer { least: 1, most: MAX_CPUS as u64 }, "2", "Virtual CPUs."),
        prop(
            "memory",
            Kind::Size { least: LEAST_MACHINE, most: MOST_MEMORY },
            "the components' limits, rounded up to MiB, and 256MiB",
            "Memory, in whole MiB.",
        ),
    ],
    ..Declaration::NEW
};

pub(crate) static LAYOUT: Declaration = Declaration {
    name: "layout",
    summary: "How the two images lie in the box; `split` by default.",
    first: Some(required("kind", Kind::OneOf(LAYOUTS), "The layout.")),
    ..Declaration::VALUE
};

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
    summary: "What is done where both images have something different at a path (layout `merged` only).",
    count: Count::Keyed,
    first: Some(required(
        "pattern",
        Kind::Glob,
        "The paths: it begins with `/`; `*` stands for anything but `/`, `**` for anything.",
    )),
    props: &[required_prop("policy", Kind::OneOf(POLICIES), "What is done.")],
    ..Declaration::NEW
};

const POLICIES: &[Choice] = &[
    choice("prefer-agent", "the agent image's entry is kept"),
    choice("prefer-business", "the business image's entry is kept"),
    choice("drop", "neither is kept"),
    choice(
        "merge",
        "both are united, line by line: for `/etc/passwd`, `/etc/group`, `/etc/shadow` and \
         `/etc/gshadow`, by these names",
    ),
];

pub(crate) static BUDGET: Declaration = Declaration {
    name: "budget",
    summary: "What each phase of the start may take; `boxlaunch run` stops a box that is over.",
    props: &[
        prop("vmm", Kind::Duration, "", "From the launcher's start until the virtual CPU runs."),
        prop("kernel", Kind::Duration, "", "From there to init's first instruction."),
        prop("init", Kind::Duration, "", "From there until the agent's program is executed."),
        prop("ready", Kind::Duration, "", "From there until the health check has passed."),
        prop(
            "total",
            Kind::Duration,
            "5s, or 3s for a box without an image",
            "All of them together.",
        ),
    ],
    ..Declaration::NEW
};

pub(crate) static KERNEL: Declaration = Declaration {
    name: "kernel",
    summary: "The guest kernel: a libkrunfw library or an ELF kernel.",
    first: Some(optional("path", Kind::AnyPath, "The file.")),
    props: &[prop("sha256", Kind::Sha256, "", "What the file must hash to.")],
    ..Declaration::VALUE
};

pub(crate) static PROFILE: Declaration = Declaration {
    name: "profile",
    summary: "Declarations that count only with `--profile NAME`, over those of the file.",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name, "Its name, by the same rule as the box's.")),
    children: &[
        &PLATFORM, &AGENT, &BUSINESS, &SKILL, &SKILLS, &VM, &LAYOUT, &CONFLICT, &SHARE, &SCRATCH,
        &NETWORK, &SECRET, &TASK, &LOGS, &CAP, &SANDBOX, &BUDGET, &KERNEL,
    ],
    ..Declaration::NEW
};
