//! Boxes that attackers wrote, and every command that takes a box: each ends in bounded time and memory, changes no file
//! but the user's own state, and shows a terminal nothing that it would obey.
//!
//! Shown to fail: with `O_NONBLOCK` taken out of `host_fs::read`, a pipe takes too long; where
//! `safe_text::visible` lets everything through, a terminal is taken over; with the limits of init and kernel taken out, verifying them does not
//! end; and a file that `inspect` writes next to the box is found.

mod attacks;
mod changes;
mod plans;
mod watched;

use std::fs;
use std::path::Path;

use box_contract::BoxConfig;
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use testkit::damage;
use testkit::test_box::config;

use crate::Scene;
use attacks::{Attack, DOCUMENTS, FILES, PARENTS, SIZES};

const COMMANDS: [&[&str]; 4] = [&["inspect"], &["verify"], &["run"], &["inspect", "--json"]];
/// The most memory that a command may have, in KiB.
const MEMORY: i64 = 128 << 10;

/// Lets every command at a box with each attack.
fn attack(attacks: &[Attack]) {
    for (name, apply) in attacks {
        let scene = Scene::new(&config());
        scene.trust_kvm();
        apply(&scene.made);
        let before = files(scene.made.path());
        look_at(&scene, name);
        assert_eq!(files(scene.made.path()), before, "{name}: the box was changed");
    }
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    assert!(peak < MEMORY, "{peak} KiB");
}

fn look_at(scene: &Scene, name: &str) {
    for args in COMMANDS {
        let outcome = watched::run(scene, name, args);
        outcome.check();
        assert!(args != ["run"] || outcome.ended.code != Some(0), "{name} runs");
    }
}

/// Returns each file of a box with its size, and when it was changed. Nothing is followed: the box may be a link to the
/// whole host.
fn files(path: &Path) -> Vec<String> {
    let Ok(data) = fs::symlink_metadata(path) else { return Vec::new() };
    let mut found = vec![format!("{path:?} {} {:?}", data.len(), data.modified().unwrap())];
    if data.is_dir() {
        let entries = fs::read_dir(path).unwrap();
        found.extend(entries.flat_map(|entry| files(&entry.unwrap().path())));
    }
    found.sort();
    found
}

#[test]
fn there_are_many_attacks() {
    let tables = [FILES, PARENTS, SIZES, DOCUMENTS];
    let count: usize = tables.iter().map(|table| table.len()).sum();
    assert!(count + damage::ALL.len() + damage::FORGED.len() >= 100, "{count}");
    assert!(count >= 60, "{count}");
}

#[test]
fn no_file_is_waited_for_or_followed() {
    attack(FILES);
}

#[test]
fn no_directory_on_the_way_leads_out() {
    attack(PARENTS);
}

#[test]
fn no_size_is_believed() {
    attack(SIZES);
}

#[test]
fn no_document_is_too_much() {
    attack(DOCUMENTS);
}

#[test]
fn damaged_boxes_change_nothing() {
    let attacks: Vec<Attack> = damage::ALL.iter().map(|it| (it.name, it.apply)).collect();
    attack(&attacks);
}

/// Each string and each key of index, manifest, config and plan is a text that takes over a terminal, in a box of its own.
#[test]
fn no_string_of_any_document_reaches_a_terminal_as_it_is() {
    let text = damage::hostile_text();
    let mut boxes = 0;
    for document in ["index", "manifest", "config"] {
        let original = read(&Scene::new(&config()), document);
        for place in 0..places(&original) {
            let mut forged = original.clone();
            forge(&mut forged, &mut { place }, &text);
            let scene = with(document, &forged);
            scene.trust_kvm();
            look_at(&scene, &format!("{document}, place {place}"));
            boxes += 1;
        }
    }
    assert!(boxes > 100, "{boxes}");
}

fn read(scene: &Scene, document: &str) -> Value {
    let path = match document {
        "index" => scene.made.path().join("index.json"),
        "manifest" => scene.made.manifest_path(),
        _ => scene.made.blob_path(&scene.made.manifest().config.digest),
    };
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Returns a box with a forged document. The rootfs of a forged config that is one has the config's epoch.
fn with(document: &str, forged: &Value) -> Scene {
    if let ("config", Ok(config)) = (document, serde_json::from_value::<BoxConfig>(forged.clone()))
    {
        return Scene::new(&config);
    }
    let scene = Scene::new(&config());
    let edit = |value: &mut Value| *value = forged.clone();
    match document {
        "index" => scene.made.edit_index(edit),
        "manifest" => scene.made.edit_manifest(edit),
        _ => scene.made.edit_config(edit),
    }
    scene
}

/// Returns how many strings and keys a document has.
fn places(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::Array(values) => values.iter().map(places).sum(),
        Value::Object(fields) => fields.values().map(|value| 1 + places(value)).sum(),
        _ => 0,
    }
}

/// Replaces the string or key at a place; `left` counts down to it.
fn forge(value: &mut Value, left: &mut usize, text: &str) {
    let mut is_here = || std::mem::replace(left, left.wrapping_sub(1)) == 0;
    match value {
        Value::String(string) if is_here() => text.clone_into(string),
        Value::Array(values) => values.iter_mut().for_each(|it| forge(it, left, text)),
        Value::Object(fields) => {
            for (key, mut value) in std::mem::take(fields) {
                let is_here = std::mem::replace(left, left.wrapping_sub(1)) == 0;
                forge(&mut value, left, text);
                fields.insert(if is_here { text.to_owned() } else { key }, value);
            }
        }
        _ => {}
    }
}
