//! Declarations of a run: what the box is given, and what its commands may do.

use box_contract::rules::{
    MAX_CONNECTIONS, MAX_NAMES, MAX_RATE, MAX_SCRATCH_BYTES, MIN_RATE, MIN_SCRATCH_BYTES,
};

use super::{Count, Declaration, Kind, prop, required, required_prop};
use crate::units::GIB;

const SCOPE: Kind = Kind::OneOf(&["agent", "business", "both"]);

pub(crate) static SHARE: Declaration =
    Declaration::keyed("share", "name", Kind::Name).with_props(&[
        required_prop("guest", Kind::MountPoint),
        prop("host", Kind::LaunchPath, ""),
        prop("access", Kind::OneOf(&["ro", "rw"]), "`ro`"),
        prop("component", SCOPE, "`both`"),
    ]);

pub(crate) static SCRATCH: Declaration = Declaration::keyed("scratch", "name", Kind::Name)
    .with_props(&[
        required_prop("guest", Kind::MountPoint),
        required_prop("size", Kind::size(MIN_SCRATCH_BYTES, MAX_SCRATCH_BYTES)),
        prop("component", SCOPE, "`both`"),
    ]);

pub(crate) static NETWORK: Declaration =
    Declaration::one("network", "mode", Kind::OneOf(NETWORK_MODES)).with_children(&[
        &ALLOW_PEER,
        &DENY_PEER,
        &NETWORK_LIMITS,
    ]);

const NETWORK_MODES: &[&str] = &["none", "filtered", "shared", "cap-only"];

pub(crate) static ALLOW_PEER: Declaration =
    peers("allow").with_props(&[prop("port", Kind::PORT, "80 and 443")]);

pub(crate) static DENY_PEER: Declaration =
    peers("deny").with_props(&[prop("port", Kind::PORT, "all ports")]);

const fn peers(name: &'static str) -> Declaration {
    Declaration::some(name, ["peer", "peers"], Kind::Peer).with_count(Count::Repeatable)
}

pub(crate) static NETWORK_LIMITS: Declaration = Declaration::new("limits")
    .with_props(&[
        prop("connections", Kind::count_to(MAX_CONNECTIONS as u64), "128"),
        prop("rate", Kind::size(MIN_RATE, MAX_RATE), "64MiB"),
        prop("names", Kind::count_to(MAX_NAMES as u64), "300"),
    ])
    .replacing();

pub(crate) static SECRET: Declaration = Declaration::keyed("secret", "name", Kind::Variable)
    .with_props(&[prop("path", Kind::SecretPath, ""), prop("component", SCOPE, "`agent`")]);

pub(crate) static TASK: Declaration = Declaration::new("task")
    .with_first(required("id", Kind::NonEmptyText))
    .with_props(&[
        required_prop("type", Kind::NonEmptyText),
        required_prop("description", Kind::Text),
        prop("input", Kind::Json, ""),
        prop("timeout", Kind::Duration, ""),
    ])
    .with_children(&[&TAGS]);

pub(crate) static TAGS: Declaration = Declaration::list("tags", "tags", Kind::NonEmptyText);

pub(crate) static LOGS: Declaration = Declaration::new("logs").with_props(&[
    prop("stdout", Kind::Bool, "true"),
    prop("stderr", Kind::Bool, "true"),
    prop("events", Kind::Bool, "true"),
    prop("atif", Kind::Bool, "true"),
]);

pub(crate) static CAP: Declaration = Declaration::keyed("cap", "kind", CAP_KIND)
    .with_props(&[
        prop("max-connections", Kind::count_to(1024), "16"),
        prop("timeout", Kind::Duration, "30s"),
    ])
    .with_children(&[&RELAYS])
    .enforced_later();

const CAP_KIND: Kind = Kind::OneOf(&["http", "nostr", "payments", "ws"]);

pub(crate) static RELAYS: Declaration =
    Declaration::some("relays", ["url", "urls"], Kind::SocketUrl);

pub(crate) static SANDBOX: Declaration = Declaration::new("sandbox")
    .with_first(required("preset", Kind::OneOf(&["default", "development", "ci"])))
    .with_props(&[
        prop(
            "fallback",
            Kind::OneOf(&["strict", "warn"]),
            "`strict`; `warn` for the preset `development`",
        ),
        prop("max-output", Kind::size(1, GIB), "10MB"),
    ])
    .with_children(&[&WRITABLE, &DENY_READ, &DENY_WRITE, &ALLOW, &ASK, &FORBID])
    .enforced_later();

pub(crate) static WRITABLE: Declaration = Declaration::list("writable", "paths", Kind::GuestPath);
pub(crate) static DENY_READ: Declaration = Declaration::list("deny-read", "paths", Kind::GuestPath);
pub(crate) static DENY_WRITE: Declaration =
    Declaration::list("deny-write", "paths", Kind::GuestPath);
pub(crate) static ALLOW: Declaration = Declaration::list("allow", "patterns", Kind::NonEmptyText);
pub(crate) static ASK: Declaration = Declaration::list("ask", "patterns", Kind::NonEmptyText);
pub(crate) static FORBID: Declaration = Declaration::list("forbid", "patterns", Kind::NonEmptyText);
