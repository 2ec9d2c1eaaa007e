//! The schemas of single values.
//!
//! No schema is stricter than the parser. If a pattern cannot express a rule, the schema accepts
//! more than the parser, and `boxbuild check` decides. For example, the schema does not check the
//! bounds of a number with a unit.

use serde_json::{Map, Value, json};

use super::described;
use crate::schema::{Declaration, Kind};
use crate::units::show_size;

/// The definitions of values that have a separate rule, by name: a description and a pattern. The
/// patterns use only features that all dialects of regular expressions have.
const RULES: &str = include_str!("rules.json");

/// Returns the definitions of values that have a separate rule, by name.
pub(super) fn definitions() -> Map<String, Value> {
    serde_json::from_str(RULES).unwrap_or_default()
}

/// Returns the schema of a value of a kind in the declaration `of`.
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

/// Returns a reference to the definition `name`.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a value that fits any of the alternatives.
pub(super) fn any(mut alternatives: Vec<Value>) -> Value {
    if alternatives.len() == 1 { alternatives.remove(0) } else { json!({ "anyOf": alternatives }) }
}

/// Returns the schema of an argument or property. Its description has the bounds of a size and the
/// default, which the schema itself does not express.
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
