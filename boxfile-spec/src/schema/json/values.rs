//! The schemas of single values.
//!
//! None is stricter than the parser. Where a rule is no pattern, the schema is wider, and
//! `boxbuild check` has the last word: what a number with a unit amounts to, for instance.

use serde_json::{Map, Value, json};

use super::described;
use crate::schema::{Choice, Kind};
use crate::units::show_size;

/// The values that have a rule of their own: a name, what it is, and the pattern.
///
/// The patterns keep to what every dialect of regular expressions has.
const RULES: [(&str, &str, &str); 11] = [
    (
        "name",
        "Lower-case letters, digits and inner hyphens, at most 63.",
        "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    ),
    (
        "hostname",
        "Letters, digits and inner hyphens, at most 63.",
        "^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$",
    ),
    (
        "variable",
        "Letters, digits and `_`, and no digit at its beginning.",
        "^[A-Za-z_][A-Za-z0-9_]*$",
    ),
    (
        "size",
        "A whole number and a unit: B, KiB, MiB, GiB, KB, MB or GB.",
        "^[0-9]+(B|KiB|MiB|GiB|KB|MB|GB)$",
    ),
    (
        "duration",
        "A number and a unit, down to the millisecond: `500ms`, `3s`, `1.5s`.",
        "^([0-9]+ms|[0-9]+(\\.[0-9]{1,3})?s)$",
    ),
    ("sha256", "64 hexadecimal digits in lower case.", "^[0-9a-f]{64}$"),
    ("absolute-path", "An absolute path.", "^/"),
    (
        "guest-path",
        "An absolute path below `/`, without `.`, `..` and empty parts.",
        "^(/([^/.][^/]*|\\.[^/.][^/]*|\\.\\.[^/]+))+$",
    ),
    ("glob", "Absolute; `*` stands for anything but `/`, `**` for anything.", "^/"),
    (
        "user",
        "`USER` or `USER:GROUP`, names or numbers.",
        "^[A-Za-z0-9_.$][A-Za-z0-9_.$-]{0,63}(:[A-Za-z0-9_.$][A-Za-z0-9_.$-]{0,63})?$",
    ),
    (
        "peer",
        "A domain, all below one (`*.example.com`), an address or a network.",
        "^[A-Za-z0-9:*][A-Za-z0-9.:/-]*$",
    ),
];

/// Returns the values with a rule of their own, by name.
pub(super) fn definitions() -> Map<String, Value> {
    let define = |(name, description, pattern): (&str, &str, &str)| {
        (name.to_owned(), described(json!({ "type": "string", "pattern": pattern }), description))
    };
    RULES.into_iter().map(define).collect()
}

/// Returns the schema of a value.
pub(super) fn value(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Truth => json!({ "type": "boolean" }),
        Kind::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::OneOf(choices) => {
            let word = |it: &Choice| described(json!({ "const": it.name }), it.doc);
            any(choices.iter().map(word).collect())
        }
        Kind::SocketUrl => json!({ "type": "string", "pattern": "^wss?://" }),
        Kind::Name => reference("name"),
        Kind::Hostname => reference("hostname"),
        Kind::Variable => reference("variable"),
        Kind::Size { .. } => reference("size"),
        Kind::Duration => reference("duration"),
        Kind::Sha256 => reference("sha256"),
        Kind::Absolute => reference("absolute-path"),
        Kind::GuestPath => reference("guest-path"),
        Kind::Glob => reference("glob"),
        Kind::User => reference("user"),
        Kind::Peer => reference("peer"),
        Kind::Json
        | Kind::Path
        | Kind::AnyPath
        | Kind::LaunchPath
        | Kind::Image
        | Kind::PathOrUrl
        | Kind::Tool => json!({ "type": "string", "minLength": 1 }),
    }
}

/// Returns the schema of what a definition says.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns what fits any of these; the one itself where there is but one.
pub(super) fn any(mut alternatives: Vec<Value>) -> Value {
    if alternatives.len() == 1 { alternatives.remove(0) } else { json!({ "anyOf": alternatives }) }
}

/// Says what a value is, with what the schema itself does not say.
pub(super) fn documented(kind: Kind, doc: &str, default: &str) -> Value {
    let mut text = doc.to_owned();
    if let Kind::Size { least, most } = kind {
        text += &format!(" From {} to {}.", show_size(least), show_size(most));
    }
    if !default.is_empty() {
        text += &format!(" By default {default}.");
    }
    described(value(kind), text)
}
