//! `env NAME="value" …`, once or several times.

use std::collections::BTreeMap;

use crate::diagnostic::quote;
use crate::parse::reader::{Reader, twice};
use crate::sink::Sink;
use crate::syntax::{Node, Prop};
use crate::{Diagnostic, value};

/// Reads the variables of all `env` declarations of a component.
pub(super) fn read(nodes: &[&Node], sink: &Sink) -> BTreeMap<String, String> {
    let mut found: BTreeMap<&str, &Prop> = BTreeMap::new();
    let mut env = BTreeMap::new();
    for node in nodes {
        let mut reader = Reader::new(node, "`env NAME=\"value\"`", sink);
        if reader.props().is_empty() && node.args.is_empty() {
            reader.report_missing("a variable");
        }
        for prop in reader.props() {
            if let Some(first) = found.insert(&prop.name.value, prop) {
                sink.report(twice(first, prop));
            }
            env.extend(variable(prop, sink));
        }
        reader.finish();
    }
    env
}

fn variable(prop: &Prop, sink: &Sink) -> Option<(String, String)> {
    let name = &prop.name.value;
    if !crate::rules::is_variable(name) {
        let message = format!("{} cannot name an environment variable", quote(name));
        let error = Diagnostic::new(message, prop.name.span, "not a variable's name");
        sink.report(error.with_help(
            "a variable's name has letters, digits and `_`, and does not begin with a digit",
        ));
    }
    let value = sink.check(value::text(&prop.value, name))?;
    Some((name.clone(), value.to_owned()))
}
