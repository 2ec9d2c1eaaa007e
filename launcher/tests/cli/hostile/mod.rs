//! Boxes of attackers. Each command that opens a box must end within limits of time and memory, must change no file outside of
//! the user's state, and must print nothing that controls a terminal.
//!
//! Each of these changes to the programs makes a test fail: `host_fs::read` without `O_NONBLOCK` waits for a pipe until the time
//! limit; a `safe_text::visible` that passes everything lets a box control the terminal; without size limits for init and kernel,
//! their verification does not end; a file that `inspect` writes next to the box is a change outside of the state.

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
/// The maximum resident memory of a command, in KiB.
const MEMORY: i64 = 128 << 10;

/// Runs every command on a box with each attack. The box must not change.
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

/// Returns the path, size and modification time of each file of a box. Links are not followed, because a link may lead to the
/// root directory of the host.
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

/// Creates a box for each string and each key of the index, the manifest and the config with its plan. There, that string or key
/// is a text that would control a terminal.
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

/// Returns a box with a forged document. If a forged config can still be parsed, the box is built from it, so that the rootfs has
/// the config's epoch.
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

/// Counts the strings and keys of a document.
fn places(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::Array(values) => values.iter().map(places).sum(),
        Value::Object(fields) => fields.values().map(|value| 1 + places(value)).sum(),
        _ => 0,
    }
}

/// Replaces one string or key by `text`. `left` is the number of strings and keys before it.
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
