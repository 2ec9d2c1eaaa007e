//! What is declared of the agent and of the business application.

use box_image::bounds::{MAX_CPU_WEIGHT, MAX_FILES, MAX_PIDS};

use super::{
    Choice, Count, Declaration, Enforced, Kind, Property, choice, optional, prop, required,
};
use crate::units::{GIB, MIB};

/// Less memory cannot hold a program and its stack.
pub(crate) const LEAST_MEMORY: u64 = 4 * MIB;
/// The greatest memory of a virtual machine, and so of a component.
pub(crate) const MOST_MEMORY: u64 = 64 * GIB;

pub(crate) static AGENT: Declaration = Declaration {
    name: "agent",
    summary: "The AI agent: the component that is started with the box, and whose readiness is the box's.",
    count: Count::Required,
    props: &[prop(
        "kind",
        Kind::OneOf(AGENT_KINDS),
        "`oci_image` without a `binary`; with one, `local_binary` or `remote_binary`",
        "What kind of agent it is.",
    )],
    children: &[
        &IMAGE,
        &BINARY,
        &ENTRYPOINT,
        &ARGS,
        &ENV,
        &PLAIN_ENV,
        &ENV_FILE,
        &WORKDIR,
        &USER,
        &PORT,
        &HEALTH,
        &TOOLS,
        &NAMESPACES,
        &LIMITS,
        &RLIMITS,
    ],
    ..Declaration::NEW
};

const AGENT_KINDS: &[Choice] = &[
    choice("oci_image", "a program of an OCI image"),
    choice("a3s_code", "A3S Code in an OCI image"),
    choice(
        "opencode",
        "OpenCode in an OCI image; its port is 4096, and it is ready when `/global/health` answers",
    ),
    choice("local_binary", "a program of the checkout: `binary \"PATH\"`"),
    choice("remote_binary", "a program that is downloaded: `binary \"URL\"` with its `sha256`"),
];

pub(crate) static BUSINESS: Declaration = Declaration {
    name: "business",
    summary: "The business application: an image of its own, in which the agent's commands run.",
    children: &[
        &IMAGE,
        &ENTRYPOINT,
        &ARGS,
        &ENV,
        &PLAIN_ENV,
        &ENV_FILE,
        &WORKDIR,
        &USER,
        &AUTOSTART,
        &NAMESPACES,
        &LIMITS,
        &RLIMITS,
    ],
    ..Declaration::NEW
};

pub(crate) static IMAGE: Declaration = Declaration {
    name: "image",
    summary: "The OCI image that holds the component's files.",
    first: Some(required("reference", Kind::Image, "Where the image is.")),
    ..Declaration::VALUE
};

pub(crate) static BINARY: Declaration = Declaration {
    name: "binary",
    summary: "The agent's program, where it is not in an image: a file of the checkout, or a URL.",
    first: Some(required("source", Kind::PathOrUrl, "The file, or an http or https URL.")),
    props: &[prop("sha256", Kind::Sha256, "", "What the file must hash to; a URL needs it.")],
    ..Declaration::VALUE
};

pub(crate) static ENTRYPOINT: Declaration = Declaration {
    name: "entrypoint",
    summary: "The program, instead of the image's `ENTRYPOINT` and `CMD`.",
    first: Some(required("program", Kind::Text, "The program.")),
    rest: Some(optional("arguments", Kind::Text, "Its first arguments.")),
    ..Declaration::VALUE
};

pub(crate) static ARGS: Declaration = Declaration {
    name: "args",
    summary: "The arguments behind the entrypoint, instead of the image's `CMD`.",
    rest: Some(optional("arguments", Kind::Text, "The arguments; none at all is a list, too.")),
    ..Declaration::VALUE
};

pub(crate) static ENV: Declaration = Declaration {
    name: "env",
    summary: "Environment variables, over those of the image and of `env-file`.",
    count: Count::Repeatable,
    variables: Some("Each property is a variable, and its value a text."),
    ..Declaration::NEW
};

pub(crate) static PLAIN_ENV: Declaration = Declaration {
    name: "plain-env",
    summary: "As `env`, for variables that look like secrets and are none.",
    count: Count::Repeatable,
    variables: Some("Each property is a variable, and its value a text."),
    ..Declaration::NEW
};

pub(crate) static ENV_FILE: Declaration = Declaration {
    name: "env-file",
    summary: "Files of the checkout with environment variables, `NAME=value` on each line.",
    first: Some(required("path", Kind::Path, "The file.")),
    rest: Some(optional("paths", Kind::Path, "Further files.")),
    ..Declaration::VALUE
};

pub(crate) static WORKDIR: Declaration = Declaration {
    name: "workdir",
    summary: "The working directory, instead of the image's; made where it is missing.",
    first: Some(required("path", Kind::Absolute, "The directory.")),
    ..Declaration::VALUE
};

pub(crate) static USER: Declaration = Declaration {
    name: "user",
    summary: "Who the component runs as, instead of the image's user.",
    first: Some(required("user", Kind::User, "`USER` or `USER:GROUP`, names or numbers.")),
    ..Declaration::VALUE
};

pub(crate) static PORT: Declaration = Declaration {
    name: "port",
    summary: "The TCP port on which the agent listens; it appears as a Unix socket on the host.",
    first: Some(required("number", Kind::Integer { least: 1, most: 65_535 }, "The port.")),
    ..Declaration::VALUE
};

pub(crate) static HEALTH: Declaration = Declaration {
    name: "health",
    summary: "When the agent counts as ready.",
    first: Some(required("kind", Kind::OneOf(HEALTH_KINDS), "What is checked.")),
    rest: Some(optional("command", Kind::Text, "The program and its arguments (`exec` only).")),
    props: &[
        prop(
            "port",
            Kind::Integer { least: 1, most: 65_535 },
            "the agent's port",
            "The port on the guest's loopback (`tcp` and `http` only).",
        ),
        prop(
            "path",
            Kind::Text,
            "",
            "The path of the request (`http` only, which needs it): it begins with `/`, and what is not \
                visible ASCII is percent-encoded.",
        ),
    ],
    ..Declaration::VALUE
};

const HEALTH_KINDS: &[Choice] = &[
    choice("tcp", "a connection to the port succeeds"),
    choice("http", "`GET` of the path is answered with 2xx"),
    choice("exec", "a program, run inside the component, exits with 0"),
    choice("none", "it is ready as soon as it is started"),
];

pub(crate) static TOOLS: Declaration = Declaration {
    name: "tools",
    summary: "The built-in tools that the agent may see; without it, all of them.",
    first: Some(required("name", Kind::Tool, "A tool.")),
    rest: Some(optional("names", Kind::Tool, "Further tools.")),
    enforced: Enforced::Later,
    ..Declaration::VALUE
};

pub(crate) static AUTOSTART: Declaration = Declaration {
    name: "autostart",
    summary: "Whether the business application's own program is started once the agent is ready.",
    first: Some(required("value", Kind::Truth, "Whether it is.")),
    enforced: Enforced::Later,
    ..Declaration::VALUE
};

pub(crate) static NAMESPACES: Declaration = Declaration {
    name: "namespaces",
    summary: "What the component has for itself, and its host name.",
    props: &[
        prop("mount", Kind::Truth, "true", "Its own mounts."),
        prop("pid", Kind::Truth, "true", "Its own process ids."),
        prop("ipc", Kind::Truth, "true", "Its own System V IPC and message queues."),
        prop("uts", Kind::Truth, "true", "Its own host name."),
        prop("net", Kind::Truth, "false", "Its own network."),
        prop(
            "hostname",
            Kind::Hostname,
            "`agent-host`, `business-host`",
            "Its host name: letters, digits and inner hyphens, at most 63. It needs `uts`.",
        ),
    ],
    ..Declaration::NEW
};

pub(crate) static LIMITS: Declaration = Declaration {
    name: "limits",
    summary: "What the component as a whole may take; more is stopped there, and the rest of the box goes on.",
    props: &[
        prop(
            "memory",
            Kind::Size { least: LEAST_MEMORY, most: MOST_MEMORY },
            "512MiB for the agent, 1GiB for the business application",
            "Memory (cgroup v2 `memory.max`).",
        ),
        prop(
            "pids",
            Kind::Integer { least: 1, most: MAX_PIDS },
            "100 for the agent, 200 for the business application",
            "Processes and threads (`pids.max`).",
        ),
        prop(
            "cpu-weight",
            Kind::Integer { least: 1, most: MAX_CPU_WEIGHT as u64 },
            "20 for the agent, 39 for the business application",
            "Share of the CPU against the other component (`cpu.weight`).",
        ),
        prop(
            "cpu-shares",
            Kind::Integer { least: 2, most: 262_144 },
            "",
            "The same on docker's scale, which is converted; not together with `cpu-weight`.",
        ),
    ],
    ..Declaration::NEW
};

const MOST_BYTES: u64 = 1 << 50;

pub(crate) static RLIMITS: Declaration = Declaration {
    name: "rlimits",
    summary: "What each process of the component may take (setrlimit); what is not given stays as it is.",
    props: &[
        limit("nofile", MAX_FILES, "Open files."),
        limit(
            "nproc",
            MAX_PIDS,
            "Processes of the same user, in the whole box. Does not hold root; use `limits pids`.",
        ),
        prop(
            "address-space",
            Kind::Size { least: MIB, most: MOST_BYTES },
            "",
            "Address space (`RLIMIT_AS`).",
        ),
        prop("cpu", Kind::Duration, "", "CPU time, in whole seconds."),
        prop("core", Kind::Size { least: 0, most: MOST_BYTES }, "", "Size of a core dump."),
        prop(
            "file-size",
            Kind::Size { least: 0, most: MOST_BYTES },
            "",
            "Size of a file that it writes.",
        ),
    ],
    ..Declaration::NEW
};

const fn limit(name: &'static str, most: u64, doc: &'static str) -> Property {
    prop(name, Kind::Integer { least: 1, most }, "", doc)
}
