//! Secrets that are written as plain values: in `env`, in command lines and in the task. They are
//! errors, and no message shows them: see [`Diagnostic::hiding`].

use std::collections::{HashMap, HashSet};

use box_image::secrets::{Leak, PASSED, leaks, looks_secret};
use box_image::{ComponentName, Scope};

use crate::diagnostic::quote;
use crate::parse::run::secret::Secret;
use crate::rules;
use crate::schema::{self, Declaration};
use crate::sink::Sink;
use crate::syntax::tree::{Data, Node, Prop, Value};
use crate::{Diagnostic, Span, Syntax, form};

/// The label of a secret's place.
const LEAKS: &str = "it would be in the checkout and in every box";

/// Declarations that have a program or its arguments.
const COMMANDS: [&str; 3] = [schema::ENTRYPOINT.name, schema::ARGS.name, schema::HEALTH.name];

/// The components that would need a secret, as `secret` names them: a property, or nothing for the
/// default.
type Needs = Option<&'static str>;

/// Reports every secret that the components and the task have as a plain value, and every variable
/// of a component that it is given as a secret, too.
pub(super) fn check(
    components: [Option<&Node>; 2],
    task: Option<&Node>,
    declared: &[Secret],
    sink: &Sink,
) {
    let [agent, business] = components.map(leaking_names);
    for component in components.into_iter().flatten() {
        let needs = (component.name.value == schema::BUSINESS.name).then_some("business");
        check_declared(component, declared, sink);
        for prop in props(component, &schema::ENV).filter(|prop| is_leak(prop)) {
            let name = prop.name.value.as_str();
            let both = agent.contains(name) && business.contains(name);
            sink.report(plain_variable(prop, if both { Some("both") } else { needs }));
        }
        let is_command = |it: &&Node| COMMANDS.contains(&&*it.name.value);
        for command in component.children().iter().filter(is_command) {
            check_words(&command.name.value, &command.args, needs, sink);
        }
    }
    for prop in task.into_iter().flat_map(|task| &task.props) {
        check_words(&prop.name.value, std::slice::from_ref(&prop.value), None, sink);
    }
}

/// Lists the variables of all declarations of a name.
fn props<'n>(component: &'n Node, declaration: &Declaration) -> impl Iterator<Item = &'n Prop> {
    let named = |it: &&Node| it.name.value == declaration.name;
    component.children().iter().filter(named).flat_map(|node| &node.props)
}

/// Returns whether a variable of `env` looks like a secret.
fn is_leak(prop: &Prop) -> bool {
    let Data::Text(value) = &prop.value.data else { return false };
    rules::is_variable(&prop.name.value) && looks_secret(&prop.name.value, value)
}

fn leaking_names(component: Option<&Node>) -> HashSet<&str> {
    let props = component.into_iter().flat_map(|it| props(it, &schema::ENV));
    props.filter(|prop| is_leak(prop)).map(|prop| prop.name.value.as_str()).collect()
}

fn plain_variable(prop: &Prop, needs: Needs) -> Diagnostic {
    let (name, syntax) = (&prop.name.value, prop.value.syntax);
    let plain = match syntax {
        Syntax::Kdl => format!("write `plain-env {name}=…`"),
        Syntax::Toml => "put it under `plain-env` instead of `env`".to_owned(),
    };
    let declaration = declaration(syntax, name, needs);
    Diagnostic::new(rules::plain_secret(name), prop.value.span, LEAKS)
        .hiding(prop.value.span)
        .with_help(format!(
            "declare it by name alone, outside of the component: {declaration} ({PASSED}); if it is not a \
             secret, {plain}"
        ))
}

/// Writes the declaration of a secret, in backticks.
fn declaration(syntax: Syntax, name: &str, needs: Needs) -> String {
    let keyed = form::keyed(syntax, schema::SECRET.name, name);
    let Some(needs) = needs else { return format!("`{keyed}`") };
    let component = form::prop(syntax, "component", &format!("\"{needs}\""));
    match syntax {
        Syntax::Kdl => format!("`{keyed} {component}`"),
        Syntax::Toml => format!("`{keyed}` with `{component}`"),
    }
}

/// Reports the secrets in the words of a command, or in a text: for each word the first.
fn check_words(name: &str, words: &[Value], needs: Needs, sink: &Sink) {
    let mut before = None;
    for word in words {
        let Data::Text(text) = &word.data else { continue };
        if let Some(leak) = leaks(before, text).first() {
            sink.report(plain_word(name, word, leak, needs));
        }
        before = Some(text.as_str());
    }
}

fn plain_word(name: &str, word: &Value, leak: &Leak, needs: Needs) -> Diagnostic {
    let message = match &leak.option {
        Some(option) => rules::plain_secret(option),
        None => format!("`{name}` contains what looks like a secret"),
    };
    let variable = leak.variable();
    let declaration = declaration(word.syntax, &variable, needs);
    Diagnostic::new(message, word.span, LEAKS).hiding(word.span).with_help(format!(
        "declare it by name alone, outside of the component: {declaration}; the program then has \
         it as the environment variable `{variable}` ({PASSED})"
    ))
}

/// Reports every variable of a component that it is given as a secret, too.
fn check_declared(component: &Node, secrets: &[Secret], sink: &Sink) {
    let named = ComponentName::ALL.into_iter().find(|it| it.name() == component.name.value);
    let gets = |scope: Scope| named.is_some_and(|it| scope.includes(it));
    let names = secrets.iter().filter(|it| gets(it.scope)).filter_map(|it| it.name.as_ref());
    let places: HashMap<&str, Span> = names.map(|name| (&*name.value, name.span)).collect();
    for prop in props(component, &schema::ENV).chain(props(component, &schema::PLAIN_ENV)) {
        if let Some(place) = places.get(&*prop.name.value) {
            sink.report(both(prop, *place));
        }
    }
}

fn both(prop: &Prop, secret: Span) -> Diagnostic {
    let message = format!("{} is a secret and a plain value at once", quote(&prop.name.value));
    Diagnostic::new(message, prop.name.span, "a plain value here")
        .hiding(prop.value.span)
        .with_label(secret, "declared as a secret")
        .with_help(
            "remove the plain value: the launcher hands the secret over; or rename one of them",
        )
}
