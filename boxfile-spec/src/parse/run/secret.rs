//! `secret "NAME" …`: what the launcher hands over at run time.

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::reader::Reader;
use crate::parse::{keyed, run};
use crate::sink::Sink;
use crate::syntax::{Node, Value};
use crate::{Delivery, Diagnostic, Scope, Secret, Spanned, rules, schema, value};

/// Reads all secrets, and sorts them by name.
pub(in crate::parse) fn read(top: &Children<'_>, sink: &Sink) -> Vec<Secret> {
    let nodes = top.many(&schema::SECRET);
    keyed::check_unique(&nodes, "name", sink);
    let mut secrets: Vec<Secret> = nodes.iter().filter_map(|node| secret(node, sink)).collect();
    secrets.sort_by(|one, other| one.name.value.cmp(&other.name.value));
    secrets
}

fn secret(node: &Node, sink: &Sink) -> Option<Secret> {
    let mut reader = Reader::new(node, &schema::SECRET, sink);
    let name = reader.arg();
    let name = reader.read(name, "secret", variable);
    let path = reader.optional_prop("path");
    let path = reader.read(path, "path", value::guest_path);
    let component = run::scope(&mut reader, Scope::Agent);
    reader.finish();
    let delivery = path.map_or(Delivery::Env, |path| Delivery::File { path: path.value });
    Some(Secret { name: name?, delivery, component })
}

fn variable(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let text = value::text(value, name)?;
    if rules::is_variable(text) {
        return Ok(Spanned { value: text.to_owned(), span: value.span });
    }
    let message = format!("{} cannot name a secret", quote(text));
    let intended: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let intended = intended.to_ascii_uppercase();
    let error = Diagnostic::new(message, value.span, "not a variable's name");
    Err(error.with_help(if rules::is_variable(&intended) {
        format!("name it as an environment variable is named: \"{intended}\"")
    } else {
        "a secret's name has letters, digits and `_`, and does not begin with a digit".to_owned()
    }))
}
