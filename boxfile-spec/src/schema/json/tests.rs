use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::validator::Validator;
use super::*;
use crate::schema::documented::{self, as_toml, from_toml};
use diagnostics::Syntax;

fn validator() -> Validator {
    Validator::new(&json_schema())
}

/// Reads a TOML document that has the required declarations and `rest`.
fn document(rest: &str) -> Value {
    from_toml(&format!("box = \"b\"\n{rest}\n[agent]\nimage = \"oci:i\"\n"))
}

#[test]
fn the_checked_in_schema_is_what_the_language_says() {
    let checked_in = include_str!("../../../../docs/boxfile.schema.json");
    assert!(
        checked_in == json_schema(),
        "docs/boxfile.schema.json is not what the schema says: run `cargo xtask docs`"
    );
}

/// Calls `visit` with `schema` and every schema inside it.
fn walk(schema: &Value, visit: &mut impl FnMut(&Map<String, Value>)) {
    let Value::Object(schema) = schema else { return };
    visit(schema);
    for keyword in ["items", "propertyNames", "additionalProperties", "if", "else"] {
        schema.get(keyword).into_iter().for_each(|it| walk(it, visit));
    }
    for keyword in ["anyOf", "prefixItems"] {
        let list = schema.get(keyword).and_then(Value::as_array);
        list.into_iter().flatten().for_each(|it| walk(it, visit));
    }
    for keyword in ["properties", "$defs"] {
        let named = schema.get(keyword).and_then(Value::as_object);
        named.into_iter().flat_map(Map::values).for_each(|it| walk(it, visit));
    }
}

#[test]
fn every_reference_resolves_and_every_definition_is_used_and_described() {
    let root: Value = serde_json::from_str(&json_schema()).unwrap();
    assert_eq!(root["$schema"], DIALECT);
    let mut used = BTreeSet::new();
    walk(&root, &mut |schema| {
        let reference = schema.get("$ref").and_then(Value::as_str);
        used.extend(reference.map(|it| it.strip_prefix("#/$defs/").unwrap().to_owned()));
    });
    let definitions = root["$defs"].as_object().unwrap();
    assert_eq!(used, definitions.keys().cloned().collect());
    assert!(
        definitions.values().all(|it| it["description"].as_str().is_some_and(|it| !it.is_empty()))
    );
    // A name that is used twice would be lost in the map.
    assert_eq!(definitions.len(), super::definitions().len());
}

#[test]
fn no_table_takes_unknown_keys() {
    let root: Value = serde_json::from_str(&json_schema()).unwrap();
    walk(&root, &mut |schema| {
        if schema.get("type").is_some_and(|it| it == "object") && schema.get("properties").is_some()
        {
            assert_eq!(schema["additionalProperties"], false, "{schema:?}");
        }
    });
}

#[test]
fn every_example_conforms() {
    let validator = validator();
    for place in place::all() {
        let example = from_toml(place.declaration.example(Syntax::Toml));
        let value = &example[place.declaration.name];
        assert!(validator.accepts_as(&place.id(), value), "{}: {value}", place.id());
        if place.blocks.is_empty() {
            let mut whole = document("");
            whole[place.declaration.name] = value.clone();
            assert!(validator.accepts(&whole), "{whole}");
        }
    }
}

#[test]
fn the_example_of_every_declaration_conforms() {
    for boxfile in documented::variants() {
        let value = as_toml(&documented::nodes(&boxfile), TOP);
        assert!(validator().accepts(&value), "{value:#}");
    }
}

#[test]
fn every_form_of_a_declaration_is_understood() {
    let validator = validator();
    for form in [
        "platform = 'linux/amd64'",
        "platform = ['linux/amd64', 'linux/arm64']",
        "network = 'none'",
        "network = { mode = 'filtered', allow = '*.example.com', deny = ['10.0.0.0/8'] }",
        "network = { mode = 'filtered', allow = ['a.example', { peer = 'b.example', port = 22 }] }",
        "network = { mode = 'filtered', allow = { peer = 'a.example', peers = ['b.example'] } }",
        "network = { mode = 'filtered', allow = 'a.example', limits = { rate = '1MiB' } }",
        "kernel = 'vmlinux'",
        "kernel = { path = 'vmlinux' }",
        "kernel = { sha256 = '0000000000000000000000000000000000000000000000000000000000000000' }",
        "business = { image = { reference = 'oci:i' }, autostart = true }",
        "profile.ci.agent = { health = ['exec', '/bin/check', '-q'], args = [] }",
        "profile.ci.agent = { health = { kind = 'exec', command = ['/bin/check'] } }",
        "profile.ci.skill.greet.mode = 'mount'",
        "profile.ci.sandbox.ask = 'rm *'",
        "share.work = { guest = '/a/..b/.c' }",
        "conflict.'/etc/motd'.policy = 'drop'",
    ] {
        assert!(validator.accepts(&document(form)), "{form}");
    }
}

#[test]
fn other_documents_are_refused() {
    let validator = validator();
    assert!(validator.accepts(&document("")));
    for wrong in [
        "boxx = 'b'",
        "business = { image = 'oci:i', port = 80 }",
        "vm = 2",
        "vm = { cpus = '2' }",
        "vm = { cpus = 0 }",
        "vm = { cpus = 17 }",
        "vm = { memory = 512 }",
        "vm = { memory = '512' }",
        "vm = { memory = '1.5GiB' }",
        "vm = { speed = 1 }",
        "layout = 'both'",
        "layout = true",
        "platform = ['linux/riscv64']",
        "platform = []",
        "skill = 'greet'",
        "skill.greet = {}",
        "skill.Greet.path = 'x'",
        "skills = {}",
        "task = 'id'",
        "network = {}",
        "network = { mode = 'shared', peers = [] }",
        "network = { mode = 'filtered', allow = [] }",
        "network = { mode = 'filtered', allow = [{ port = 22 }] }",
        "network = { mode = 'filtered', allow = [{ peer = 'a.example', port = 0 }] }",
        "network = { mode = 'filtered', allow = [['a.example']] }",
        "network = { mode = 'filtered', limits = { connections = 513 } }",
        "network = { mode = 'filtered', limits = [{ connections = 1 }] }",
        "share.work.guest = 'relative'",
        "share.work.guest = '/a/../b'",
        "share.work.guest = '/a/'",
        "cap.teleport = {}",
        "budget = { total = '5d' }",
        "kernel = { sha256 = 'A' }",
        "profile.ci.box = 'b'",
        "profile.ci.vm.cpus = 99",
    ] {
        assert!(!validator.accepts(&document(wrong)), "{wrong}");
    }
    assert!(!validator.accepts(&json!({ "box": "b" })));
    assert!(!validator.accepts(&json!([])));
}

#[test]
fn a_file_that_extends_a_base_may_be_partial() {
    let validator = validator();
    let over = from_toml("extends = '../base.toml'\nskill.greet.mode = 'mount'");
    assert!(validator.accepts(&over));
    assert!(!validator.accepts(&from_toml("extends = '../base.toml'\nvm.cpus = 0")));
}

#[test]
fn no_key_of_a_table_is_said_twice() {
    for place in place::all() {
        let declaration = place.declaration;
        let args = declaration.first.iter().chain(&declaration.rest).map(|it| it.name);
        let props = declaration.props.iter().map(|it| it.name);
        let children = declaration.children.iter().map(|it| it.name);
        let keys: Vec<&str> = args.chain(props).chain(children).collect();
        let distinct: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(keys.len(), distinct.len(), "{}", place.id());
    }
}
