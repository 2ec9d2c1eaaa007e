//! `parameters`: a list of them, or a JSON Schema whose properties they are.

use std::collections::HashSet;

use super::fields::{Field, Fields};
use super::manifest::{Parameter, ParameterType};
use super::report::Report;
use super::yaml::{Data, Entry, Node};
use super::{tool, value};
use crate::Diagnostic;
use crate::diagnostic::quote;

const TYPES: [(&str, ParameterType); 7] = [
    ("string", ParameterType::String),
    ("number", ParameterType::Number),
    ("integer", ParameterType::Integer),
    ("boolean", ParameterType::Boolean),
    ("object", ParameterType::Object),
    ("array", ParameterType::Array),
    ("null", ParameterType::Null),
];
/// The signs of a name beside letters and digits.
const SIGNS: &str = "_-.";

/// Reads either form.
pub(super) fn read(field: Field<'_>, report: &Report) -> Vec<Parameter> {
    match &field.value.data {
        Data::List(items) => items.iter().filter_map(|item| listed(item, report)).collect(),
        Data::Map(_) => schema(field.value, report).unwrap_or_default(),
        _ => {
            let error = value::mismatch(field.value, field.name, "a list or a JSON Schema");
            report.error(error.with_help("write `- name: …`, `type: …` below `parameters:`"));
            Vec::new()
        }
    }
}

fn listed(node: &Node, report: &Report) -> Option<Parameter> {
    let mut fields = Fields::new("a parameter", node, report)?;
    let name =
        fields.require("name", "write `- name: who`", |node, key| tool::name(node, key, SIGNS));
    let kind = fields.require("type", "write `type: string`", kind);
    let required = fields.read("required", value::boolean).unwrap_or_default();
    let description = fields.read("description", value::text);
    fields.finish();
    Some(Parameter { name: name?.value, kind: Some(kind?), required, description })
}

fn kind(node: &Node, key: &str) -> Result<ParameterType, Diagnostic> {
    value::word(node, key, &TYPES)
}

/// Reads the first level of a JSON Schema; what else it may say is the agent's affair.
fn schema(node: &Node, report: &Report) -> Option<Vec<Parameter>> {
    let mut fields = Fields::new("`parameters`", node, report)?;
    fields.require("type", "a JSON Schema of parameters begins with `type: object`", object);
    let required: HashSet<String> =
        fields.items("required", value::filled_text).into_iter().collect();
    let properties = fields.read("properties", mapping).unwrap_or_default();
    Some(properties.iter().filter_map(|entry| property(entry, &required, report)).collect())
}

fn object(node: &Node, key: &str) -> Result<(), Diagnostic> {
    match value::text(node, key)?.as_str() {
        "object" => Ok(()),
        other => Err(Diagnostic::new(
            format!("the parameters of a tool are an object, not {}", quote(other)),
            node.span,
            "expected `object`",
        )
        .with_help("write `type: object`, and the parameters below `properties:`")),
    }
}

fn mapping<'n>(node: &'n Node, key: &str) -> Result<&'n [Entry], Diagnostic> {
    match &node.data {
        Data::Map(entries) => Ok(entries),
        _ => Err(value::mismatch(node, key, "a mapping of names to schemas")),
    }
}

fn property(entry: &Entry, required: &HashSet<String>, report: &Report) -> Option<Parameter> {
    let key = Node { span: entry.key.span, data: Data::Text(entry.key.value.clone()) };
    let name = report.check(tool::name(&key, "properties", SIGNS))?.value;
    let mut fields = Fields::new("a property", &entry.value, report)?;
    let kind = fields.read("type", property_kind).flatten();
    let description = fields.read("description", value::text);
    Some(Parameter { required: required.contains(&name), name, kind, description })
}

/// Reads a type; nothing where there are several.
fn property_kind(node: &Node, key: &str) -> Result<Option<ParameterType>, Diagnostic> {
    match &node.data {
        Data::List(several) => {
            several.iter().try_for_each(|one| kind(one, key).map(drop)).map(|()| None)
        }
        _ => kind(node, key).map(Some),
    }
}
