//! What is declared of a run: what the box is given, and what its commands may do.

use super::{
    Choice, Count, Declaration, Enforced, Kind, choice, optional, prop, required, required_prop,
};
use crate::units::{GIB, MIB};

const SCOPES: &[Choice] = &[
    choice("agent", "the agent alone"),
    choice("business", "the business application alone"),
    choice("both", "both components"),
];

pub(crate) static SHARE: Declaration = Declaration {
    name: "share",
    summary: "A host directory that the guest sees.",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name, "Its name, by the same rule as the box's.")),
    props: &[
        required_prop("guest", Kind::GuestPath, "Where the guest sees it."),
        prop(
            "host",
            Kind::LaunchPath,
            "",
            "The host's directory, relative to where the box is launched.",
        ),
        prop("access", Kind::OneOf(ACCESSES), "`ro`", "Whether the guest may write to it."),
        prop("component", Kind::OneOf(SCOPES), "`both`", "Who sees it."),
    ],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

const ACCESSES: &[Choice] =
    &[choice("ro", "it can be read"), choice("rw", "it can be read and written")];

pub(crate) static SCRATCH: Declaration = Declaration {
    name: "scratch",
    summary: "An empty disk for what a run writes; gone when the box stops.",
    count: Count::Keyed,
    first: Some(required("name", Kind::Name, "Its name, by the same rule as the box's.")),
    props: &[
        required_prop("guest", Kind::GuestPath, "Where the guest sees it."),
        required_prop(
            "size",
            Kind::Size { least: MIB, most: 1024 * GIB },
            "Its size, in whole MiB.",
        ),
        prop("component", Kind::OneOf(SCOPES), "`both`", "Who sees it."),
    ],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static NETWORK: Declaration = Declaration {
    name: "network",
    summary: "What the guest can reach beyond its own loopback; nothing by default.",
    first: Some(required("mode", Kind::OneOf(NETWORK_MODES), "How it reaches it.")),
    children: &[&ALLOW_PEER, &DENY_PEER],
    enforced: Enforced::Later,
    ..Declaration::VALUE
};

const NETWORK_MODES: &[Choice] = &[
    choice("none", "nothing: loopback alone"),
    choice("filtered", "what `allow` names and `deny` does not, through a proxy"),
    choice("shared", "what the host can reach"),
    choice("cap-only", "nothing but the capabilities under `/cap`"),
];

const PEER: &str = "A domain (`api.example.com`), all below one (`*.example.com`), an IP address, or a \
    network (`10.1.0.0/16`); no scheme, port or path. Private addresses are denied unless they are named.";

pub(crate) static ALLOW_PEER: Declaration = Declaration {
    name: "allow",
    summary: "What may be reached (`filtered` only).",
    rest: Some(optional("peers", Kind::Peer, PEER)),
    ..Declaration::VALUE
};

pub(crate) static DENY_PEER: Declaration = Declaration {
    name: "deny",
    summary: "What may not be reached although `allow` names it (`filtered` only).",
    rest: Some(optional("peers", Kind::Peer, PEER)),
    ..Declaration::VALUE
};

pub(crate) static SECRET: Declaration = Declaration {
    name: "secret",
    summary: "Something that the launcher hands over at run time, by its name; no value is in a Boxfile or box.",
    count: Count::Keyed,
    first: Some(required("name", Kind::Variable, "Its name: that of an environment variable.")),
    props: &[
        prop(
            "path",
            Kind::GuestPath,
            "",
            "The file that holds it, which only the component's user can read; without it, an \
                environment variable does.",
        ),
        prop("component", Kind::OneOf(SCOPES), "`agent`", "Who gets it."),
    ],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static TASK: Declaration = Declaration {
    name: "task",
    summary: "The task of a run: `/task/spec.json` and `/task/meta.json`.",
    first: Some(required("id", Kind::Text, "Its identifier.")),
    props: &[
        required_prop("type", Kind::Text, "What kind of task it is, in the agent's words."),
        required_prop("description", Kind::Text, "What is to be done."),
        prop("input", Kind::Json, "", "What it works on: a JSON text."),
        prop("timeout", Kind::Duration, "", "After which time it is ended."),
    ],
    children: &[&TAGS],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static TAGS: Declaration = Declaration {
    name: "tags",
    summary: "Words to find the task by.",
    rest: Some(optional("tags", Kind::Text, "A word.")),
    ..Declaration::VALUE
};

pub(crate) static LOGS: Declaration = Declaration {
    name: "logs",
    summary: "What is recorded under `/logs`.",
    props: &[
        prop(
            "stdout",
            Kind::Truth,
            "true",
            "`/logs/stdout.log`: what the agent writes to standard output.",
        ),
        prop(
            "stderr",
            Kind::Truth,
            "true",
            "`/logs/stderr.log`: what it writes to standard error.",
        ),
        prop("events", Kind::Truth, "true", "`/logs/events.jsonl`: what happens in the box."),
        prop(
            "atif",
            Kind::Truth,
            "true",
            "The directory `/logs/atif`, for the agent's trajectories.",
        ),
    ],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

pub(crate) static CAP: Declaration = Declaration {
    name: "cap",
    summary: "A capability: a service of the host that the guest uses through files under `/cap`.",
    count: Count::Keyed,
    first: Some(required("kind", Kind::OneOf(CAPS), "Which.")),
    props: &[
        prop(
            "max-connections",
            Kind::Integer { least: 1, most: 1024 },
            "16",
            "How many connections may be open at once (`ws` only).",
        ),
        prop("timeout", Kind::Duration, "30s", "What a request may take (`http` only)."),
    ],
    children: &[&RELAYS],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

const CAPS: &[Choice] = &[
    choice("http", "requests, at `/cap/http`"),
    choice("nostr", "events of relays, at `/cap/nostr`; needs `relays`"),
    choice("payments", "invoices, at `/cap/payments`"),
    choice("ws", "WebSocket connections, at `/cap/ws`"),
];

pub(crate) static RELAYS: Declaration = Declaration {
    name: "relays",
    summary: "The relays of the capability `nostr`.",
    first: Some(required("url", Kind::SocketUrl, "A relay: a ws or wss URL.")),
    rest: Some(optional("urls", Kind::SocketUrl, "Further relays.")),
    ..Declaration::VALUE
};

pub(crate) static SANDBOX: Declaration = Declaration {
    name: "sandbox",
    summary: "The policy for the commands that the agent runs.",
    first: Some(required("preset", Kind::OneOf(PRESETS), "What it starts from.")),
    props: &[
        prop(
            "fallback",
            Kind::OneOf(FALLBACKS),
            "`strict`; `warn` for the preset `development`",
            "What is done where the guest's kernel lacks what the policy needs.",
        ),
        prop(
            "max-output",
            Kind::Size { least: 1, most: GIB },
            "10MB",
            "The most output that a command may give back.",
        ),
    ],
    children: &[&WRITABLE, &DENY_READ, &DENY_WRITE, &ALLOW, &ASK, &FORBID],
    enforced: Enforced::Later,
    ..Declaration::NEW
};

const PRESETS: &[Choice] = &[
    choice(
        "default",
        "filtered network; system directories not writable, sensitive ones not readable",
    ),
    choice(
        "development",
        "as `default`, with the network open, and degrading where a feature is missing",
    ),
    choice("ci", "as `default`, with no network"),
];

const FALLBACKS: &[Choice] = &[
    choice("strict", "the command fails and names what is missing"),
    choice("warn", "it runs with less protection, and every result says so"),
];

pub(crate) static WRITABLE: Declaration =
    paths("writable", "Where commands may write, on top of the preset.");
pub(crate) static DENY_READ: Declaration = paths("deny-read", "What commands may not read.");
pub(crate) static DENY_WRITE: Declaration =
    paths("deny-write", "What commands may not write, though it lies inside of what is writable.");
pub(crate) static ALLOW: Declaration = commands("allow", "Commands that run without a question.");
pub(crate) static ASK: Declaration = commands("ask", "Commands that need a person's consent.");
pub(crate) static FORBID: Declaration = commands("forbid", "Commands that never run.");

const fn paths(name: &'static str, summary: &'static str) -> Declaration {
    let rest = Some(optional("paths", Kind::GuestPath, "A file or directory."));
    Declaration { name, summary, rest, ..Declaration::VALUE }
}

const fn commands(name: &'static str, summary: &'static str) -> Declaration {
    let rest = Some(optional("patterns", Kind::Text, "A command line, `*` for anything."));
    Declaration { name, summary, rest, ..Declaration::VALUE }
}
