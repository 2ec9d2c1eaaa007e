//! Declarations of the agent and of the business application.

use box_contract::rules::{
    MAX_BYTES, MAX_CPU_WEIGHT, MAX_FILES, MAX_PIDS, MAX_VM_MIB, MIN_ADDRESS_SPACE,
};

use super::{Count, Declaration, Kind, prop, required_prop};
use crate::units::MIB;

/// Less memory cannot hold a program and its stack.
pub(crate) const MIN_MEMORY: u64 = 4 * MIB;
/// The greatest memory of a virtual machine, and so of a component.
pub(crate) const MAX_MEMORY: u64 = MAX_VM_MIB as u64 * MIB;

pub(crate) static AGENT: Declaration = Declaration::new("agent")
    .with_count(Count::Required)
    .with_props(&[prop(
        "kind",
        Kind::OneOf(AGENT_KINDS),
        "`oci_image` without a `binary`; with one, `local_binary` or `remote_binary`",
    )])
    .with_children(&[
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
    ]);

const AGENT_KINDS: &[&str] =
    &["oci_image", "a3s_code", "opencode", "local_binary", "remote_binary"];

pub(crate) static BUSINESS: Declaration = Declaration::new("business").with_children(&[
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
]);

pub(crate) static IMAGE: Declaration = Declaration::one("image", "reference", Kind::Image);

pub(crate) static BINARY: Declaration = Declaration::one("binary", "source", Kind::PathOrUrl)
    .with_props(&[prop("sha256", Kind::Sha256, "")]);

pub(crate) static ENTRYPOINT: Declaration =
    Declaration::one("entrypoint", "program", Kind::NonEmptyText)
        .with_rest("arguments", Kind::Text);

pub(crate) static ARGS: Declaration = Declaration::list("args", "arguments", Kind::Text);

pub(crate) static ENV: Declaration = variables("env");

pub(crate) static PLAIN_ENV: Declaration = variables("plain-env");

const fn variables(name: &'static str) -> Declaration {
    let variables = Some(
        "Each property is a variable, and its value a string. An argument is the name of a variable that is given at \
         launch, and a second one its default, with `launch=#true`.",
    );
    Declaration { variables, ..Declaration::new(name).with_count(Count::Repeatable) }
}

pub(crate) static ENV_FILE: Declaration =
    Declaration::some("env-file", ["path", "paths"], Kind::Path);

pub(crate) static FILE: Declaration = Declaration::keyed("file", "path", Kind::BakedPath)
    .with_props(&[
        required_prop("to", Kind::FilePlace),
        prop("mode", Kind::Mode, "0644, or 0755 for what is executable in the checkout"),
        prop("owner", Kind::User, "`0:0`"),
    ]);

pub(crate) static WORKDIR: Declaration = Declaration::one("workdir", "path", Kind::WorkDir);

pub(crate) static USER: Declaration = Declaration::one("user", "user", Kind::User);

pub(crate) static PORT: Declaration = Declaration::one("port", "number", Kind::PORT);

pub(crate) static HEALTH: Declaration =
    Declaration::one("health", "kind", HEALTH_KIND).with_rest("command", Kind::Text).with_props(&[
        prop("port", Kind::PORT, "the agent's port; `business` has to name one"),
        prop("path", Kind::HttpPath, ""),
        prop("service", Kind::GrpcService, ""),
    ]);

const HEALTH_KIND: Kind = Kind::OneOf(&["tcp", "http", "grpc", "a3s", "exec", "none"]);

pub(crate) static TOOLS: Declaration = Declaration::some("tools", ["name", "names"], Kind::Tool);

pub(crate) static AUTOSTART: Declaration = Declaration::one("autostart", "value", Kind::Bool)
    .with_props(&[prop("restart", Kind::OneOf(&["never", "on-failure", "always"]), "`never`")]);

pub(crate) static NAMESPACES: Declaration = Declaration::new("namespaces").with_props(&[
    prop("mount", Kind::Bool, "true"),
    prop("pid", Kind::Bool, "true"),
    prop("ipc", Kind::Bool, "true"),
    prop("uts", Kind::Bool, "true"),
    prop("net", Kind::Bool, "false"),
    prop("hostname", Kind::Hostname, "`agent-host`, `business-host`"),
]);

pub(crate) static LIMITS: Declaration = Declaration::new("limits").with_props(&[
    prop(
        "memory",
        Kind::size(MIN_MEMORY, MAX_MEMORY),
        "512MiB for the agent, 1GiB for the business application",
    ),
    prop("pids", Kind::count_to(MAX_PIDS), "100 for the agent, 200 for the business application"),
    prop(
        "cpu-weight",
        Kind::count_to(MAX_CPU_WEIGHT as u64),
        "20 for the agent, 39 for the business application",
    ),
    prop("cpu-shares", Kind::Integer { least: 2, most: 262_144 }, ""),
]);

pub(crate) static RLIMITS: Declaration = Declaration::new("rlimits").with_props(&[
    prop("nofile", Kind::count_to(MAX_FILES), ""),
    prop("nproc", Kind::count_to(MAX_PIDS), ""),
    prop("address-space", Kind::size(MIN_ADDRESS_SPACE, MAX_BYTES), ""),
    prop("cpu", Kind::Seconds, ""),
    prop("core", Kind::size(0, MAX_BYTES), ""),
    prop("file-size", Kind::size(0, MAX_BYTES), ""),
]);

pub(crate) static CAPABILITIES: Declaration = Declaration::new("capabilities")
    .with_props(&[prop("add", Kind::Capabilities, ""), prop("drop", Kind::Capabilities, "")]);
