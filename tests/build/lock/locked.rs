//! `--locked`: exit code 3 where the lock is not what it is to be, and each entry named.

use std::fs;

use super::LOCK;
use crate::checkout::{BOXFILE, Checkout, agent_with, files, shown, tools};

/// A checkout with one thing of each kind that a lock pins, and its lock.
fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let all = BOXFILE.replace(
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    binary \"bin/agent\"\n    env-file \"a.env\"\n",
    );
    checkout.write("Boxfile", all);
    checkout.write("a.env", "A=1\n");
    checkout.write("bin/agent", fs::read(&tools().hello_agent).unwrap());
    checkout.result(&["lock"]);
    checkout
}

/// Runs `boxbuild build --locked`, which must fail with exit code 3 and write nothing, and returns
/// what it said.
fn refused(checkout: &Checkout, args: &[&str]) -> String {
    let before = files(checkout.root());
    let ran = checkout.run(&[&["build", "--locked"], args].concat());
    assert_eq!((ran.code, ran.result.as_str()), (3, ""), "{}", ran.notes);
    let kept = |(path, _): &(std::path::PathBuf, _)| !path.starts_with("store");
    let outside = |files: Vec<(std::path::PathBuf, Vec<u8>)>| {
        files.into_iter().filter(kept).collect::<Vec<_>>()
    };
    assert!(outside(before) == outside(files(checkout.root())), "something was written");
    shown(&ran.notes)
}

#[test]
fn a_lock_that_fits_passes() {
    let checkout = checkout();
    let lock = checkout.read(LOCK);
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read(LOCK), lock);
    // The images are as pinned, whatever their tags say by now.
    checkout.image("agent", &agent_with("new agent"));
    checkout.built(&["--locked"]);
}

#[test]
fn a_missing_lock() {
    let checkout = checkout();
    fs::remove_file(checkout.path(LOCK)).unwrap();
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: there is no Boxfile.lock, and --locked forbids to write it
      = help: run `boxbuild lock`, and check the lock in
    ");
}

#[test]
fn a_changed_skill() {
    let checkout = checkout();
    checkout.write("skills/greet/notes.md", "more");
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: Boxfile.lock is out of date, and --locked forbids to change it
      skill:greet: locked blake3:DIG, found blake3:DIG
      = help: look at what changed; if it is meant, run `boxbuild lock` and check the lock in
    ");
}

#[test]
fn a_changed_file_with_variables() {
    let checkout = checkout();
    checkout.write("a.env", "A=2\n");
    let text = refused(&checkout, &[]);
    assert!(text.contains("  env:a.env: locked sha256:DIG, found sha256:DIG\n"), "{text}");
}

#[test]
fn a_changed_program() {
    let checkout = checkout();
    checkout.write("bin/agent", fs::read(&tools().init).unwrap());
    let text = refused(&checkout, &[]);
    assert!(text.contains("  binary (linux/amd64): locked sha256:DIG, found"), "{text}");
}

#[test]
fn another_init_and_another_kernel() {
    let checkout = checkout();
    let other = tools().hello_agent.to_str().unwrap();
    let text = refused(&checkout, &["--init", other]);
    assert!(text.contains("  init (linux/amd64): locked sha256:DIG, found"), "{text}");
    // libkrunfw has whatever follows its sections.
    let mut kernel = fs::read(&tools().kernel).unwrap();
    kernel.push(0);
    checkout.write("kernel", kernel);
    let text = refused(&checkout, &["--kernel", "kernel"]);
    assert!(text.contains("  kernel (linux/amd64): locked sha256:DIG, found"), "{text}");
}

#[test]
fn another_reference() {
    let checkout = checkout();
    checkout.edit("Boxfile", "oci:images/agent", "oci:images/agent:latest");
    insta::assert_snapshot!(refused(&checkout, &[]), @r#"
    error: Boxfile.lock is out of date, and --locked forbids to change it
      agent (linux/amd64): locked "oci:images/agent", found "oci:images/agent:latest"
      = help: look at what changed; if it is meant, run `boxbuild lock` and check the lock in
    "#);
}

#[test]
fn a_removed_and_an_added_declaration() {
    let checkout = checkout();
    checkout.edit("Boxfile", "skill \"greet\" path=\"skills/greet\"\n", "skills dir=\"skills\"\n");
    checkout.built(&["--locked"]);
    checkout.edit("Boxfile", "skills dir=\"skills\"\n", "");
    checkout.write("b.env", "B=1\n");
    checkout.edit("Boxfile", "env-file \"a.env\"", "env-file \"b.env\"");
    insta::assert_snapshot!(refused(&checkout, &[]), @r"
    error: Boxfile.lock is out of date, and --locked forbids to change it
      env:a.env: no longer declared
      env:b.env: not locked yet
      skill:greet: no longer declared
      = help: look at what changed; if it is meant, run `boxbuild lock` and check the lock in
    ");
}

#[test]
fn as_data() {
    let checkout = checkout();
    checkout.write("skills/greet/notes.md", "more");
    let ran = checkout.run(&["build", "--locked", "--json"]);
    assert_eq!((ran.code, ran.notes.as_str()), (3, ""));
    let error = &ran.json()["errors"][0];
    assert_eq!(error["message"], "Boxfile.lock is out of date, and --locked forbids to change it");
    assert!(error["help"].as_str().unwrap().contains("boxbuild lock"));
    assert_eq!(error["entries"][0]["name"], "skill:greet");
    assert_eq!(error["entries"][0]["change"], "changed");
    assert_ne!(error["entries"][0]["old"], error["entries"][0]["new"]);
    fs::remove_file(checkout.path(LOCK)).unwrap();
    let ran = checkout.run(&["build", "--locked", "--json"]);
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.json()["errors"][0]["message"],
        "there is no Boxfile.lock, and --locked forbids to write it"
    );
}
