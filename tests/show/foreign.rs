//! Tests with boxes from strangers: boxbuild and boxlaunch refuse the same boxes with the same messages.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::program;
use testbed::{Artefacts, Profile, Workspace};
use testkit::damage;
use testkit::images::{Config, Image, Layer};
use testkit::test_box::BoxFiles;

use crate::checkout::{Checkout, Ran, WHOLE};
use crate::fixture::{built, checkout};

/// Copies `test.box`. The copy's blobs are hard links, so a test must replace a blob to damage it, not write to it.
fn copied(checkout: &Checkout, to: &str) -> BoxFiles {
    let (from, to) = (checkout.path("test.box"), checkout.path(to));
    fs::create_dir_all(to.join("blobs/sha256")).unwrap();
    for document in ["oci-layout", "index.json"] {
        fs::copy(from.join(document), to.join(document)).unwrap();
    }
    for blob in fs::read_dir(from.join("blobs/sha256")).unwrap() {
        let blob = blob.unwrap();
        fs::hard_link(blob.path(), to.join("blobs/sha256").join(blob.file_name())).unwrap();
    }
    BoxFiles::of(&to)
}

pub(crate) fn boxlaunch(checkout: &Checkout, args: &[&str]) -> Ran {
    let program = Artefacts::locate(&Workspace::find(), Profile::Dev).boxlaunch;
    let mut command = Command::new(program);
    command.args(args).current_dir(checkout.root()).env_clear();
    command.env("BOXBUILD_STORE", checkout.path("store"));
    Ran::of(command.env("BOXLAUNCH_STATE", checkout.path("state")))
}

#[test]
fn a_box_that_skopeo_copied_is_the_same_box() {
    packages(&[Package::Skopeo], &mut |line| println!("{line}")).unwrap();
    let checkout = built();
    let digest = |name: &str| checkout.run(&["inspect", name, "--json"]).json()["box"].clone();
    let built = digest("test.box");
    for (from, to) in [("test.box", "copy.box"), ("copy.box", "tagged.box:v1")] {
        let mut skopeo = Command::new("skopeo");
        let [from, to] = [from, to].map(|it| format!("oci:{}", checkout.path(it).display()));
        program::run(skopeo.args(["copy", "--quiet", &from, &to])).unwrap();
    }
    for name in ["copy.box", "tagged.box"] {
        assert_eq!(digest(name), built, "{name}");
        checkout.result(&["verify", name]);
        assert_eq!(boxlaunch(&checkout, &["verify", name]).code, 0, "{name}");
        assert!(checkout.run(&["diff", "test.box", name]).notes.contains("no difference"));
        checkout.built(&["--output", name]);
    }
    // skopeo adds a second box to the layout and keeps the first.
    checkout.edit("Boxfile", "vm cpus=1", "vm cpus=2");
    checkout.built(&["--output", "two.box"]);
    let [from, to] = ["two.box", "tagged.box"].map(|it| checkout.path(it).display().to_string());
    let mut skopeo = Command::new("skopeo");
    let copy = ["copy", "--quiet", &format!("oci:{from}"), &format!("oci:{to}:v2")];
    program::run(skopeo.args(copy)).unwrap();
    let refused = boxlaunch(&checkout, &["verify", "tagged.box"]);
    assert!(first_line(&refused).contains("has 2 boxes: "), "{}", refused.notes);
    assert!(first_line(&refused).contains("v2 (sha256:"), "{}", refused.notes);
}

fn first_line(ran: &Ran) -> &str {
    ran.notes.lines().next().unwrap_or_default()
}

fn remove(files: &BoxFiles) {
    fs::remove_dir_all(files.path()).unwrap();
}

/// Makes a box with two segments.
fn segmented() -> Checkout {
    let checkout = checkout();
    let layer = |name: &str, byte| Layer::new().file(name, 0o644, vec![byte; 3 << 20]).to_tar();
    let image = Image::new(Config::default()).with(layer("/one", 1)).with(layer("/two", 2));
    fs::remove_dir_all(checkout.path("images/business")).unwrap();
    checkout.image("business", &image);
    checkout.built(WHOLE);
    checkout
}

#[test]
fn both_programs_refuse_every_damaged_box_in_the_same_words() {
    let checkout = segmented();
    // Removes the store, which has all blobs that a damaged box lacks.
    fs::remove_dir_all(checkout.path("store")).unwrap();
    assert_eq!(boxlaunch(&checkout, &["verify", "test.box"]).code, 0);
    for damage in damage::ALL {
        let files = copied(&checkout, "bad.box");
        (damage.apply)(&files);
        let theirs = boxlaunch(&checkout, &["inspect", "bad.box"]);
        assert!(matches!(theirs.code, 1 | 5), "{}: {}", damage.name, theirs.notes);
        assert!(first_line(&theirs).contains(damage.says), "{}: {}", damage.name, theirs.notes);
        for args in [
            &["inspect", "bad.box"][..],
            &["ls", "bad.box"],
            &["diff", "bad.box", "test.box"],
            &["export", "bad.box", "--format", "tar", "--output", "out.tar"],
        ] {
            let ours = checkout.run(args);
            let what = format!("{args:?}: {}: {}", damage.name, ours.notes);
            assert_eq!((ours.code, ours.result.as_str()), (1, ""), "{what}");
            // If the directory has become an image's layout, `diff` has its own message: how to compare an image.
            if !ours.notes.contains("compare an image in it") {
                assert_eq!(first_line(&ours), first_line(&theirs), "{what}");
            }
            damage::assert_one_harmless_error(&ours.notes, &what);
        }
        remove(&files);
    }
    assert!(!Path::new(&checkout.path("out.tar")).exists());
}

#[test]
fn no_text_of_a_box_reaches_a_terminal_as_it_is() {
    let checkout = built();
    for (place, forge) in damage::FORGED {
        let files = copied(&checkout, "bad.box");
        forge(&files, &damage::hostile_text());
        for args in [&["inspect", "bad.box"][..], &["ls", "bad.box"]] {
            let ran = checkout.run(args);
            assert_eq!(ran.code, 1, "{args:?}: {place}: {}", ran.notes);
            damage::assert_one_harmless_error(&ran.notes, &format!("{args:?}: {place}"));
        }
        remove(&files);
    }
}

#[test]
fn json_of_a_foreign_box_moves_no_cursor() {
    let checkout = Checkout::new();
    let name = "/wild\u{9b}2J\u{7f}\u{202e}";
    checkout.agent_of(Layer::new().file("/agent", 0o755, "new").file(name, 0o644, "x").to_tar());
    checkout.built(&["--output", "wild.box"]);
    for args in
        [&["ls", "wild.box", "--json"][..], &["diff", "wild.box", "oci:images/business", "--json"]]
    {
        let json = checkout.run(args).result;
        assert!(json.contains("wild\\u009b2J\\u007f\\u202e"), "{args:?}: {json}");
        let moves = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{202e}');
        assert!(!json.contains(moves), "{args:?}: {json}");
    }
}
