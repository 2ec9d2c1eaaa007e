//! `secret "NAME" …`: what the launcher hands over at run time.

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::parse::run::Components;
use crate::parse::run::mounts::reserved;
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::{Delivery, Diagnostic, Scope, Secret, Spanned, rules, schema, value};

/// The file of a secret, and who sees it.
pub(in crate::parse) struct SecretFile {
    pub(in crate::parse) path: Spanned<String>,
    pub(in crate::parse) component: Scope,
}

/// Reads all secrets, and sorts them by name; returns the files of those that have one, too.
pub(in crate::parse) fn read(top: &Children<'_>, sink: &Sink) -> (Vec<Secret>, Vec<SecretFile>) {
    let nodes = top.many(&schema::SECRET);
    names::check_unique(&nodes, "name", sink);
    let components = Components::of(top, sink);
    let (mut secrets, mut files) = (Vec::new(), Vec::new());
    for node in nodes {
        let (secret, file) = read_one(node, components);
        secrets.extend(secret);
        files.extend(file);
    }
    secrets.sort_by(|one, other| one.name.value.cmp(&other.name.value));
    (secrets, files)
}

fn read_one(node: &Node, components: Components<'_>) -> (Option<Secret>, Option<SecretFile>) {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SECRET, sink);
    let name = reader.read_arg(variable);
    let path = reader.read_optional("path", value::guest_path);
    if let Some((path, taken)) = path.as_ref().and_then(|it| Some((it, reserved(&it.value)?))) {
        sink.report(refused(path, taken));
    }
    let component = components.scope(&mut reader, Scope::Agent);
    reader.finish();
    let delivery = match &path {
        None => Delivery::Env,
        Some(path) => Delivery::File { path: path.value.clone() },
    };
    let secret = name.map(|name| Secret { name, delivery, component });
    (secret, path.map(|path| SecretFile { path, component }))
}

fn refused(path: &Spanned<String>, taken: &str) -> Diagnostic {
    let message = format!("no secret can be at {}", quote(&path.value));
    Diagnostic::new(message, path.span, format!("the guest has its own `{taken}`"))
        .with_help("choose another place, for instance \"/run/secrets/api-key\"")
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
