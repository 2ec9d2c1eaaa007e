//! The schemas of single values.
//!
//! None is stricter than the parser. Where a rule is no pattern, the schema is wider, and
//! `boxbuild check` has the last word: what a number with a unit amounts to, for instance.

use super::keywords::{Named, Schema};
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
pub(super) fn definitions() -> Named {
    let define = |(name, description, pattern): (&str, &str, &'static str)| {
        (name.to_owned(), Schema::pattern(pattern).described(description))
    };
    RULES.map(define).into()
}

/// Returns the schema of a value.
pub(super) fn value(kind: Kind) -> Schema {
    match kind {
        Kind::Text => Schema::text(),
        Kind::Truth => Schema { kind: Some("boolean"), ..Schema::default() },
        Kind::Integer { least, most } => Schema {
            kind: Some("integer"),
            minimum: Some(least),
            maximum: Some(most),
            ..Schema::default()
        },
        Kind::OneOf(choices) => Schema::any(choices.iter().map(word).collect()),
        Kind::SocketUrl => Schema::pattern("^wss?://"),
        Kind::Name => Schema::reference("name"),
        Kind::Hostname => Schema::reference("hostname"),
        Kind::Variable => Schema::reference("variable"),
        Kind::Size { .. } => Schema::reference("size"),
        Kind::Duration => Schema::reference("duration"),
        Kind::Sha256 => Schema::reference("sha256"),
        Kind::Absolute => Schema::reference("absolute-path"),
        Kind::GuestPath => Schema::reference("guest-path"),
        Kind::Glob => Schema::reference("glob"),
        Kind::User => Schema::reference("user"),
        Kind::Peer => Schema::reference("peer"),
        Kind::Json
        | Kind::Path
        | Kind::AnyPath
        | Kind::LaunchPath
        | Kind::Image
        | Kind::PathOrUrl
        | Kind::Tool => Schema { min_length: Some(1), ..Schema::text() },
    }
}

fn word(choice: &Choice) -> Schema {
    Schema { constant: Some(choice.name), ..Schema::default() }.described(choice.doc)
}

/// Says what a value is, with what the schema itself does not say.
pub(super) fn description(kind: Kind, doc: &str, default: &str) -> String {
    let range = match kind {
        Kind::Size { least, most } => {
            format!(" From {} to {}.", show_size(least), show_size(most))
        }
        _ => String::new(),
    };
    let default =
        if default.is_empty() { String::new() } else { format!(" By default {default}.") };
    format!("{doc}{range}{default}")
}
