//! `env NAME="value" …` and `plain-env …`, once or several times.

use std::collections::BTreeMap;

use crate::parse::children::Children;
use crate::parse::reader::{Reader, twice};
use crate::schema;
use crate::sink::Sink;
use crate::syntax::tree::Prop;
use crate::{rules, value};

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
                env.extend(variable(prop, sink));
            }
            reader.finish();
        }
    }
    env
}

fn variable(prop: &Prop, sink: &Sink) -> Option<(String, String)> {
    let name = &prop.name.value;
    sink.check(rules::check_variable(name, prop.name.span))?;
    let value = sink.check(value::text(&prop.value, name))?;
    Some((name.clone(), value.to_owned()))
}
