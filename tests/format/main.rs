//! Compares boxbuild with an independent reader of boxes that was written from docs/format.md.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output};

use box_contract::manifest::{INIT_TYPE, SEGMENT_TYPE};
use box_digest::Digest;
use serde_json::Value;
use testbed::prerequisites::{Package, packages};
use testkit::damage::{edit_layer, flip};
use testkit::images::{Config, Image, Layer};
use testkit::test_box::BoxFiles;

use crate::checkout::{BOXFILE, Checkout, WHOLE};
use crate::segments::noise;

/// The path of the independent reader.
const READER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/format/read_box.py");

fn read_box(argument: impl AsRef<Path>) -> Output {
    Command::new("python3").arg(READER).arg(argument.as_ref()).output().unwrap()
}

/// Makes a checkout with all features of a box: layers with and without a segment, a content that two layers share, a hidden
/// file, hard links, attributes, devices, a skill and files of the checkout.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let base = Layer::new()
        .mtime(1_700_000_000)
        .dir("/usr", 0o755)
        .file("/usr/large", 0o644, noise(1, 1_050_000))
        .file("/usr/hidden", 0o644, noise(2, 9000))
        .file("/usr/common", 0o644, noise(3, 2049))
        .symlink("/lib", "usr/lib");
    let program = Layer::new()
        .owner(1000, 70_000)
        .file("/agent", 0o4755, "# an agent")
        .hardlink("/alias", "/agent")
        .hardlink("/usr/alias", "/usr/large")
        .file("/notes", 0o600, "notes")
        .xattr("user.note", "kept")
        .xattr("security.capability", b"\x01\0\0\x02\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec())
        .file("/block", 0o644, vec![7; 4096])
        .file("/inline", 0o644, vec![8; 2048])
        .file("/empty", 0o644, "")
        .symlink("/long", &"t/".repeat(1500))
        .device("/null", 0o666, 1, 3)
        .device("/wide", 0o660, 259, 1_000_000)
        .fifo("/pipe", 0o622)
        .dir("/closed", 0o1700)
        .xattr("user.directory", vec![b'x'; 5000])
        .whiteout("/usr/hidden");
    let program = (0..400).fold(program, |it, at| it.file(&format!("/many/{at:060}"), 0o644, "x"));
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() });
    fs::remove_dir_all(checkout.path("images")).unwrap();
    checkout.image("agent", &agent.with(base.to_tar()).with(program.to_tar()));
    let small = Layer::new().file("/app", 0o755, "app").file("/usr/common", 0o644, noise(3, 2049));
    let large = Layer::new().file("/srv/data", 0o640, noise(4, 1_045_000)).file(
        "/srv/more",
        0o644,
        noise(5, 5000),
    );
    checkout.image(
        "business",
        &Image::new(Config::default()).with(small.to_tar()).with(large.to_tar()),
    );
    checkout.write("conf.txt", "a file of the checkout\n");
    checkout.write("big.txt", "a large file of the checkout\n".repeat(500));
    let files =
        "    file \"conf.txt\" to=\"/etc/conf.txt\"\n    file \"big.txt\" to=\"/srv/big.txt\"\n";
    let boxfile = BOXFILE.replace("business {\n", &format!("business {{\n{files}"));
    checkout.write("Boxfile", boxfile);
    checkout
}

/// The reader's JSON object for each path.
type Entries = BTreeMap<String, Value>;

/// Returns the reader's listing of a box.
fn listed(bundle: &Path) -> Entries {
    let output = read_box(bundle);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|it| (it["path"].as_str().unwrap().to_owned(), it)).collect()
}

#[test]
fn the_example_of_a_tree_digest_is_right() {
    let output = read_box("--vector");
    let digest = String::from_utf8(output.stdout).unwrap();
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/format.md")).unwrap();
    assert!(digest.len() > 64 && page.contains(digest.trim()), "{digest}");
}

#[test]
fn it_finds_what_boxbuild_finds() {
    let checkout = checkout();
    checkout.built(WHOLE);
    assert_eq!(crate::segments::segments(&checkout, "test.box").len(), 2);
    let found = listed(&checkout.path("test.box"));
    let report = checkout.run(&["ls", "test.box", "--json"]).json();
    let entries = report["entries"].as_array().unwrap();
    assert_eq!((entries.len(), found.len() > 450), (found.len(), true));
    for entry in entries {
        let ours = &found[entry["path"].as_str().unwrap()];
        let mode = u64::from_str_radix(entry["mode"].as_str().unwrap(), 8).unwrap();
        assert_eq!(ours["mode"], mode, "{entry}");
        assert_eq!((&ours["uid"], &ours["gid"]), (&entry["uid"], &entry["gid"]), "{entry}");
        assert_eq!(ours["type"], entry["type"], "{entry}");
        if ours["type"] == "file" {
            assert_eq!(ours["size"], entry["size"], "{entry}");
        }
    }
    assert_archive(&checkout, &found);
}

/// Compares the reader's digests with the contents in the archive of `boxbuild export`.
fn assert_archive(checkout: &Checkout, found: &Entries) {
    checkout.result(&["export", "test.box", "--format", "tar", "-o", "box.tar"]);
    let mut archive = tar::Archive::new(fs::File::open(checkout.path("box.tar")).unwrap());
    let mut files = 0;
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = absolute(&entry.path().unwrap());
        let kind = entry.header().entry_type();
        if kind.is_file() {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            let digest = found[&path]["sha256"].as_str().unwrap();
            assert_eq!(digest, Digest::of(&bytes).hex(), "{path}");
            files += 1;
        } else if kind.is_hard_link() {
            let first = absolute(&entry.link_name().unwrap().unwrap());
            assert_eq!(found[&path]["sha256"], found[&first]["sha256"], "{path}");
        }
    }
    assert!(files > 400, "{files} files");
}

/// Converts a path in the archive to the box's: `./usr/lib/` becomes `/usr/lib`.
fn absolute(path: &Path) -> String {
    let path = path.to_str().unwrap();
    format!("/{}", path.trim_start_matches("./").trim_end_matches('/'))
}

#[test]
fn the_parts_one_after_another_are_an_image() {
    packages(&[Package::Erofs], &mut |line| println!("{line}")).unwrap();
    let checkout = checkout();
    checkout.built(WHOLE);
    checkout.result(&["export", "test.box", "--format", "erofs", "-o", "image"]);
    let opened = box_inspect::opened::open(&checkout.path("test.box")).unwrap();
    let parts = opened.rootfs.parts().iter().map(|part| fs::read(&part.path).unwrap());
    let whole: Vec<u8> = parts.collect::<Vec<_>>().concat();
    assert!(fs::read(checkout.path("image")).unwrap() == whole);
    let directory = checkout.path("extracted");
    let extract = format!("--extract={}", directory.display());
    let output =
        Command::new("fsck.erofs").arg(extract).arg(checkout.path("image")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let large = fs::read(directory.join("roots/business/srv/data")).unwrap();
    assert!(large == noise(4, 1_045_000), "a file of the second segment");
}

/// A part of the reader's message, and a function that damages a box.
type Harm = (&'static str, fn(&BoxFiles));

const HARMS: [Harm; 5] = [
    ("has another digest", |it| flip(it, &it.blobs(SEGMENT_TYPE)[1])),
    ("the parts are not the first layers", |it| {
        it.edit_manifest(|manifest| manifest["layers"].as_array_mut().unwrap().swap(0, 1));
    }),
    // An attacker can exchange segments and compute the manifest's digest again. Then the files' digests differ.
    ("has another blake3", |it| {
        it.edit_manifest(|manifest| manifest["layers"].as_array_mut().unwrap().swap(1, 2));
    }),
    ("another tree digest", |it| {
        it.edit_config(|config| config["tree"] = format!("blake3:{}", "0".repeat(64)).into());
    }),
    ("has another size", |it| edit_layer(it, INIT_TYPE, |init| init["size"] = 7.into())),
];

/// Shows that the reader's checks can fail.
#[test]
fn it_refuses_another_rootfs() {
    let checkout = super::segments::checkout();
    for (says, harm) in HARMS {
        fs::remove_dir_all(checkout.path("test.box")).ok();
        checkout.built(WHOLE);
        harm(&BoxFiles::of(&checkout.path("test.box")));
        let output = read_box(checkout.path("test.box"));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && message.contains(says), "{says}: {message}");
    }
}
