//! The guest's kernel lists exactly the tree that the builder computed.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use box_cache::Store;
use box_contract::Platform;
use box_digest::{Blake3Digest, hex};
use box_tree::{Inode, InodeId, Kind, Leaf, Tree, entries};
use boxbuild::{InputFile, Pins, Request, resolve};
use download::fetch::FetchOptions;
use serde_json::{Value, json};
use testbed::VirtualHost;
use testkit::images::{Compression, Config, Image, Layer};

use super::RAN;
use crate::scenario::{Scenario, Step, UNHURRIED, bake, tools};

const BOXFILE: &str = r#"box "listing"
agent {
    image "oci:agent"
    limits memory="64MiB"
}
business {
    image "oci:business"
    limits memory="64MiB"
}
skill "greet" path="greet"
vm memory="256MiB"
"#;

/// Returns an image with every type of entry, whiteouts, extended attributes, and names and sizes at their limits.
fn specimen() -> Image {
    let lower = Layer::new()
        .mtime(1_600_000_000)
        .dir("/usr/lib", 0o755)
        .symlink("/lib", "usr/lib")
        .file("/usr/lib/shared", 0o644, vec![0xa5; 20_000])
        .file("/gone", 0o644, "gone")
        .dir("/opaque", 0o755)
        .file("/opaque/gone", 0o644, "gone")
        .file("/bin/setuid", 0o4755, "setuid")
        .hardlink("/bin/alias", "/bin/setuid")
        .xattr("security.capability", b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec());
    let upper = Layer::new()
        .mtime(1_700_000_001)
        .whiteout("/gone")
        .opaque("/opaque")
        .owner(70_000, 100_000)
        .file("/opaque/new", 0o600, "new")
        .file("/empty", 0o400, "")
        .file("/block", 0o444, vec![1; 4096])
        .file("/block-and-one", 0o444, vec![2; 4097])
        .dir("/sticky", 0o1777)
        .device("/null", 0o666, 1, 3)
        .fifo("/pipe", 0o622)
        .file("/lib/through-the-link", 0o644, "in /usr/lib")
        .file("/name with \u{e9} and \\ and\ttab", 0o644, "odd")
        .file(&format!("/{}", "n".repeat(255)), 0o644, "long")
        .symlink("/target", &"t/".repeat(500));
    let entrypoint = vec!["/bin/setuid".to_owned()];
    let config = Config { entrypoint, ..Config::default() };
    Image::new(config).with(lower.to_tar()).with(upper.to_tar())
}

fn many() -> Image {
    let mut layer = Layer::new().dir("/many", 0o755);
    for number in 0..500 {
        layer = layer.file(&format!("/many/{number}"), 0o644, format!("{number}"));
    }
    Image::new(Config::default()).with(layer.to_tar())
}

fn checkout(directory: &Path) {
    fs::write(directory.join("Boxfile"), BOXFILE).unwrap();
    fs::create_dir(directory.join("greet")).unwrap();
    fs::write(
        directory.join("greet/SKILL.md"),
        "---\nname: greet\ndescription: Greets.\n---\n# Greet\n",
    )
    .unwrap();
    specimen().write_layout(&directory.join("agent"), "latest", Compression::Gzip).unwrap();
    many().write_layout(&directory.join("business"), "latest", Compression::None).unwrap();
}

/// Returns the tree that the builder computed, as the lines that list-init must send.
fn computed(directory: &Path) -> Vec<Value> {
    let tools = tools();
    let boxfile = boxfile_spec::parse(BOXFILE).unwrap();
    let request = Request {
        boxfile: &boxfile,
        base: directory,
        checkout: directory.into(),
        platform: Platform::LinuxAmd64,
        pins: Pins::default(),
        fetch: FetchOptions { offline: true, ..FetchOptions::default() },
        remote: None,
        init: InputFile::found(&tools.programs.list_init),
        kernel: InputFile::found(&tools.kernel),
        builder: Blake3Digest::from_bytes([0; 32]),
    };
    let store = Store::open(&directory.join("another-store")).unwrap();
    let tree = resolve(&request, &store).unwrap().root_tree().unwrap();
    let mut lines: Vec<_> = entries(&tree).collect();
    lines.sort();
    let mut names: HashMap<InodeId, Vec<&[u8]>> = HashMap::new();
    lines.iter().for_each(|(path, id)| names.entry(*id).or_default().push(path));
    lines.iter().map(|(path, id)| line(&tree, path, *id, &names[id])).collect()
}

fn line(tree: &Tree, path: &[u8], id: InodeId, names: &[&[u8]]) -> Value {
    let Inode { meta, kind, .. } = tree.inode(id);
    let mut line = json!({
        "path": escaped(path), "mode": meta.mode, "uid": meta.uid, "gid": meta.gid,
        "mtime": meta.mtime, "mtime_nsec": meta.mtime_nsec, "nlink": names.len(),
    });
    if names.len() > 1 {
        line["first_name"] = json!(escaped(names[0]));
    }
    let xattrs = meta.xattrs.iter().map(|(name, value)| (escaped(name), json!(hex(value))));
    line["xattrs"] = Value::Object(xattrs.collect());
    match kind {
        Kind::Directory(children) => {
            let inner = children.values().filter(|id| tree.inode(**id).names().is_some());
            line["nlink"] = json!(2 + inner.count());
            line["type"] = json!("dir");
        }
        Kind::Leaf(Leaf::File(content)) => {
            line["type"] = json!("file");
            line["size"] = json!(content.size);
            line["blake3"] = json!(content.hash.hex());
        }
        Kind::Leaf(Leaf::Symlink(target)) => {
            line["type"] = json!("symlink");
            line["target"] = json!(escaped(target));
        }
        Kind::Leaf(Leaf::CharDevice(major, minor)) => {
            line["type"] = json!("char");
            line["rdev"] = json!([major, minor]);
        }
        Kind::Leaf(Leaf::BlockDevice(major, minor)) => {
            line["type"] = json!("block");
            line["rdev"] = json!([major, minor]);
        }
        Kind::Leaf(Leaf::Fifo) => line["type"] = json!("fifo"),
    }
    line
}

/// Returns the lines that list-init has sent, without the inode numbers, and the inode number of each line.
pub(crate) fn listed(step: &Step) -> (Vec<Value>, Vec<u64>) {
    assert_eq!(step.status, 0, "{}", step.stderr);
    let line = |line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let number = line.as_object_mut().unwrap().remove("ino").unwrap();
        (line, number.as_u64().unwrap())
    };
    step.stdout.lines().map(line).unzip()
}

/// Returns `bytes` as text, escaped as list-init does it: control characters, `\` and invalid UTF-8 become `\xNN`.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || character == '\\' {
                text.push_str(&format!("\\x{:02x}", u32::from(character)));
            } else {
                text.push(character);
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

pub(super) fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    checkout(dir);
    let bundle = dir.join("listing.box");
    bake(&dir.join("Boxfile"), &tools().programs.list_init, &bundle);
    let run = format!("boxlaunch run --startup-timeout {UNHURRIED} --budget off /listing");
    (scenario.step_within(UNHURRIED, "list", &run), host.file(bundle, "/listing"))
}

fn the_guest_lists_the_tree_that_the_builder_computed() {
    let (listed, _) = listed(&RAN.0["list"]);
    let dir = tempfile::tempdir().unwrap();
    checkout(dir.path());
    let computed = computed(dir.path());
    for (listed, computed) in listed.iter().zip(&computed) {
        assert_eq!(listed, computed);
    }
    assert_eq!(listed.len(), computed.len());
    assert!(listed.len() > 500, "{} entries", listed.len());
}

tests![the_guest_lists_the_tree_that_the_builder_computed];
