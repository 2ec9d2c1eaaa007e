//! Tests of `boxbuild update`, which resolves the tags again and prints the changes.

use super::{LOCK, locked, names};
use crate::checkout::{Checkout, agent_with, business_with, shown};

/// Makes a checkout whose tags have moved to other images since it was locked.
fn moved() -> Checkout {
    let checkout = Checkout::new();
    locked(&checkout);
    checkout.image("agent", &agent_with("new agent"));
    checkout.image("business", &business_with("new app"));
    checkout
}

#[test]
fn one_entry() {
    let checkout = moved();
    let before = checkout.built(&[])["box"].clone();
    let ran = checkout.run(&["update", "agent"]);
    assert_eq!(ran.code, 0);
    insta::assert_snapshot!(shown(&ran.notes), @r"
    wrote Boxfile.lock
    ");
    insta::assert_snapshot!(shown(&ran.result), @r"
    agent (linux/amd64): sha256:DIG → sha256:DIG
      - layer sha256:DIG
      + layer sha256:DIG
    ");
    let after = checkout.built(&["--locked"])["box"].clone();
    assert_ne!(after, before);
    let fresh = Checkout::new();
    fresh.image("agent", &agent_with("new agent"));
    assert_eq!(fresh.built(&[])["box"], after, "the business image stayed as it was pinned");
}

#[test]
fn an_image_that_changed_since_is_a_warning_until_the_update() {
    let checkout = moved();
    let notes = checkout.run(&["build"]).notes;
    let warning = "warning: the lock keeps another image than oci:images/agent has now";
    assert!(notes.contains(warning) && notes.contains("`boxbuild update agent`"), "{notes}");
    checkout.result(&["update", "agent"]);
    let notes = checkout.run(&["build"]).notes;
    assert!(!notes.contains(warning) && notes.contains("`boxbuild update business`"), "{notes}");
}

#[test]
fn every_image() {
    let checkout = moved();
    let result = checkout.result(&["update"]);
    assert!(result.starts_with("agent (linux/amd64): sha256:"), "{result}");
    assert!(result.contains("\nbusiness (linux/amd64): sha256:"), "{result}");
    assert_eq!(checkout.result(&["update"]), "");
}

#[test]
fn a_dry_run_changes_nothing() {
    let checkout = moved();
    let before = checkout.read(LOCK);
    let dry = checkout.run(&["update", "--dry-run"]);
    assert_eq!((dry.code, dry.notes.as_str()), (0, "Boxfile.lock would change\n"));
    assert_eq!(checkout.read(LOCK), before);
    let told = checkout.run(&["update", "--dry-run", "--exit-code"]);
    assert_eq!((told.code, told.notes, told.result), (5, dry.notes, dry.result.clone()));
    let report = checkout.run(&["update", "--dry-run", "--json"]).json();
    assert_eq!(report["written"], false);
    let change = &report["changes"][0];
    assert_eq!((&change["name"], &change["change"]), (&"agent".into(), &"changed".into()));
    assert_eq!(change["layers_added"].as_array().unwrap().len(), 1);
    assert_eq!(change["layers_removed"].as_array().unwrap().len(), 1);
    assert_eq!(checkout.read(LOCK), before);
    assert_eq!(dry.result, checkout.result(&["update"]), "the same is told");
    assert_ne!(checkout.read(LOCK), before);
    assert_eq!(checkout.run(&["update", "--exit-code"]).code, 0, "nothing has changed since");
}

#[test]
fn an_unknown_name() {
    let checkout = moved();
    let before = checkout.read(LOCK);
    let ran = checkout.run(&["update", "agent", "skil:greet"]);
    assert_eq!((ran.code, ran.result.as_str()), (2, ""));
    insta::assert_snapshot!(ran.notes, @r"
    error: the lock has no entry `skil:greet`
      = help: did you mean `skill:greet`?
    ");
    insta::assert_snapshot!(checkout.run(&["update", "unheard-of"]).notes, @r"
    error: the lock has no entry `unheard-of`
      = help: its entries are agent, business, init, kernel, skill:greet
    ");
    assert_eq!(checkout.read(LOCK), before);
}

#[test]
fn without_a_lock_everything_is_new() {
    let checkout = Checkout::new();
    assert_eq!(checkout.run(&["update", "agnet"]).code, 2);
    assert!(!checkout.path(LOCK).exists());
    checkout.result(&["update", "--dry-run"]);
    assert!(!checkout.path(LOCK).exists());
    checkout.result(&["update", "agent"]);
    assert_eq!(names(&checkout.read(LOCK)).len(), 5);
}
