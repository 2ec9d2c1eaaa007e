//! `tools`: the tools that a skill brings.

use std::collections::HashMap;

use super::fields::Fields;
use super::manifest::Tool;
use super::report::Report;
use super::yaml::{Data, Node};
use super::{backend, parameters, value};
use crate::diagnostic::quote;
use crate::{Diagnostic, Span, Spanned};

const NAME_HELP: &str = "write `- name: hello`";
/// The longest name that the interfaces of language models take.
const LONGEST_NAME: usize = 64;

/// Reads the list; a tool with an error is left out.
pub(super) fn read(fields: &mut Fields<'_>) -> Vec<Tool> {
    let report = fields.report;
    let items = fields.read("tools", value::list).unwrap_or_default();
    let mut places: HashMap<String, Span> = HashMap::new();
    let mut tools = Vec::new();
    for tool in items.iter().filter_map(|item| one(item, report)) {
        match places.get(&tool.name.value) {
            Some(first) => report.error(second(&tool.name, *first)),
            None => drop(places.insert(tool.name.value.clone(), tool.name.span)),
        }
        tools.push(tool);
    }
    tools
}

fn one(node: &Node, report: &Report) -> Option<Tool> {
    if let Data::Text(text) = &node.data {
        report.error(bare_text(text, node.span));
        return None;
    }
    let mut fields = Fields::new("a tool", node, report)?;
    let name = fields.require("name", NAME_HELP, |node, key| name(node, key, "_-"));
    let description = fields.read("description", value::text);
    let backend = backend::read(&mut fields);
    let parameters = fields.take("parameters").map(|field| parameters::read(field, report));
    fields.finish();
    let parameters = parameters.unwrap_or_default();
    Some(Tool { name: name?, description, backend: backend?, parameters })
}

/// Reads a name of ASCII letters, digits and the signs given.
pub(super) fn name(node: &Node, key: &str, signs: &str) -> Result<Spanned<String>, Diagnostic> {
    let value = value::text(node, key)?;
    let inner = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    if (1..=LONGEST_NAME).contains(&value.len()) && value.chars().all(inner) {
        return Ok(Spanned { value, span: node.span });
    }
    let message = format!("{} is not a valid name", quote(&value));
    let signs: Vec<String> = signs.chars().map(|sign| format!("`{sign}`")).collect();
    let help = format!("such a name has 1 to 64 letters, digits, {}", signs.join(", "));
    Err(Diagnostic::new(message, node.span, "not a name").with_help(help))
}

fn second(name: &Spanned<String>, first: Span) -> Diagnostic {
    let message = format!("two tools have the name {}", quote(&name.value));
    Diagnostic::new(message, name.span, "the second")
        .with_label(first, "the first")
        .with_help("give one of them another name")
}

/// The error for `- tools/hello.sh`, which says what to write where the text is a path.
fn bare_text(text: &str, span: Span) -> Diagnostic {
    let error = Diagnostic::new("a tool is a mapping, not a text", span, "expected `name: …`");
    let file = text.rsplit('/').next().unwrap_or(text);
    let stem = file.split('.').next().unwrap_or(file);
    error.with_help(if stem.is_empty() || text.len() > LONGEST_NAME || text.contains('\n') {
        "write `- name: hello` and below it `script: tools/hello.sh`".to_owned()
    } else {
        format!("write `- name: {stem}` and below it `script: {text}`")
    })
}
