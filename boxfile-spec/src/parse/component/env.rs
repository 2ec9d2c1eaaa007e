//! `env NAME="value" …` and `plain-env …`, once or several times.

use std::collections::{BTreeMap, HashMap};

use box_image::ComponentName;

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::reader::{Reader, twice};
use crate::parse::run::secret::Secret;
use crate::schema::{self, Declaration};
use crate::sink::Sink;
use crate::syntax::tree::{Node, Prop};
use crate::{Diagnostic, Span, Syntax, form, rules, value};

/// Reads the variables of all `env` and `plain-env` declarations of a component.
pub(super) fn read(children: &Children<'_>, sink: &Sink) -> BTreeMap<String, String> {
    let mut found: BTreeMap<&str, &Prop> = BTreeMap::new();
    let mut env = BTreeMap::new();
    for declaration in [&schema::ENV, &schema::PLAIN_ENV] {
        for node in children.many(declaration) {
            let mut reader = Reader::new(node, declaration, sink);
            if reader.props().is_empty() && node.args.is_empty() && node.block.is_none() {
                reader.report_missing("a variable");
            }
            for prop in reader.props() {
                if let Some(first) = found.insert(&prop.name.value, prop) {
                    sink.report(twice(first, prop));
                }
                env.extend(variable(declaration, prop, sink));
            }
            reader.finish();
        }
    }
    env
}

fn variable(declaration: &Declaration, prop: &Prop, sink: &Sink) -> Option<(String, String)> {
    let name = &prop.name.value;
    sink.check(rules::check_variable(name, prop.name.span))?;
    let value = sink.check(value::text(&prop.value, name))?;
    if declaration.name == schema::ENV.name && rules::looks_secret(name, value) {
        sink.report(secret(prop));
    }
    Some((name.clone(), value.to_owned()))
}

/// Reports every variable of a component that it is given as a secret, too.
pub(in crate::parse) fn check_secrets(component: Option<&Node>, secrets: &[Secret], sink: &Sink) {
    let Some(component) = component else { return };
    let named = ComponentName::ALL.into_iter().find(|it| it.name() == component.name.value);
    let gets = |secret: &&Secret| named.is_some_and(|it| secret.scope.includes(it));
    let names = secrets.iter().filter(gets).filter_map(|secret| secret.name.as_ref());
    let places: HashMap<&str, Span> = names.map(|name| (&*name.value, name.span)).collect();
    let names = [schema::ENV.name, schema::PLAIN_ENV.name];
    let env = component.children().iter().filter(|node| names.contains(&&*node.name.value));
    for prop in env.flat_map(|node| &node.props) {
        if let Some(place) = places.get(&*prop.name.value) {
            sink.report(both(prop, *place));
        }
    }
}

fn both(prop: &Prop, secret: Span) -> Diagnostic {
    let message = format!("{} is a secret and a plain value at once", quote(&prop.name.value));
    Diagnostic::new(message, prop.name.span, "a plain value here")
        .with_label(secret, "declared as a secret")
        .with_help(
            "remove the plain value: the launcher hands the secret over; or rename one of them",
        )
}

fn secret(prop: &Prop) -> Diagnostic {
    let (name, syntax) = (&prop.name.value, prop.value.syntax);
    let plain = match syntax {
        Syntax::Kdl => format!("write `plain-env {name}=…`"),
        Syntax::Toml => "put it under `plain-env` instead of `env`".to_owned(),
    };
    let message = rules::plain_secret(name);
    Diagnostic::new(message, prop.value.span, "it would be in the checkout and in every box")
        .with_help(format!(
            "declare it by name alone, outside of the component: `{}`; if it is no secret, {plain}",
            form::keyed(syntax, "secret", name)
        ))
}
