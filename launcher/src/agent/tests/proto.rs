//! Tests that the client's messages match the proto file.

use std::collections::BTreeSet;

const PROTO: &str = include_str!("../../../proto/code_agent.proto");
const MESSAGES: &str = include_str!("../messages.rs");

/// A field, or a value of an enum: the type that it belongs to, its own type, its name and its number.
type Field = [String; 4];

/// Updates the stack of open types for a line of the proto file.
fn open(line: &str, types: &mut Vec<String>) {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        ["message" | "enum" | "service", name, ..] => types.push(name.to_owned()),
        ["}"] => drop(types.pop()),
        _ => {}
    }
}

/// Parses the fields of the proto file, with their types as in the attributes of prost.
fn of_proto() -> BTreeSet<Field> {
    let (mut types, mut fields) = (Vec::new(), BTreeSet::new());
    for line in PROTO.lines().map(str::trim).filter(|it| !it.starts_with("//")) {
        open(line, &mut types);
        let Some((left, number)) = line.strip_suffix(';').and_then(|it| it.split_once(" = "))
        else {
            continue;
        };
        let Some(owner) = types.last() else { continue };
        let (kind, name) = left.rsplit_once(' ').unwrap_or(("", left));
        fields.insert([owner, kind, name, number].map(str::to_owned));
    }
    fields
}

/// Returns the proto type for an attribute of prost and the type of its field.
fn kind(attribute: &str, field: &str) -> String {
    let inner = field.trim_end_matches(['>', ',']).rsplit('<').next().unwrap();
    let (first, label) = attribute.split_once(", ").unwrap_or((attribute, ""));
    match (first, label.split(", ").next().unwrap()) {
        ("message", "repeated") => format!("repeated {inner}"),
        ("message", _) => inner.to_owned(),
        (kind, label @ ("repeated" | "optional")) => format!("{label} {kind}"),
        (kind, _) if kind.starts_with("btree_map") => "map<string, string>".to_owned(),
        (kind, _) => match kind.strip_prefix("enumeration = ") {
            Some(name) => name.trim_matches('"').to_owned(),
            None => kind.to_owned(),
        },
    }
}

/// Parses the fields of the client's messages.
fn of_client() -> Vec<Field> {
    let (mut owner, mut attribute, mut fields) = ("", None, Vec::new());
    for line in MESSAGES.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("pub struct ") {
            owner = rest.split(' ').next().unwrap();
        }
        let field = line.strip_prefix("pub ").and_then(|it| it.split_once(": "));
        if let Some(it) = line.strip_prefix("#[prost(").and_then(|it| it.strip_suffix("\")]")) {
            attribute = it.rsplit_once("tag = \"");
        } else if let (Some((left, tag)), Some((name, field))) = (attribute.take(), field) {
            let kind = kind(left.trim_end_matches(", "), field);
            fields.push([owner, &kind, name.trim_start_matches("r#"), tag].map(str::to_owned));
        }
    }
    fields
}

#[test]
fn every_field_of_the_client_is_in_the_proto() {
    let (proto, client) = (of_proto(), of_client());
    assert!(client.len() > 40, "{client:?}");
    for field in client {
        // For a field that is a message, `optional` changes nothing.
        let mut with_label = field.clone();
        with_label[1] = format!("optional {}", field[1]);
        assert!(proto.contains(&field) || proto.contains(&with_label), "{field:?}");
    }
}

#[test]
fn every_value_of_an_enum_has_the_number_of_the_proto() {
    let proto = of_proto();
    let (mut owner, mut count) = ("", 0);
    for line in MESSAGES.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("pub enum ") {
            owner = rest.trim_end_matches(" {");
        }
        let Some((name, number)) = line.trim_end_matches(',').split_once(" = ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let upper = |text: &str| {
            let word = |it: char| {
                if it.is_uppercase() { format!("_{it}") } else { it.to_uppercase().collect() }
            };
            text.chars().map(word).collect::<String>().trim_start_matches('_').to_owned()
        };
        let value = format!("{}_{}", upper(owner), upper(name));
        let value = [owner, "", &value, number].map(str::to_owned);
        assert!(proto.contains(&value), "{value:?}");
        count += 1;
    }
    assert_eq!(count, 39);
}

#[test]
fn the_methods_of_the_proto_are_those_that_are_called() {
    let source = [
        include_str!("../mod.rs"),
        include_str!("../generation.rs"),
        include_str!("../session.rs"),
    ]
    .concat();
    let is_method =
        |it: &&str| it.starts_with(char::is_uppercase) && it.chars().all(char::is_alphanumeric);
    let called: BTreeSet<_> = source.split('"').skip(1).step_by(2).filter(is_method).collect();
    let rpcs = PROTO.lines().filter_map(|it| it.trim().strip_prefix("rpc ")?.split('(').next());
    assert_eq!(called, rpcs.collect());
}

#[test]
fn the_service_is_that_of_the_proto() {
    let word =
        |of: &str| PROTO.lines().find_map(|it| it.strip_prefix(of)?.split([' ', ';']).next());
    let name = [word("package ").unwrap(), word("service ").unwrap()].join(".");
    assert_eq!(name, box_contract::plan::A3S_SERVICE);
}
