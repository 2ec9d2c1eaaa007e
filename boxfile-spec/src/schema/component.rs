//! Declarations of the agent and of the business application.

use box_contract::rules::{
    LEAST_ADDRESS_SPACE, MAX_CPU_WEIGHT, MAX_FILES, MAX_PIDS, MOST_BYTES, MOST_VM_MIB,
};

use super::{Count, Declaration, Kind, Property, optional, prop, required, required_prop};
use crate::units::MIB;

/// Less memory cannot hold a program and its stack.
pub(crate) const LEAST_MEMORY: u64 = 4 * MIB;
/// The greatest memory of a virtual machine, and so of a component.
pub(crate) const MOST_MEMORY: u64 = MOST_VM_MIB as u64 * MIB;

pub(crate) static AGENT: Declaration = Declaration {
    name: "agent",
    count: Count::Required,
    props: &[prop(
        "kind",
        Kind::OneOf(AGENT_KINDS),
        "`oci_image` without a `binary`; with one, `local_binary` or `remote_binary`",
    )],
    children: &[
        &IMAGE,
        &BINARY,
        &ENTRYPOINT,
        &ARGS,
        &ENV,
        &PLAIN_ENV,
        &ENV_FILE,
        &FILE,
        &WORKDIR,
        &USER,
        &PORT,
        &HEALTH,
        &TOOLS,
        &NAMESPACES,
        &LIMITS,
        &RLIMITS,
        &CAPABILITIES,
    ],
    ..Declaration::NEW
};

const AGENT_KINDS: &[&str] =
    &["oci_image", "a3s_code", "opencode", "local_binary", "remote_binary"];

pub(crate) static BUSINESS: Declaration = Declaration {
    name: "business",
    children: &[
        &IMAGE,
        &ENTRYPOINT,
        &ARGS,
        &ENV,
        &PLAIN_ENV,
        &ENV_FILE,
        &FILE,
        &WORKDIR,
        &USER,
        &AUTOSTART,
        &HEALTH,
        &NAMESPACES,
        &LIMITS,
        &RLIMITS,
        &CAPABILITIES,
    ],
    ..Declaration::NEW
};

pub(crate) static IMAGE: Declaration = Declaration::one("image", "reference", Kind::Image);

pub(crate) static BINARY: Declaration = Declaration {
    name: "binary",
    first: Some(required("source", Kind::PathOrUrl)),
    props: &[prop("sha256", Kind::Sha256, "")],
    ..Declaration::VALUE
};

pub(crate) static ENTRYPOINT: Declaration =
    Declaration::some("entrypoint", ["program", "arguments"], Kind::Text);

pub(crate) static ARGS: Declaration = Declaration::list("args", "arguments", Kind::Text);

pub(crate) static ENV: Declaration = variables("env");

pub(crate) static PLAIN_ENV: Declaration = variables("plain-env");

const fn variables(name: &'static str) -> Declaration {
    let variables = Some(
        "Each property is a variable, and its value a string. An argument is the name of a variable that is given at \
         launch, and a second one its default, with `launch=#true`.",
    );
    Declaration { name, count: Count::Repeatable, variables, ..Declaration::NEW }
}

pub(crate) static ENV_FILE: Declaration =
    Declaration::some("env-file", ["path", "paths"], Kind::Path);

pub(crate) static FILE: Declaration = Declaration {
    name: "file",
    count: Count::Keyed,
    first: Some(required("path", Kind::Path)),
    props: &[
        required_prop("to", Kind::Absolute),
        prop("mode", Kind::Mode, "0644, or 0755 for what is executable in the checkout"),
        prop("owner", Kind::User, "`0:0`"),
    ],
    ..Declaration::NEW
};

pub(crate) static WORKDIR: Declaration = Declaration::one("workdir", "path", Kind::Absolute);

pub(crate) static USER: Declaration = Declaration::one("user", "user", Kind::User);

pub(crate) static PORT: Declaration = Declaration::one("port", "number", Kind::PORT);

pub(crate) static HEALTH: Declaration = Declaration {
    name: "health",
    first: Some(required("kind", Kind::OneOf(&["tcp", "http", "grpc", "a3s", "exec", "none"]))),
    rest: Some(optional("command", Kind::Text)),
    props: &[
        prop("port", Kind::PORT, "the agent's port; `business` has to name one"),
        prop("path", Kind::Text, ""),
        prop("service", Kind::Text, ""),
    ],
    ..Declaration::VALUE
};

pub(crate) static TOOLS: Declaration = Declaration::some("tools", ["name", "names"], Kind::Tool);

pub(crate) static AUTOSTART: Declaration = Declaration {
    props: &[prop("restart", Kind::OneOf(&["never", "on-failure", "always"]), "`never`")],
    ..Declaration::one("autostart", "value", Kind::Truth)
};

pub(crate) static NAMESPACES: Declaration = Declaration {
    name: "namespaces",
    props: &[
        prop("mount", Kind::Truth, "true"),
        prop("pid", Kind::Truth, "true"),
        prop("ipc", Kind::Truth, "true"),
        prop("uts", Kind::Truth, "true"),
        prop("net", Kind::Truth, "false"),
        prop("hostname", Kind::Hostname, "`agent-host`, `business-host`"),
    ],
    ..Declaration::NEW
};

pub(crate) static LIMITS: Declaration = Declaration {
    name: "limits",
    props: &[
        prop(
            "memory",
            Kind::Size { least: LEAST_MEMORY, most: MOST_MEMORY },
            "512MiB for the agent, 1GiB for the business application",
        ),
        prop(
            "pids",
            Kind::Integer { least: 1, most: MAX_PIDS },
            "100 for the agent, 200 for the business application",
        ),
        prop(
            "cpu-weight",
            Kind::Integer { least: 1, most: MAX_CPU_WEIGHT as u64 },
            "20 for the agent, 39 for the business application",
        ),
        prop("cpu-shares", Kind::Integer { least: 2, most: 262_144 }, ""),
    ],
    ..Declaration::NEW
};

pub(crate) static RLIMITS: Declaration = Declaration {
    name: "rlimits",
    props: &[
        limit("nofile", MAX_FILES),
        limit("nproc", MAX_PIDS),
        prop("address-space", Kind::Size { least: LEAST_ADDRESS_SPACE, most: MOST_BYTES }, ""),
        prop("cpu", Kind::Duration, ""),
        prop("core", Kind::Size { least: 0, most: MOST_BYTES }, ""),
        prop("file-size", Kind::Size { least: 0, most: MOST_BYTES }, ""),
    ],
    ..Declaration::NEW
};

const fn limit(name: &'static str, most: u64) -> Property {
    prop(name, Kind::Integer { least: 1, most }, "")
}

pub(crate) static CAPABILITIES: Declaration = Declaration {
    name: "capabilities",
    props: &[prop("add", Kind::Capabilities, ""), prop("drop", Kind::Capabilities, "")],
    ..Declaration::NEW
};
