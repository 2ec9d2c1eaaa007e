//! Tests of profiles. A profile's different image has its own entry in the same lock, such as `ci@agent`.

use std::fs;

use super::{LOCK, locked, names};
use crate::checkout::{BOXFILE, Checkout, agent_with};

/// Makes a checkout whose profile `ci` has another agent, and that has skills from a directory with and without the profile.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    checkout.image("ci", &agent_with("ci agent"));
    let boxfile = BOXFILE.replace("skill \"greet\" path=\"skills/greet\"", "skills dir=\"skills\"");
    let profile = "profile \"ci\" {\n    agent {\n        image \"oci:images/ci\"\n    }\n}\n";
    checkout.write("Boxfile", boxfile + profile);
    checkout
}

const BOTH: [&str; 6] = ["agent", "business", "ci@agent", "init", "kernel", "skill:greet"];

#[test]
fn one_lock_holds_both_variants() {
    let checkout = checkout();
    let plain = checkout.built(&[])["box"].clone();
    let ci = checkout.built(&["--profile", "ci", "-o", "ci.box"])["box"].clone();
    assert_ne!(plain, ci);
    let lock = checkout.read(LOCK);
    assert_eq!(names(&lock), BOTH);
    assert_eq!(checkout.built(&["--locked"])["box"], plain);
    assert_eq!(checkout.built(&["--locked", "--profile", "ci", "-o", "ci.box"])["box"], ci);
    assert_eq!(checkout.read(LOCK), lock);
}

#[test]
fn lock_covers_every_profile() {
    let (one, other) = (checkout(), checkout());
    let lock = locked(&one);
    assert_eq!(names(&lock), BOTH);
    other.built(&["--profile", "ci"]);
    other.built(&[]);
    assert_eq!(other.read(LOCK), lock, "in whichever order it came about");
    one.built(&["--locked"]);
    one.built(&["--locked", "--profile", "ci"]);
    assert_eq!(one.run(&["lock", "--profile", "ci"]).code, 2, "it is for all profiles");
}

#[test]
fn each_is_pinned_and_updated_by_itself() {
    let checkout = checkout();
    locked(&checkout);
    let before = checkout.built(&["--profile", "ci"])["box"].clone();
    checkout.image("ci", &agent_with("newer ci agent"));
    assert_eq!(checkout.built(&["--profile", "ci"])["box"], before);
    assert_eq!(checkout.result(&["update", "agent"]), "");
    let reported = checkout.result(&["update", "ci@agent"]);
    assert!(reported.starts_with("ci@agent (linux/amd64): sha256:"), "{reported}");
    assert_ne!(checkout.built(&["--profile", "ci", "--locked"])["box"], before);
}

#[test]
fn a_profile_that_is_gone_leaves_nothing() {
    let checkout = checkout();
    locked(&checkout);
    let text = checkout.read("Boxfile");
    checkout.write("Boxfile", &text[..text.find("profile").unwrap()]);
    checkout.built(&[]);
    assert!(!names(&checkout.read(LOCK)).contains(&"ci@agent"));
}

#[test]
fn a_variant_that_became_the_same_leaves_nothing() {
    for args in [&["build"][..], &["build", "--profile", "ci"], &["lock"]] {
        let checkout = checkout();
        locked(&checkout);
        checkout.edit("Boxfile", "oci:images/agent\"", "oci:images/ci\"");
        checkout.result(args);
        let lock = checkout.read(LOCK);
        assert_eq!(
            names(&lock),
            ["agent", "business", "init", "kernel", "skill:greet"],
            "{args:?}"
        );
    }
}

#[test]
fn a_skill_that_is_gone_leaves_nothing() {
    for args in [&["build"][..], &["build", "--profile", "ci"], &["lock"]] {
        let checkout = checkout();
        checkout.write("skills/more/SKILL.md", "---\nname: more\ndescription: More.\n---\n");
        assert!(names(&locked(&checkout)).contains(&"skill:more"));
        fs::remove_dir_all(checkout.path("skills/more")).unwrap();
        checkout.result(args);
        assert_eq!(names(&checkout.read(LOCK)), BOTH, "{args:?}");
    }
}

#[test]
fn an_unknown_profile() {
    let ran = checkout().run(&["build", "--profile", "cy"]);
    assert_eq!(ran.code, 2, "it is the command line that is wrong");
    insta::assert_snapshot!(ran.notes, @"
    error: Boxfile has no profile `cy`
      = help: write `--profile ci`
    ");
}
