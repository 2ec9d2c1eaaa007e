//! Finds secrets that are written as plain values: in `env`, in command lines and in the task. They are errors, whose
//! messages do not show the secrets: see [`Diagnostic::hiding`].

use std::collections::{HashMap, HashSet};

use box_contract::wire::{MAX_SECRETS, MAX_VARIABLES, TOO_MANY_SECRETS, TOO_MANY_VARIABLES};
use box_contract::{ComponentName, Scope};
use safe_text::secrets::{Leak, PASSED, leaks, looks_secret};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::component::env::{Variable, variables};
use crate::parse::run::secret::Secret;
use crate::schema::{self, Declaration};
use crate::syntax::tree::{Data, Node, Value};
use crate::{form, rules};
use diagnostics::{Diagnostic, Sink, Span, Syntax};
use safe_text::quote;

/// Declarations with a program or its arguments.
const COMMANDS: [&str; 3] = [schema::ENTRYPOINT.name, schema::ARGS.name, schema::HEALTH.name];

/// The `component` of the `secret` declaration that a help proposes; `None` for the default.
type Needs = Option<&'static str>;

/// Reports every secret that the components and the task have as a plain value, and every variable of a component that
/// is also declared as one of its secrets.
pub(super) fn check(
    components: [Option<&Node>; 2],
    task: Option<&Node>,
    declared: &[Secret],
    sink: &Sink,
) {
    check_counts(components, declared, sink);
    let [agent, business] = components.map(leaking_names);
    for component in components.into_iter().flatten() {
        let needs = (component.name.value == schema::BUSINESS.name).then_some("business");
        check_declared(component, declared, sink);
        for variable in of(component, &schema::ENV).filter(is_leak) {
            let both = agent.contains(variable.name) && business.contains(variable.name);
            let needs = if both { Some("both") } else { needs };
            sink.report(plain_variable(variable, component.syntax, needs));
        }
        let is_command = |it: &&Node| COMMANDS.contains(&&*it.name.value);
        for command in component.children().iter().filter(is_command) {
            check_words(&command.name.value, &command.args, needs, sink);
        }
    }
    for prop in task.into_iter().flat_map(|task| &task.props) {
        check_words(&prop.name.value, std::slice::from_ref(&prop.value), None, sink);
    }
    let is_verification = |it: &&Node| it.name.value == schema::VERIFY.name;
    let inner = task.into_iter().flat_map(|task| task.children());
    for command in inner.filter(is_verification) {
        check_words(&command.name.value, &command.args, None, sink);
    }
}

/// Reports every secret that an MCP server or a hook has as a plain value.
pub(super) fn check_programs(servers: &[&Node], hooks: &[&Node], sink: &Sink) {
    for server in servers {
        for variable in of(server, &schema::MCP_ENV).filter(is_leak) {
            sink.report(plain_value(variable, server.syntax));
        }
        let names = [schema::MCP_COMMAND.name, schema::MCP_URL.name];
        let is_command = |it: &&Node| names.contains(&&*it.name.value);
        for command in server.children().iter().filter(is_command) {
            check_words(&command.name.value, &command.args, None, sink);
        }
    }
    for hook in hooks {
        check_words(&hook.name.value, hook.args.get(1..).unwrap_or_default(), None, sink);
    }
}

/// Returns the error of a variable of an MCP server that looks like a secret.
fn plain_value(variable: Variable<'_>, syntax: Syntax) -> Diagnostic {
    let Variable { name, span, value, .. } = variable;
    let span = value.map_or(span, |it| it.span);
    let error = DECLARATION_ERRORS.about("plain-secret", &rules::plain_secret(name), span);
    error.hiding(span).with_help(format!(
        "declare it by name alone at the top level, {}, and name it in the block: `{}` ({PASSED})",
        declaration(syntax, name, None),
        form::declaration(syntax, schema::MCP_SECRET.name, &format!("\"{name}\"")),
    ))
}

/// Reports the first variable beyond the limit of variables that may be given at launch, and the first secret beyond
/// the limit of secrets.
fn check_counts(components: [Option<&Node>; 2], declared: &[Secret], sink: &Sink) {
    let variables = |it| of(it, &schema::ENV).chain(of(it, &schema::PLAIN_ENV));
    let given = components.into_iter().flatten().flat_map(variables).filter(|it| it.by_argument);
    let variable = given.map(|it| it.span).nth(MAX_VARIABLES);
    let secret = declared.iter().filter_map(|it| Some(it.name.as_ref()?.span)).nth(MAX_SECRETS);
    for (place, message) in [(variable, TOO_MANY_VARIABLES), (secret, TOO_MANY_SECRETS)] {
        let error = place.map(|place| DECLARATION_ERRORS.about("too-many", message, place));
        error.into_iter().for_each(|error| sink.report(error));
    }
}

/// Lists the variables of all `declaration`s of a component: `env` or `plain-env`.
fn of<'n>(component: &'n Node, declaration: &Declaration) -> impl Iterator<Item = Variable<'n>> {
    let named = |it: &&Node| it.name.value == declaration.name;
    component.children().iter().filter(named).flat_map(variables)
}

/// Returns whether a variable of `env` looks like a secret. For a variable that may be given at launch, a name such as
/// `API_KEY` decides, whatever its default.
fn is_leak(variable: &Variable<'_>) -> bool {
    let value = match variable.value.map(|it| &it.data) {
        Some(Data::Text(value)) => Some(value.as_str()),
        Some(_) => return false,
        None => None,
    };
    let given = variable.by_argument.then_some("given");
    let mut values = value.into_iter().chain(given);
    rules::is_variable(variable.name) && values.any(|it| looks_secret(variable.name, it))
}

fn leaking_names(component: Option<&Node>) -> HashSet<&str> {
    let all = component.into_iter().flat_map(|it| of(it, &schema::ENV));
    all.filter(is_leak).map(|it| it.name).collect()
}

fn plain_variable(variable: Variable<'_>, syntax: Syntax, needs: Needs) -> Diagnostic {
    let Variable { name, span, value, by_argument } = variable;
    let plain = match syntax {
        Syntax::Kdl if by_argument && value.is_some() => {
            format!("write `plain-env {name} \"…\" launch=#true`")
        }
        Syntax::Kdl if by_argument => format!("write `plain-env {name}`"),
        Syntax::Kdl => format!("write `plain-env {name}=…`"),
        Syntax::Toml => "put it under `plain-env` instead of `env`".to_owned(),
    };
    let declaration = declaration(syntax, name, needs);
    let error = match value {
        Some(value) => DECLARATION_ERRORS
            .about("plain-secret", &rules::plain_secret(name), value.span)
            .hiding(value.span),
        None => DECLARATION_ERRORS.about("secret-at-launch", &quote(name), span),
    };
    error.with_help(format!(
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

/// Reports the first secret in each word of a command or text.
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
    DECLARATION_ERRORS.about("plain-secret", &message, word.span).hiding(word.span).with_help(format!(
        "declare it by name alone, outside of the component: {declaration}; the program then has \
         it as the environment variable `{variable}` ({PASSED})"
    ))
}

/// Reports every variable of a component that is also declared as one of its secrets.
fn check_declared(component: &Node, secrets: &[Secret], sink: &Sink) {
    let named = ComponentName::of(&component.name.value);
    let gets = |scope: Scope| named.is_some_and(|it| scope.includes(it));
    let names = secrets.iter().filter(|it| gets(it.scope)).filter_map(|it| it.name.as_ref());
    let places: HashMap<&str, Span> = names.map(|name| (&*name.value, name.span)).collect();
    for variable in of(component, &schema::ENV).chain(of(component, &schema::PLAIN_ENV)) {
        if let Some(place) = places.get(variable.name) {
            sink.report(both(variable, *place));
        }
    }
}

fn both(variable: Variable<'_>, secret: Span) -> Diagnostic {
    let error = DECLARATION_ERRORS.about("secret-and-plain", &quote(variable.name), variable.span);
    let error = variable.value.into_iter().fold(error, |error, value| error.hiding(value.span));
    error.with_label(secret, "declared as a secret")
}
