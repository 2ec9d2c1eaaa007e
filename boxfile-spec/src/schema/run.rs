//! Declarations for the run of a box, and for the policy of its commands.

use box_contract::defaults::{ASK_TIMEOUT_SECONDS, MAX_OUTPUT_BYTES};
use box_contract::network::USUAL_PORTS;
use box_contract::rules::{
    MAX_CONNECTIONS, MAX_NAMES, MAX_RATE, MAX_SCRATCH_BYTES, MIN_DISK_BYTES, MIN_RATE,
    MIN_SCRATCH_BYTES,
};
use box_contract::{HookEvent, NetworkLimits};

use super::DefaultValue::{Duration, Number, Size, Truth, Word};
use super::{
    Count, Declaration, Kind, default_prop, dependent_prop, prop, required, required_prop,
};
use crate::units::GIB;

const SCOPE: Kind = Kind::OneOf(&["agent", "business", "both"]);

pub(crate) static SHARE: Declaration =
    Declaration::keyed("share", "name", Kind::Name).with_props(&[
        required_prop("guest", Kind::MountPoint),
        prop("host", Kind::LaunchPath),
        default_prop("access", Kind::OneOf(&["ro", "rw"]), Word("ro")),
        default_prop("over", Kind::Bool, Truth(false)),
        default_prop("component", SCOPE, Word("both")),
    ]);

pub(crate) static VOLUME: Declaration = Declaration::keyed("volume", "name", Kind::Name)
    .with_props(&[
        required_prop("guest", Kind::MountPoint),
        default_prop("component", SCOPE, Word("both")),
    ]);

pub(crate) static SCRATCH: Declaration = Declaration::keyed("scratch", "name", Kind::Name)
    .with_props(&[
        required_prop("guest", Kind::MountPoint),
        required_prop("size", Kind::size(MIN_SCRATCH_BYTES, MAX_SCRATCH_BYTES)),
        default_prop("component", SCOPE, Word("both")),
    ]);

pub(crate) static DISK: Declaration =
    Declaration::one("disk", "size", Kind::size(MIN_DISK_BYTES, MAX_SCRATCH_BYTES));

pub(crate) static NETWORK: Declaration =
    Declaration::one("network", "mode", Kind::OneOf(NETWORK_MODES)).with_children(&[
        &ALLOW_PEER,
        &DENY_PEER,
        &NETWORK_LIMITS,
    ]);

const NETWORK_MODES: &[&str] = &["none", "filtered", "shared", "cap-only"];

pub(crate) static ALLOW_PEER: Declaration = peers("allow").with_props(&[dependent_prop(
    "port",
    Kind::PORT,
    "{} and {}",
    &[Number(USUAL_PORTS[0] as u64), Number(USUAL_PORTS[1] as u64)],
)]);

pub(crate) static DENY_PEER: Declaration =
    peers("deny").with_props(&[dependent_prop("port", Kind::PORT, "all ports", &[])]);

const fn peers(name: &'static str) -> Declaration {
    Declaration::some(name, ["peer", "peers"], Kind::Peer).with_count(Count::Repeatable)
}

pub(crate) static NETWORK_LIMITS: Declaration = Declaration::new("limits")
    .with_props(&[
        default_prop(
            "connections",
            Kind::count_to(MAX_CONNECTIONS as u64),
            Number(NetworkLimits::DEFAULT.connections as u64),
        ),
        default_prop(
            "rate",
            Kind::size(MIN_RATE, MAX_RATE),
            Size(NetworkLimits::DEFAULT.bytes_per_second),
        ),
        default_prop(
            "names",
            Kind::count_to(MAX_NAMES as u64),
            Number(NetworkLimits::DEFAULT.names_per_minute as u64),
        ),
    ])
    .replacing();

pub(crate) static PUBLISH: Declaration =
    Declaration::some("publish", ["port", "ports"], Kind::PORT)
        .with_count(Count::Repeatable)
        .with_props(&[
            dependent_prop("host", Kind::ANY_PORT, "the same number", &[]),
            default_prop("component", Kind::OneOf(&["agent", "business"]), Word("agent")),
        ]);

pub(crate) static SECRET: Declaration = Declaration::keyed("secret", "name", Kind::Variable)
    .with_props(&[prop("path", Kind::SecretPath), default_prop("component", SCOPE, Word("agent"))]);

pub(crate) static SERVICE: Declaration = Declaration::keyed("service", "name", Kind::Name)
    .with_props(&[
        required_prop("to", Kind::ServiceUrl),
        prop("env", Kind::Variable),
        default_prop("component", Kind::OneOf(&["agent", "business"]), Word("agent")),
        default_prop("timeout", Kind::Duration, Duration(600_000)),
    ])
    .with_children(&[&HEADER, &ALLOW_REQUEST, &PASS]);

pub(crate) static HEADER: Declaration = Declaration::keyed("header", "name", Kind::Header)
    .with_props(&[required_prop("secret", Kind::Variable), prop("prefix", Kind::HeaderPrefix)]);

pub(crate) static ALLOW_REQUEST: Declaration =
    Declaration::some("allow", ["request", "requests"], Kind::Request)
        .with_count(Count::Repeatable);

pub(crate) static PASS: Declaration =
    Declaration::some("pass", ["name", "names"], Kind::Header).with_count(Count::Repeatable);

pub(crate) static MCP: Declaration = Declaration::keyed("mcp", "name", Kind::Name)
    .with_children(&[&MCP_COMMAND, &MCP_URL, &MCP_ENV, &MCP_SECRET, &MCP_HEADER]);

pub(crate) static MCP_COMMAND: Declaration =
    Declaration::one("command", "program", Kind::NonEmptyText).with_rest("arguments", Kind::Text);

pub(crate) static MCP_URL: Declaration = Declaration::one("url", "address", Kind::McpUrl);

pub(crate) static MCP_ENV: Declaration = Declaration {
    variables: Some("Each property is a variable, and its value is a string."),
    ..Declaration::new("env").with_count(Count::Repeatable)
};

pub(crate) static MCP_SECRET: Declaration =
    Declaration::some("secret", ["name", "names"], Kind::Variable).with_count(Count::Repeatable);

pub(crate) static MCP_HEADER: Declaration = Declaration::keyed("header", "name", Kind::Header)
    .with_props(&[required_prop("secret", Kind::Variable), prop("prefix", Kind::HeaderPrefix)]);

pub(crate) static HOOK: Declaration =
    Declaration::keyed("hook", "event", HOOK_EVENT).with_rest("command", Kind::Text).replacing();

const HOOK_EVENT: Kind = Kind::OneOf(&[
    HookEvent::SessionStart.name(),
    HookEvent::SessionEnd.name(),
    HookEvent::BeforeTool.name(),
    HookEvent::AfterTool.name(),
    HookEvent::BeforeCommand.name(),
    HookEvent::AfterCommand.name(),
    HookEvent::BeforeCompleted.name(),
]);

pub(crate) static SSH_AGENT: Declaration = Declaration::new("ssh-agent")
    .with_props(&[default_prop("component", SCOPE, Word("agent"))])
    .replacing();

pub(crate) static TASK: Declaration = Declaration::new("task")
    .with_first(required("id", Kind::NonEmptyText))
    .with_props(&[
        required_prop("type", Kind::NonEmptyText),
        required_prop("description", Kind::Text),
        prop("input", Kind::Json),
        prop("timeout", Kind::Duration),
    ])
    .with_children(&[&TAGS, &VERIFY]);

pub(crate) static VERIFY: Declaration = Declaration::one("verify", "program", Kind::NonEmptyText)
    .with_rest("arguments", Kind::Text)
    .with_props(&[
        dependent_prop(
            "component",
            Kind::OneOf(&["agent", "business"]),
            "{}; {} if the box has no `business`",
            &[Word("business"), Word("agent")],
        ),
        default_prop("timeout", Kind::Duration, Duration(600_000)),
    ]);

pub(crate) static TAGS: Declaration = Declaration::list("tags", "tags", Kind::NonEmptyText);

pub(crate) static LOGS: Declaration = Declaration::new("logs").with_props(&[
    default_prop("stdout", Kind::Bool, Truth(true)),
    default_prop("stderr", Kind::Bool, Truth(true)),
    default_prop("events", Kind::Bool, Truth(true)),
    default_prop("atif", Kind::Bool, Truth(true)),
]);

pub(crate) static CAP: Declaration = Declaration::keyed("cap", "kind", CAP_KIND)
    .with_props(&[
        default_prop("max-connections", Kind::count_to(1024), Number(16)),
        default_prop("timeout", Kind::Duration, Duration(600_000)),
    ])
    .with_children(&[&RELAYS])
    .enforced_partly("`http` works; the others are refused at launch");

const CAP_KIND: Kind = Kind::OneOf(&["http", "nostr", "payments", "ws"]);

pub(crate) static RELAYS: Declaration =
    Declaration::some("relays", ["url", "urls"], Kind::SocketUrl);

pub(crate) static SANDBOX: Declaration = Declaration::new("sandbox")
    .with_first(required("preset", Kind::OneOf(&["default", "development", "ci"])))
    .with_props(&[
        dependent_prop(
            "fallback",
            Kind::OneOf(&["strict", "warn"]),
            "`strict`; `warn` for the preset `development`",
            &[],
        ),
        default_prop("max-output", Kind::size(1, GIB), Size(MAX_OUTPUT_BYTES)),
        default_prop("ask-timeout", Kind::Seconds, Duration(ASK_TIMEOUT_SECONDS as u64 * 1000)),
    ])
    .with_children(&[&WRITABLE, &DENY_READ, &DENY_WRITE, &ALLOW, &ASK, &FORBID]);

pub(crate) static WRITABLE: Declaration = Declaration::list("writable", "paths", Kind::GuestPath);
pub(crate) static DENY_READ: Declaration = Declaration::list("deny-read", "paths", Kind::GuestPath);
pub(crate) static DENY_WRITE: Declaration =
    Declaration::list("deny-write", "paths", Kind::GuestPath);
pub(crate) static ALLOW: Declaration = Declaration::list("allow", "patterns", Kind::NonEmptyText);
pub(crate) static ASK: Declaration = Declaration::list("ask", "patterns", Kind::NonEmptyText);
pub(crate) static FORBID: Declaration = Declaration::list("forbid", "patterns", Kind::NonEmptyText);
