//! The keywords of JSON Schema (draft 2020-12) that are used here, in the order in which they are
//! written.

use serde::{Serialize, Serializer};

/// Named schemas, in their order.
pub(super) type Named = Vec<(String, Schema)>;

/// A schema; what is empty is not written.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    #[serde(rename = "$ref", skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<String>,
    #[serde(rename = "const", skip_serializing_if = "Option::is_none")]
    pub(super) constant: Option<&'static str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pattern: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_length: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) minimum: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) maximum: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) prefix_items: Vec<Self>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) min_items: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) any_of: Vec<Self>,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(super) properties: Named,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) required: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) property_names: Option<Box<Self>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) additional_properties: Option<Further>,
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub(super) condition: Option<Box<Self>>,
    #[serde(rename = "else", skip_serializing_if = "Option::is_none")]
    pub(super) otherwise: Option<Box<Self>>,
    #[serde(rename = "$defs", skip_serializing_if = "Vec::is_empty", serialize_with = "in_order")]
    pub(super) definitions: Named,
}

/// What is true of the properties that are not named.
#[derive(Debug, Clone)]
pub(super) enum Further {
    /// There are none.
    None,
    /// Each is like this.
    Each(Box<Schema>),
}

impl Serialize for Further {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_bool(false),
            Self::Each(schema) => schema.serialize(serializer),
        }
    }
}

/// Writes a map in the order of its entries, whatever order `serde_json` has for its own.
fn in_order<S: Serializer>(named: &Named, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(named.iter().map(|(name, schema)| (name, schema)))
}

impl Schema {
    pub(super) fn text() -> Self {
        Self { kind: Some("string"), ..Self::default() }
    }

    pub(super) fn pattern(pattern: &'static str) -> Self {
        Self { pattern: Some(pattern), ..Self::text() }
    }

    pub(super) fn reference(name: &str) -> Self {
        Self { reference: Some(format!("#/$defs/{name}")), ..Self::default() }
    }

    pub(super) fn described(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Returns what fits any of these; the one itself where there is but one.
    pub(super) fn any(mut alternatives: Vec<Self>) -> Self {
        match alternatives.len() {
            1 => alternatives.remove(0),
            _ => Self { any_of: alternatives, ..Self::default() },
        }
    }
}
