//! Tests that the texts of the schema agree with the parser, and that `Boxfile.example` shows every declaration.

mod example;
mod texts;

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use super::{Count, Declaration, find};
use crate::syntax::allowance::Allowance;
use crate::syntax::tree::{Data, Node};
use crate::{Document, Reach, read_within, syntax};
use diagnostics::{Sink, Source};

pub(super) use example::variants;

/// Reads a Boxfile. Every base file that it extends is empty.
fn parsed(text: &str) -> Document {
    let reach = Reach { up: Some(1), ..Reach::default() };
    read_within(Source::new("Boxfile", text), None, &reach, |path| Ok(Source::new(path, "")))
}

/// Returns the diagnostics of a text, as a user sees them.
fn wrong(text: &str) -> String {
    let document = parsed(text);
    document.found.iter().map(|it| it.render(&document.sources)).collect()
}

/// Returns the declarations of a Boxfile in KDL.
pub(super) fn nodes(text: &str) -> Vec<Node> {
    let sink = Sink::default();
    let tree = syntax::read(&Source::new("Boxfile", text), &mut Allowance::default(), &sink);
    assert_eq!(sink.into_found(), [], "{text}");
    tree.nodes
}

/// Reads a text in TOML as a JSON value.
pub(super) fn from_toml(text: &str) -> Value {
    fn table(table: &DeTable<'_>) -> Value {
        table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), convert(value.get_ref())))
            .collect()
    }
    fn convert(value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => text.as_ref().into(),
            DeValue::Integer(number) => number.as_str().parse::<i64>().unwrap().into(),
            DeValue::Boolean(truth) => (*truth).into(),
            DeValue::Array(list) => list.iter().map(|item| convert(item.get_ref())).collect(),
            DeValue::Table(inner) => table(inner),
            other => panic!("no Boxfile has {other:?}"),
        }
    }
    table(DeTable::parse(text).expect(text).get_ref())
}

/// Writes declarations as TOML, by the rules of the reference and independently of the TOML reader.
pub(super) fn as_toml(nodes: &[Node], known: &[&'static Declaration]) -> Value {
    let mut table = Map::new();
    for node in nodes {
        let declaration = find(known, &node.name.value).unwrap();
        let entry = table.entry(node.name.value.clone());
        match declaration.count {
            Count::Keyed => {
                let Data::Text(key) = &node.args[0].data else { panic!("a key is a text") };
                let value = as_table(node, declaration, true);
                entry.or_insert(json!({}))[key] = value;
            }
            Count::Repeatable if declaration.is_listed() => {
                let Value::Array(all) = entry.or_insert(json!([])) else { panic!() };
                match as_value(node, declaration) {
                    Value::Array(mut plain) => all.append(&mut plain),
                    table => all.push(table),
                }
            }
            Count::Repeatable if !node.args.is_empty() => {
                let Data::Text(name) = &node.args[0].data else { panic!("a variable has a name") };
                let mut variable = json!({ "launch": true });
                node.args.iter().skip(1).for_each(|it| variable["default"] = data(&it.data));
                entry.or_insert(json!({}))[name] = variable;
            }
            Count::Repeatable => {
                let Value::Object(more) = as_table(node, declaration, false) else { panic!() };
                entry.or_insert(json!({})).as_object_mut().unwrap().extend(more);
            }
            Count::Required | Count::Optional => {
                entry.or_insert(as_value(node, declaration));
            }
        }
    }
    Value::Object(table)
}

fn as_value(node: &Node, declaration: &'static Declaration) -> Value {
    let plain = node.props.is_empty() && node.block.is_none();
    match node.args.as_slice() {
        [one] if plain && declaration.rest.is_none() => data(&one.data),
        args if plain && (declaration.rest.is_some() || !args.is_empty()) => {
            args.iter().map(|arg| data(&arg.data)).collect()
        }
        _ => as_table(node, declaration, false),
    }
}

fn as_table(node: &Node, declaration: &'static Declaration, keyed: bool) -> Value {
    let Value::Object(mut table) = as_toml(node.children(), declaration.children) else { panic!() };
    let mut args = node.args.iter().map(|arg| data(&arg.data));
    if let (Some(first), Some(value)) = (&declaration.first, args.next()) {
        table.extend((!keyed).then(|| (first.name.to_owned(), value)));
        let rest: Vec<Value> = args.collect();
        let rest = (!rest.is_empty()).then_some(rest);
        table
            .extend(rest.map(|it| (declaration.rest.as_ref().unwrap().name.to_owned(), it.into())));
    }
    let props = node.props.iter().map(|prop| (prop.name.value.clone(), data(&prop.value.data)));
    table.extend(props);
    Value::Object(table)
}

fn data(data: &Data) -> Value {
    match data {
        Data::Text(text) => text.as_str().into(),
        Data::Integer(number) => i64::try_from(*number).unwrap().into(),
        Data::Truth(truth) => (*truth).into(),
        other => panic!("no Boxfile has {other:?}"),
    }
}
