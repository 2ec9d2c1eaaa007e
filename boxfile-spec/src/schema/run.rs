//! Declarations of a run: what the box is given, and what its commands may do.

use box_contract::rules::{
    LEAST_RATE, LEAST_SCRATCH, MOST_CONNECTIONS, MOST_NAMES, MOST_RATE, MOST_SCRATCH,
};

use super::{Count, Declaration, Enforced, Kind, prop, required, required_prop};
use crate::units::GIB;

const SCOPES: &[&str] = &["agent", "business", "both"];

pub(crate) static SHARE: Declaration = Declaration {
    name: "share",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name)),
    props: &[
        required_prop("guest", Kind::GuestPath),
        prop("host", Kind::LaunchPath, ""),
        prop("access", Kind::OneOf(&["ro", "rw"]), "`ro`"),
        prop("component", Kind::OneOf(SCOPES), "`both`"),
    ],
    ..Declaration::NEW
};

pub(crate) static SCRATCH: Declaration = Declaration {
    name: "scratch",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name)),
    props: &[
        required_prop("guest", Kind::GuestPath),
        required_prop("size", Kind::Size { least: LEAST_SCRATCH, most: MOST_SCRATCH }),
        prop("component", Kind::OneOf(SCOPES), "`both`"),
    ],
    ..Declaration::NEW
};

pub(crate) static NETWORK: Declaration = Declaration {
    name: "network",
    first: Some(required("mode", Kind::OneOf(NETWORK_MODES))),
    children: &[&ALLOW_PEER, &DENY_PEER, &NETWORK_LIMITS],
    ..Declaration::VALUE
};

const NETWORK_MODES: &[&str] = &["none", "filtered", "shared", "cap-only"];

pub(crate) static ALLOW_PEER: Declaration = Declaration {
    props: &[prop("port", Kind::PORT, "80 and 443")],
    count: Count::Repeatable,
    ..Declaration::some("allow", PEERS, Kind::Peer)
};

pub(crate) static DENY_PEER: Declaration = Declaration {
    props: &[prop("port", Kind::PORT, "all ports")],
    count: Count::Repeatable,
    ..Declaration::some("deny", PEERS, Kind::Peer)
};

const PEERS: [&str; 2] = ["peer", "peers"];

pub(crate) static NETWORK_LIMITS: Declaration = Declaration {
    name: "limits",
    props: &[
        prop("connections", Kind::Integer { least: 1, most: MOST_CONNECTIONS as u64 }, "128"),
        prop("rate", Kind::Size { least: LEAST_RATE, most: MOST_RATE }, "64MiB"),
        prop("names", Kind::Integer { least: 1, most: MOST_NAMES as u64 }, "300"),
    ],
    ..Declaration::VALUE
};

pub(crate) static SECRET: Declaration = Declaration {
    name: "secret",
    count: Count::Keyed,
    first: Some(required("name", Kind::Variable)),
    props: &[prop("path", Kind::GuestPath, ""), prop("component", Kind::OneOf(SCOPES), "`agent`")],
    ..Declaration::NEW
};

pub(crate) static TASK: Declaration = Declaration {
    name: "task",
    first: Some(required("id", Kind::Text)),
    props: &[
        required_prop("type", Kind::Text),
        required_prop("description", Kind::Text),
        prop("input", Kind::Json, ""),
        prop("timeout", Kind::Duration, ""),
    ],
    children: &[&TAGS],
    ..Declaration::NEW
};

pub(crate) static TAGS: Declaration = Declaration::list("tags", "tags", Kind::Text);

pub(crate) static LOGS: Declaration = Declaration {
    name: "logs",
    props: &[
        prop("stdout", Kind::Truth, "true"),
        prop("stderr", Kind::Truth, "true"),
        prop("events", Kind::Truth, "true"),
        prop("atif", Kind::Truth, "true"),
    ],
    ..Declaration::NEW
};

pub(crate) static CAP: Declaration = Declaration {
    name: "cap",
    count: Count::Keyed,
    first: Some(required("kind", Kind::OneOf(&["http", "nostr", "payments", "ws"]))),
    props: &[
        prop("max-connections", Kind::Integer { least: 1, most: 1024 }, "16"),
        prop("timeout", Kind::Duration, "30s"),
    ],
    children: &[&RELAYS],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static RELAYS: Declaration =
    Declaration::some("relays", ["url", "urls"], Kind::SocketUrl);

pub(crate) static SANDBOX: Declaration = Declaration {
    name: "sandbox",
    first: Some(required("preset", Kind::OneOf(&["default", "development", "ci"]))),
    props: &[
        prop(
            "fallback",
            Kind::OneOf(&["strict", "warn"]),
            "`strict`; `warn` for the preset `development`",
        ),
        prop("max-output", Kind::Size { least: 1, most: GIB }, "10MB"),
    ],
    children: &[&WRITABLE, &DENY_READ, &DENY_WRITE, &ALLOW, &ASK, &FORBID],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static WRITABLE: Declaration = Declaration::list("writable", "paths", Kind::GuestPath);
pub(crate) static DENY_READ: Declaration = Declaration::list("deny-read", "paths", Kind::GuestPath);
pub(crate) static DENY_WRITE: Declaration =
    Declaration::list("deny-write", "paths", Kind::GuestPath);
pub(crate) static ALLOW: Declaration = Declaration::list("allow", "patterns", Kind::Text);
pub(crate) static ASK: Declaration = Declaration::list("ask", "patterns", Kind::Text);
pub(crate) static FORBID: Declaration = Declaration::list("forbid", "patterns", Kind::Text);
