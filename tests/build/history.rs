//! Tests of `boxbuild why`, which compares the last two different builds of a Boxfile.

use std::fs;

use serde_json::Value;

use crate::checkout::{BOXFILE, Checkout, Ran, business_with, shown};

/// Returns the digest that a build prints.
fn built(checkout: &Checkout, args: &[&str]) -> String {
    checkout.built(args)["box"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_builds_have_nothing_to_compare() {
    let checkout = Checkout::new();
    let errors = checkout.fails(&["why"]);
    assert!(
        errors.starts_with("error: the store has no record of a build of Boxfile\n"),
        "{errors}"
    );
    assert!(!checkout.path("store").exists(), "no store is created");
    let digest = built(&checkout, &[]);
    assert_eq!(checkout.result(&["why"]), format!("one build, of {digest}: nothing to compare\n"));
    built(&checkout, &[]);
    let nothing = "nothing changed: the last 2 builds have the same inputs, and made";
    assert_eq!(checkout.result(&["why"]), format!("{nothing} {digest}\n"));
    let report: Value = serde_json::from_str(&checkout.result(&["why", "--json"])).unwrap();
    assert_eq!((&report["changed"], &report["new"]["box"]), (&false.into(), &digest.into()));
}

#[test]
fn each_kind_of_input_is_named() {
    let checkout = Checkout::new();
    let old = built(&checkout, &[]);
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    checkout.write("skills/greet/new.md", "new");
    fs::remove_file(checkout.path("skills/greet/tools/greet.sh")).unwrap();
    checkout.image("business", &business_with("another app"));
    checkout.edit("Boxfile", "vm cpus=1", "vm cpus=2");
    checkout.result(&["update"]);
    let new = built(&checkout, &[]);
    let ran = checkout.run(&["why"]);
    insta::assert_snapshot!(shown(&ran.result), @"
    box      sha256:DIGEST → sha256:DIGEST
    input    business (linux/amd64): sha256:DIG → sha256:DIG
               - layer sha256:DIG
               + layer sha256:DIG
    input    skill:greet: blake3:DIG → blake3:DIG
    plan     vm cpus  1 → 2
    changed  /a3s/skills/greet/SKILL.md  size
             a  file, 49 bytes, skill greet
             b  file, 54 bytes, skill greet
    added    /a3s/skills/greet/new.md  file, 3 bytes, skill greet
    removed  /a3s/skills/greet/tools  directory, 1 entry below, skill greet
    files    of the business's image: 0 added, 0 removed, 1 changed
    ");
    assert!(ran.result.starts_with(&format!("box      {old} → {new}\n")), "{}", ran.result);
    assert_eq!(ran.notes, format!("all differences: `boxbuild diff {old} {new}`\n"));
    let report: Value = serde_json::from_str(&checkout.result(&["why", "--json"])).unwrap();
    assert_eq!((&report["old"]["box"], &report["new"]["box"]), (&old.into(), &new.into()));
    let changed: Vec<_> =
        report["inputs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(changed, ["business", "skill:greet"]);
    assert_eq!(report["plan"][0]["field"], "vm cpus");
    // A change that has no effect on the box: a comment in the Boxfile, and a profile that is not built.
    checkout.write("Boxfile", checkout.read("Boxfile") + "// a comment\n");
    built(&checkout, &[]);
    let again = checkout.result(&["why"]);
    let (first, change) = again.split_once('\n').unwrap();
    let expected = format!(
        "the last 2 builds have the same inputs, and made {}",
        report["new"]["box"].as_str().unwrap()
    );
    assert_eq!(first, format!("nothing changed: {expected}: the last change was before them"));
    assert_eq!(change, ran.result);
    let again: Value = serde_json::from_str(&checkout.result(&["why", "--json"])).unwrap();
    assert_eq!((&again["changed"], &again["repeats"]), (&false.into(), &1.into()));
    assert_eq!((&again["old"], &again["inputs"]), (&report["old"], &report["inputs"]));
}

#[test]
fn an_input_can_change_without_the_box() {
    let checkout = Checkout::new();
    let boxfile =
        BOXFILE.replace("    health \"tcp\"\n", "    health \"tcp\"\n    env-file \"a.env\"\n");
    checkout.write("Boxfile", boxfile);
    checkout.write("a.env", "A=1\n");
    let digest = built(&checkout, &[]);
    checkout.write("a.env", "# a comment\nA=1\n");
    assert_eq!(built(&checkout, &[]), digest);
    let result = checkout.result(&["why"]);
    assert!(
        result.starts_with(&format!("box      {digest}, the same as before\ninput    env:a.env: "))
    );
    assert_eq!(result.lines().count(), 2, "{result}");
}

#[test]
fn each_profile_has_a_record() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}profile \"ci\" {{ vm memory=\"512MiB\"; }}\n"));
    let plain = built(&checkout, &[]);
    let ci = built(&checkout, &["--profile", "ci", "--name", "ci"]);
    for (args, digest) in [(&["why"][..], plain), (&["why", "--profile", "ci"], ci)] {
        let expected = format!("one build, of {digest}: nothing to compare\n");
        assert_eq!(checkout.result(args), expected);
    }
}

#[test]
fn a_box_that_was_collected_is_said_to_be_gone() {
    let checkout = Checkout::new();
    let old = built(&checkout, &["--output", "old.box"]);
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    built(&checkout, &[]);
    let blobs = checkout.path("store/blobs");
    let listing = checkout.run(&["inspect", "old.box", "--json"]).json();
    let listing = listing["blobs"].as_array().unwrap().iter().find(|it| it["name"] == "listing");
    let digest = listing.unwrap()["digest"].as_str().unwrap().trim_start_matches("sha256:");
    fs::remove_file(blobs.join(digest)).unwrap();
    let result = checkout.result(&["why"]);
    assert!(result.contains("\ninput    skill:greet: blake3:"), "{result}");
    let gone = format!("box      {old} is not in the store any more: its plan and files");
    assert!(result.contains(&gone), "{result}");
    let report: Value = serde_json::from_str(&checkout.result(&["why", "--json"])).unwrap();
    assert_eq!((&report["compared"], &report["changed"]), (&false.into(), &true.into()));
}

#[test]
fn each_box_that_is_gone_is_named_and_no_command_for_it() {
    let checkout = Checkout::new();
    let old = built(&checkout, &["--output", "old.box"]);
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    let new = built(&checkout, &["--output", "new.box"]);
    let says = |ran: &Ran, digest: &str| {
        ran.result.contains(&format!("box      {digest} is not in the store any more"))
    };
    let gone = |name: &str, digest: &str| {
        let inspected = checkout.run(&["inspect", name, "--json"]).json();
        let mut blobs = inspected["blobs"].as_array().unwrap().iter();
        let listing = blobs.find(|it| it["name"] == "listing").unwrap();
        let listing = listing["digest"].as_str().unwrap().trim_start_matches("sha256:");
        fs::remove_file(checkout.path("store/blobs").join(listing)).unwrap();
        let directory = checkout.path("store/boxes").join(digest.trim_start_matches("sha256:"));
        fs::remove_dir_all(directory).unwrap();
    };
    gone("new.box", &new);
    let ran = checkout.run(&["why"]);
    assert!(says(&ran, &new) && !says(&ran, &old) && ran.notes.is_empty(), "{}", ran.result);
    gone("old.box", &old);
    let ran = checkout.run(&["why"]);
    assert!(says(&ran, &new) && says(&ran, &old) && ran.notes.is_empty(), "{}", ran.result);
}
