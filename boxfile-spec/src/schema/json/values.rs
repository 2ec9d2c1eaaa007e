//! The schemas of single values.
//!
//! None is stricter than the parser. Where a rule is no pattern, the schema is wider, and
//! `boxbuild check` has the last word: what a number with a unit amounts to, for instance.

use serde_json::{Map, Value, json};

use super::described;
use crate::schema::{Declaration, Kind};
use crate::units::show_size;

/// The values that have a rule of their own, by name: what each is, and the pattern. The patterns
/// keep to what every dialect of regular expressions has.
const RULES: &str = include_str!("rules.json");

/// Returns the values with a rule of their own, by name.
pub(super) fn definitions() -> Map<String, Value> {
    serde_json::from_str(RULES).unwrap_or_default()
}

/// Returns the schema of a value of a declaration.
pub(super) fn value(of: &Declaration, kind: Kind) -> Value {
    match kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { least, most } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::OneOf(words) => {
            let word = |it: &&str| described(json!({ "const": it }), of.doc(it));
            any(words.iter().map(word).collect())
        }
        Kind::SocketUrl => json!({ "type": "string", "pattern": "^wss?://" }),
        _ => match kind.form().1 {
            "text" => json!({ "type": "string" }),
            "filled" => json!({ "type": "string", "minLength": 1 }),
            rule => reference(rule),
        },
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

/// Says what an argument or property is, with what the schema itself does not say.
pub(super) fn documented(of: &Declaration, name: &str, kind: Kind, default: &str) -> Value {
    let mut text = of.doc(name).to_owned();
    if let Kind::Size { least, most } = kind {
        text += &format!(" From {} to {}.", show_size(least), show_size(most));
    }
    if !default.is_empty() {
        text += &format!(" By default {default}.");
    }
    described(value(of, kind), text)
}
