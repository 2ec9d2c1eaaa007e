//! `secret "NAME" …`: what the launcher hands over at run time.

use box_contract::{Scope, SecretDelivery, SecretPlan};

use crate::parse::children::Children;
use crate::parse::reader::Reader;
use crate::parse::run::Components;
use crate::parse::run::mounts;
use crate::syntax::tree::{Node, Value};
use crate::{rules, schema, value};
use diagnostics::Sink;
use diagnostics::{Diagnostic, Spanned};
use safe_text::quote;

/// A secret, as far as its declaration can be read.
pub(in crate::parse) struct Secret {
    pub(in crate::parse) name: Option<Spanned<String>>,
    pub(in crate::parse) path: Option<Spanned<String>>,
    pub(in crate::parse) scope: Scope,
}

impl Secret {
    /// Returns what the model has of it.
    pub(in crate::parse) fn plan(self) -> Option<SecretPlan> {
        let file = |path: Spanned<String>| SecretDelivery::File { path: path.value };
        let delivery = self.path.map_or(SecretDelivery::Env, file);
        Some(SecretPlan { name: self.name?.value, scope: self.scope, delivery })
    }
}

/// Reads all secrets, and sorts them by name.
pub(in crate::parse) fn read(top: &Children<'_>, sink: &Sink) -> Vec<Secret> {
    let components = Components::of(top, sink);
    top.keyed(&schema::SECRET).into_iter().map(|node| read_one(node, components)).collect()
}

fn read_one(node: &Node, components: Components<'_>) -> Secret {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SECRET, sink);
    let name = reader.read_arg(variable);
    let path = reader.read_optional("path", value::guest_path);
    let example = "/run/secrets/api-key";
    path.iter().for_each(|it| mounts::check_place("no secret can be at", it, example, sink));
    let scope = components.scope(&mut reader, Scope::Agent);
    reader.finish();
    Secret { name, path, scope }
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
        format!("a secret's name {}", rules::VARIABLE_FORM)
    }))
}
