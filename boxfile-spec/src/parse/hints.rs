//! Writes the help for an argument or property that a declaration does not take: what the user probably meant, with the
//! user's value.

use box_contract::rules::is_label;
use safe_text::secrets::{PASSED, looks_secret};

use crate::errors::DECLARATION_ERRORS;
use crate::rules::is_variable;
use crate::schema::{Declaration, IMAGE, Kind, Property, SECRET};
use crate::syntax::tree::{Data, Node, Value};
use crate::value::describe;
use crate::{form, units};
use diagnostics::{Diagnostic, Syntax};

/// Returns the error of an argument that a declaration does not take. `refused` are the properties that the declaration
/// does not take together with its first argument.
pub(super) fn argument(
    node: &Node,
    declaration: &'static Declaration,
    refused: &[&str],
    arg: &Value,
) -> Diagnostic {
    let name = declaration.name;
    if declaration.variables.is_some() {
        return variable(name, arg);
    }
    let message = match declaration.first {
        None => format!("`{name}` takes no value, but got {}", describe(arg)),
        Some(_) => format!("unexpected argument: {}", describe(arg)),
    };
    let block = as_child(node, declaration, arg);
    let given = |prop: &&Property| node.props.iter().any(|it| it.name.value == prop.name);
    let free = |prop: &&Property| !refused.contains(&prop.name) && !given(prop);
    let written = meant(declaration, free, arg).map(|(prop, value)| {
        let written = form::prop(node.syntax, prop.name, &value);
        let alone = declaration.first.is_none();
        if alone { form::with_props(node.syntax, name, &written) } else { written }
    });
    Diagnostic::new(message, arg.span, "one too many").with_help(match written.or(block) {
        Some(written) => format!("write `{written}`"),
        None if declaration.props.is_empty() => "remove it".to_owned(),
        None if declaration.first.is_none() => {
            form::imperative("for example", &declaration.usage(node.syntax))
        }
        None => format!("remove it; {}", properties(declaration, refused)),
    })
}

/// Returns the declaration with the names of several capabilities in one property, as in
/// `capabilities add="CHOWN KILL"`, if all arguments are texts.
pub(super) fn joined(node: &Node, declaration: &'static Declaration) -> Option<String> {
    let prop = declaration.props.iter().find(|prop| prop.kind == Kind::Capabilities)?;
    let names: Option<Vec<&str>> = node.args.iter().map(Value::as_text).collect();
    let names = diagnostics::in_quotes(node.syntax, &names?.join(" "));
    let written = form::prop(node.syntax, prop.name, &names);
    Some(form::with_props(node.syntax, declaration.name, &written))
}

/// Returns the declaration with an argument that is meant as an image in its block: `agent { image "oci:i" }`.
fn as_child(node: &Node, declaration: &Declaration, arg: &Value) -> Option<String> {
    declaration.child(IMAGE.name)?;
    let written = Some(arg).filter(|it| is_reference(it))?.as_text()?;
    let written = diagnostics::in_quotes(node.syntax, written);
    Some(form::with_child(node.syntax, declaration.name, IMAGE.name, &written))
}

/// Returns whether a value is probably meant as an image: it contains a colon or a slash.
pub(super) fn is_reference(value: &Value) -> bool {
    value.as_text().is_some_and(|text| text.len() <= 100 && text.contains([':', '/']))
}

/// Returns the error of an argument such as `"A=1"`, which should be the variable `A="1"`. Hides the argument if it
/// could be a secret.
fn variable(declaration: &str, arg: &Value) -> Diagnostic {
    let text = if let Data::Text(text) = &arg.data { text.as_str() } else { "" };
    let (name, value) = text.split_once('=').unwrap_or((text, "value"));
    let [name, value] = if is_variable(name) { [name, value] } else { ["NAME", "value"] };
    let secret = looks_secret(name, value);
    let value = diagnostics::in_quotes(arg.syntax, if secret { "…" } else { value });
    let written = form::prop(arg.syntax, name, &value);
    let written = form::with_props(arg.syntax, declaration, &written);
    let error = DECLARATION_ERRORS.about("no-variable", declaration, arg.span);
    let error = error.with_help(format!("write `{written}`"));
    if secret { error.hiding(arg.span) } else { error }
}

/// Lists the properties of a declaration, except the refused ones.
pub(super) fn properties(declaration: &Declaration, refused: &[&str]) -> String {
    let names = declaration.props.iter().map(|prop| prop.name);
    let names: Vec<String> =
        names.filter(|it| !refused.contains(it)).map(|it| format!("`{it}`")).collect();
    let listed = format!("its properties: {}", names.join(", "));
    match names.as_slice() {
        [] => "remove it".to_owned(),
        _ if declaration.name == SECRET.name => format!("{listed}; {PASSED}"),
        _ => listed,
    }
}

/// Returns the property for which a value was probably meant, and the value as it is written there. Among several
/// properties that the value fits, prefers those with a list of words, and then the first one in the declaration's
/// example.
fn meant(
    declaration: &'static Declaration,
    free: impl Fn(&&Property) -> bool,
    arg: &Value,
) -> Option<(&'static Property, String)> {
    let example = declaration.example(Syntax::Kdl);
    let place = |prop: &&Property| {
        let word = matches!(prop.kind, Kind::OneOf(_));
        (!word, example.find(&format!("{}=", prop.name)).unwrap_or(usize::MAX))
    };
    let mut props: Vec<&Property> = declaration.props.iter().filter(free).collect();
    props.sort_by_key(place);
    props.into_iter().find_map(|prop| Some((prop, fitting(prop.kind, arg)?)))
}

/// Returns a value as it is written for a property of a kind. Returns `None` if the value does not fit, or is a text of
/// more than 100 characters.
pub(super) fn fitting(kind: Kind, arg: &Value) -> Option<String> {
    let text = match (&arg.data, kind) {
        (Data::Integer(number), Kind::Integer { .. }) => return Some(number.to_string()),
        (Data::Text(text), _) => text,
        _ => return None,
    };
    let fits = match kind {
        Kind::OneOf(words) => words.contains(&text.as_str()),
        Kind::Duration | Kind::Seconds => units::duration(text).is_some(),
        Kind::GuestPath | Kind::MountPoint | Kind::SecretPath | Kind::FilePlace | Kind::WorkDir => {
            text.starts_with('/')
        }
        Kind::Hostname => is_label(text),
        Kind::Sha256 => text.len() == 64,
        Kind::Size { .. } => {
            return units::intended_size(text).map(|it| diagnostics::in_quotes(arg.syntax, &it));
        }
        Kind::Text | Kind::NonEmptyText | Kind::HttpPath | Kind::GrpcService => true,
        Kind::Path | Kind::BakedPath | Kind::LaunchPath => true,
        Kind::Image | Kind::PathOrUrl | Kind::User | Kind::Capabilities => true,
        _ => false,
    };
    (fits && text.chars().count() <= 100).then(|| diagnostics::in_quotes(arg.syntax, text))
}
