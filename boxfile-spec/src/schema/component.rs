//! Declarations of the agent and of the business application.

use box_contract::rules::{
    MAX_BYTES, MAX_CPU_WEIGHT, MAX_FILES, MAX_PIDS, MAX_VM_MIB, MIN_ADDRESS_SPACE,
};
use box_contract::{Limits, Namespaces, Restart, SystemDirectories};

use super::DefaultValue::{Number, Size, Truth, Word};
use super::{Count, Declaration, Kind, default_prop, dependent_prop, prop, required_prop};
use crate::units::MIB;

/// The least memory limit of a component: a smaller one cannot hold a program and its stack.
pub(crate) const MIN_MEMORY: u64 = 4 * MIB;
/// The greatest memory limit of a component: the greatest memory of a VM.
pub(crate) const MAX_MEMORY: u64 = MAX_VM_MIB as u64 * MIB;

/// The default settings of a component.
pub(crate) struct ComponentDefaults {
    pub(crate) limits: Limits,
    pub(crate) hostname: &'static str,
}

/// The CPU weight of 20 corresponds to `cpu-shares=512`.
pub(crate) const AGENT_DEFAULTS: ComponentDefaults = ComponentDefaults {
    limits: Limits { memory_bytes: 512 * MIB, cpu_weight: 20, pids: 100 },
    hostname: "agent-host",
};
/// The CPU weight of 39 corresponds to `cpu-shares=1024`.
pub(crate) const BUSINESS_DEFAULTS: ComponentDefaults = ComponentDefaults {
    limits: Limits { memory_bytes: 1024 * MIB, cpu_weight: 39, pids: 200 },
    hostname: "business-host",
};
const BY_COMPONENT: &str = "{} for the agent, {} for the business application";

pub(crate) static AGENT: Declaration = Declaration::new("agent")
    .with_count(Count::Required)
    .with_props(&[dependent_prop(
        "kind",
        Kind::OneOf(AGENT_KINDS),
        "`oci_image` without a `binary`; with one, `local_binary` or `remote_binary`",
        &[],
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
        &SYSTEM,
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
    &SYSTEM,
    &AUTOSTART,
    &HEALTH,
    &NAMESPACES,
    &LIMITS,
    &RLIMITS,
    &CAPABILITIES,
]);

pub(crate) static IMAGE: Declaration = Declaration::one("image", "reference", Kind::Image);

pub(crate) static BINARY: Declaration = Declaration::one("binary", "source", Kind::PathOrUrl)
    .with_props(&[prop("sha256", Kind::Sha256)]);

pub(crate) static ENTRYPOINT: Declaration =
    Declaration::one("entrypoint", "program", Kind::NonEmptyText)
        .with_rest("arguments", Kind::Text);

pub(crate) static ARGS: Declaration = Declaration::list("args", "arguments", Kind::Text);

pub(crate) static ENV: Declaration = variables("env");

pub(crate) static PLAIN_ENV: Declaration = variables("plain-env");

const fn variables(name: &'static str) -> Declaration {
    let variables = Some(
        "Each property is a variable, and its value is a string. An argument is the name of a variable that is set at \
         launch. A second argument, with `launch=#true`, is its default.",
    );
    Declaration { variables, ..Declaration::new(name).with_count(Count::Repeatable) }
}

pub(crate) static ENV_FILE: Declaration =
    Declaration::some("env-file", ["path", "paths"], Kind::Path);

pub(crate) static FILE: Declaration = Declaration::keyed("file", "path", Kind::BakedPath)
    .with_props(&[
        required_prop("to", Kind::FilePlace),
        dependent_prop(
            "mode",
            Kind::Mode,
            "0644; 0755 for files that are executable in the checkout",
            &[],
        ),
        default_prop("owner", Kind::User, Word("0:0")),
    ]);

pub(crate) static WORKDIR: Declaration = Declaration::one("workdir", "path", Kind::WorkDir);

pub(crate) static USER: Declaration = Declaration::one("user", "user", Kind::User);

pub(crate) static SYSTEM: Declaration = Declaration::one("system", "access", SYSTEM_ACCESS);

const SYSTEM_ACCESS: Kind =
    Kind::OneOf(&[SystemDirectories::Writable.name(), SystemDirectories::ReadOnly.name()]);

pub(crate) static PORT: Declaration = Declaration::one("port", "number", Kind::PORT);

pub(crate) static HEALTH: Declaration =
    Declaration::one("health", "kind", HEALTH_KIND).with_rest("command", Kind::Text).with_props(&[
        dependent_prop("port", Kind::PORT, "the agent's port; required in `business`", &[]),
        prop("path", Kind::HttpPath),
        prop("service", Kind::GrpcService),
    ]);

const HEALTH_KIND: Kind = Kind::OneOf(&["tcp", "http", "grpc", "a3s", "exec", "none"]);

pub(crate) static TOOLS: Declaration = Declaration::some("tools", ["name", "names"], Kind::Tool);

pub(crate) static AUTOSTART: Declaration = Declaration::one("autostart", "value", Kind::Bool)
    .with_props(&[default_prop(
        "restart",
        Kind::OneOf(&["never", "on-failure", "always"]),
        Word(Restart::Never.name()),
    )]);

pub(crate) static NAMESPACES: Declaration = Declaration::new("namespaces").with_props(&[
    default_prop("mount", Kind::Bool, Truth(Namespaces::DEFAULT.mount)),
    default_prop("pid", Kind::Bool, Truth(Namespaces::DEFAULT.pid)),
    default_prop("ipc", Kind::Bool, Truth(Namespaces::DEFAULT.ipc)),
    default_prop("uts", Kind::Bool, Truth(Namespaces::DEFAULT.uts)),
    default_prop("net", Kind::Bool, Truth(Namespaces::DEFAULT.net)),
    dependent_prop(
        "hostname",
        Kind::Hostname,
        "{}, {}",
        &[Word(AGENT_DEFAULTS.hostname), Word(BUSINESS_DEFAULTS.hostname)],
    ),
]);

pub(crate) static LIMITS: Declaration = Declaration::new("limits").with_props(&[
    dependent_prop(
        "memory",
        Kind::size(MIN_MEMORY, MAX_MEMORY),
        BY_COMPONENT,
        &[Size(AGENT_DEFAULTS.limits.memory_bytes), Size(BUSINESS_DEFAULTS.limits.memory_bytes)],
    ),
    dependent_prop(
        "pids",
        Kind::count_to(MAX_PIDS),
        BY_COMPONENT,
        &[Number(AGENT_DEFAULTS.limits.pids), Number(BUSINESS_DEFAULTS.limits.pids)],
    ),
    dependent_prop(
        "cpu-weight",
        Kind::count_to(MAX_CPU_WEIGHT as u64),
        BY_COMPONENT,
        &[
            Number(AGENT_DEFAULTS.limits.cpu_weight as u64),
            Number(BUSINESS_DEFAULTS.limits.cpu_weight as u64),
        ],
    ),
    prop("cpu-shares", Kind::Integer { least: 2, most: 262_144 }),
]);

pub(crate) static RLIMITS: Declaration = Declaration::new("rlimits").with_props(&[
    prop("nofile", Kind::count_to(MAX_FILES)),
    prop("nproc", Kind::count_to(MAX_PIDS)),
    prop("address-space", Kind::size(MIN_ADDRESS_SPACE, MAX_BYTES)),
    prop("cpu", Kind::Seconds),
    prop("core", Kind::size(0, MAX_BYTES)),
    prop("file-size", Kind::size(0, MAX_BYTES)),
]);

pub(crate) static CAPABILITIES: Declaration = Declaration::new("capabilities")
    .with_props(&[prop("add", Kind::Capabilities), prop("drop", Kind::Capabilities)]);
