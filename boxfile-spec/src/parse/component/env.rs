//! `env NAME="value" …` and `env NAME ["default" launch=#true]`; the same for `plain-env`. Each may be repeated.

use std::collections::{BTreeMap, BTreeSet};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::schema::{self, Declaration, Kind};
use crate::syntax::tree::{Data, Node, Prop, Value};
use crate::{form, rules, value};
use diagnostics::{Diagnostic, Sink, Span, Syntax};
use safe_text::quote;

/// The property of a variable that may be given at launch.
pub(in crate::parse) const LAUNCH: &str = "launch";

/// A variable in a declaration.
#[derive(Clone, Copy)]
pub(in crate::parse) struct Variable<'n> {
    pub(in crate::parse) name: &'n str,
    pub(in crate::parse) span: Span,
    pub(in crate::parse) value: Option<&'n Value>,
    /// Whether the variable is written as an argument (`env NAME`), because it may be given at launch, and not as a
    /// property (`env NAME="value"`).
    pub(in crate::parse) by_argument: bool,
}

/// Lists the variables of a declaration: its properties, or, if it has arguments, the variable that the first one
/// names.
pub(in crate::parse) fn variables(node: &Node) -> Vec<Variable<'_>> {
    match node.args.first() {
        Some(Value { data: Data::Text(name), span, .. }) => {
            vec![Variable { name, span: *span, value: node.args.get(1), by_argument: true }]
        }
        Some(_) => Vec::new(),
        None => {
            let all = node.props.iter().map(|prop| Variable {
                name: &prop.name.value,
                span: prop.name.span,
                value: Some(&prop.value),
                by_argument: false,
            });
            all.collect()
        }
    }
}

/// Lists the variables of all `env` and `plain-env` declarations of a component.
pub(in crate::parse) fn variables_of(component: &Node) -> impl Iterator<Item = Variable<'_>> {
    let names = [schema::ENV.name, schema::PLAIN_ENV.name];
    let is_env = move |it: &&Node| names.contains(&it.name.value.as_str());
    component.children().iter().filter(is_env).flat_map(variables)
}

/// The variables of a component.
#[derive(Default)]
pub(super) struct Variables {
    /// The variables with a value.
    pub(super) env: BTreeMap<String, String>,
    /// The names of the variables that may be given at launch.
    pub(super) launch: BTreeSet<String>,
}

/// Reads the variables of all `env` and `plain-env` declarations of a component.
pub(super) fn read(children: &Children<'_>) -> Variables {
    let sink = children.sink();
    let mut found: BTreeMap<&str, Variable<'_>> = BTreeMap::new();
    let mut read = Variables::default();
    for declaration in [&schema::ENV, &schema::PLAIN_ENV] {
        for node in children.many(declaration) {
            let mut reader = Reader::new(node, declaration, sink);
            if reader.props().is_empty() && node.args.is_empty() && node.block.is_none() {
                reader.report_missing("a variable");
            }
            for variable in variables(node) {
                if let Some(first) = found.insert(variable.name, variable) {
                    let (one, other) = (first.span, variable.span);
                    let error = Diagnostic::twice(variable.name, one.min(other), one.max(other));
                    sink.report(error);
                }
            }
            if node.args.is_empty() {
                read.env.extend(node.props.iter().filter_map(|prop| assigned(prop, sink)));
            } else if let Some((name, default)) = at_launch(node, declaration, &mut reader) {
                read.env.extend(default.map(|default| (name.clone(), default)));
                read.launch.insert(name);
            }
            reader.finish();
        }
    }
    read
}

/// Reads a variable that is written as a property.
pub(in crate::parse) fn assigned(prop: &Prop, sink: &Sink) -> Option<(String, String)> {
    let name = &prop.name.value;
    sink.check(rules::check_variable(name, prop.name.span))?;
    let value = sink.check(value::text(&prop.value, name))?;
    Some((name.clone(), value.to_owned()))
}

/// Reads a variable that may be given at launch, and its default. If the arguments are no such variable, leaves them to
/// `reader`, which reports them.
fn at_launch(
    node: &Node,
    declaration: &Declaration,
    reader: &mut Reader<'_>,
) -> Option<(String, Option<String>)> {
    let launch = node.props.iter().find(|prop| prop.name.value == LAUNCH);
    let (first, rest) = node.args.split_first()?;
    let Data::Text(name) = &first.data else { return None };
    // In TOML, `env = "NAME"` is only a string. A variable is a table: `env = { NAME = { launch = true } }`.
    let is_table = launch.is_some() || !node.props.is_empty() || !rest.is_empty();
    let is_named = node.syntax == Syntax::Kdl || is_table;
    if !rules::is_variable(name) || !is_named {
        return None;
    }
    reader.args();
    let is_launch = launch.map(|prop| reader.read(Some(&prop.value), LAUNCH, Kind::Bool));
    for prop in node.props.iter().filter(|prop| prop.name.value != LAUNCH) {
        reader.report(beside(declaration.name, name, prop));
    }
    if let Some(further) = rest.get(1) {
        let error = DECLARATION_ERRORS.about("second-value", &quote(name), further.span);
        let help = format!("write each variable with an `{}` for itself", declaration.name);
        reader.report(error.with_help(help));
    }
    match (rest.first(), is_launch) {
        (None, None | Some(Some(true))) => Some((name.clone(), None)),
        (Some(default), Some(Some(true))) => {
            Some((name.clone(), Some(reader.read(Some(default), name, Kind::Text)?)))
        }
        (_, Some(None)) => None,
        (None, Some(Some(false))) => {
            let span = launch.map_or(first.span, |prop| prop.value.span);
            reader.report(valueless(name, span, node.syntax));
            None
        }
        (Some(fixed), None | Some(Some(false))) => {
            reader.report(unclear(declaration.name, name, fixed));
            None
        }
    }
}

/// Returns the error of the property `prop` in `env NAME prop="value"`.
fn beside(declaration: &str, name: &str, prop: &Prop) -> Diagnostic {
    let message = format!("{} stands beside the variable {}", quote(&prop.name.value), quote(name));
    let error = Diagnostic::new(message, prop.name.span, "no property of a variable");
    let help = match prop.value.syntax {
        Syntax::Kdl => format!("write it with an `{declaration}` for itself"),
        Syntax::Toml => "a variable has `launch` and `default`".to_owned(),
    };
    error.hiding(prop.value.span).with_help(help)
}

fn valueless(name: &str, span: Span, syntax: Syntax) -> Diagnostic {
    let fixed = form::prop(syntax, name, "\"value\"");
    let error = DECLARATION_ERRORS.about("no-value", &quote(name), span);
    error.with_help(format!("remove `{LAUNCH}`, or write `{fixed}`"))
}

/// Returns the error of `env NAME "value"` without `launch=#true`: it is unclear whether the value may be replaced at
/// launch.
fn unclear(declaration: &str, name: &str, value: &Value) -> Diagnostic {
    let syntax = value.syntax;
    let text = match &value.data {
        Data::Text(text) | Data::Float(text) => text.clone(),
        Data::Integer(number) => number.to_string(),
        Data::Truth(truth) => truth.to_string(),
        Data::Null | Data::Other(_) => String::new(),
    };
    let is_secret = safe_text::secrets::looks_secret(name, &text);
    let shown = diagnostics::in_quotes(syntax, if is_secret { "…" } else { &text });
    let fixed = form::with_props(syntax, declaration, &form::prop(syntax, name, &shown));
    let replaceable = match syntax {
        Syntax::Kdl => format!("{declaration} {name} {shown} launch=#true"),
        Syntax::Toml => {
            let table = format!("{{ launch = true, default = {shown} }}");
            form::with_props(syntax, declaration, &form::prop(syntax, name, &table))
        }
    };
    let error = DECLARATION_ERRORS.about("fixed-value", &quote(name), value.span);
    let error = if is_secret { error.hiding(value.span) } else { error };
    error.with_help(format!(
        "write `{fixed}` for a value of every start, or `{replaceable}` for one that `boxlaunch run -e` may replace"
    ))
}
