//! Tests of locks that were edited, merged or copied from elsewhere: which are refused, and how to repair them.

use std::fs;
use std::process::Command;

use box_contract::Platform;
use boxbuild::project::lock::Lock;
use boxbuild::project::lock::LockEntry;

use super::{LOCK, locked, names};
use crate::checkout::{Checkout, agent_with, shown};

/// Edits a good lock, and returns the errors of a build, which must fail with exit code 1 and not change the lock.
fn edited(edit: impl Fn(&str) -> String) -> (Checkout, String) {
    refused(1, edit)
}

/// Does the same as [`edited`], with exit code `code`. With `--locked` the exit code is always 3.
fn refused(code: i32, edit: impl Fn(&str) -> String) -> (Checkout, String) {
    let checkout = Checkout::new();
    let (good, text) = (locked(&checkout), edit(&locked(&checkout)));
    assert_ne!(good, text);
    checkout.write(LOCK, &text);
    let ran = checkout.run(&["build"]);
    assert_eq!((ran.code, ran.result.as_str()), (code, ""), "{}", ran.notes);
    let message = ran.notes;
    let locked = checkout.run(&["build", "--locked"]);
    assert_eq!((locked.code, &locked.notes), (3, &message));
    assert_eq!(checkout.read(LOCK), text);
    (checkout, shown(&message))
}

/// Replaces the first line that begins with `start`.
fn line(text: &str, start: &str, to: &str) -> String {
    let line = text.lines().find(|it| it.starts_with(start)).unwrap();
    text.replacen(line, to, 1)
}

/// Asserts that only `update` without names repairs a lock that cannot be read.
fn rebuilt(checkout: &Checkout) {
    let damaged = fs::read(checkout.path(LOCK)).unwrap();
    for command in [&["lock"][..], &["update", "agent"]] {
        assert!(checkout.fails(command).contains("run `boxbuild update` to resolve everything"));
        assert_eq!(fs::read(checkout.path(LOCK)).unwrap(), damaged);
    }
    checkout.result(&["update", "--dry-run"]);
    assert_eq!(fs::read(checkout.path(LOCK)).unwrap(), damaged);
    let notes = checkout.notes(&["update"]);
    assert!(
        notes.starts_with("warning: everything in Boxfile.lock is resolved again: "),
        "{notes}"
    );
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read(LOCK), self::locked(&Checkout::new()), "of the same images");
}

#[test]
fn not_toml() {
    let (checkout, message) = edited(|text| line(text, "digest", "digest ="));
    insta::assert_snapshot!(message, @r#"
    error: `digest` has no value
       --> Boxfile.lock:11:1
        |
     11 | digest =
        | ^^^^^^ a name alone
        |
        = help: write `name = "value"`; a list of values is written `["a", "b"]`
              or run `boxbuild update` to resolve everything again
    "#);
    rebuilt(&checkout);
}

#[test]
fn an_unknown_field() {
    let (checkout, message) = edited(|text| text.replacen("\nsize", "\ncolour = \"red\"\nsize", 1));
    assert!(
        message.starts_with("error: the entry `agent` is malformed: unknown field `colour`"),
        "{message}"
    );
    rebuilt(&checkout);
}

#[test]
fn a_newer_version() {
    let (checkout, message) = edited(|text| line(text, "version", "version = 1000"));
    assert!(message.starts_with("error: the lock was written by a newer boxbuild\n"), "{message}");
    rebuilt(&checkout);
}

#[test]
fn bytes_that_are_no_text() {
    let checkout = Checkout::new();
    let lock = locked(&checkout);
    checkout.write(LOCK, [b"# \xff\n", lock.as_bytes()].concat());
    insta::assert_snapshot!(checkout.fails(&["build"]), @r"
    error: cannot read Boxfile.lock: not valid UTF-8 at line 1, column 3
      = help: run `boxbuild update` to resolve everything again
    ");
    rebuilt(&checkout);
}

/// Runs git in a checkout, and returns whether it succeeded.
fn git(checkout: &Checkout, args: &[&str]) -> bool {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let output = Command::new("git")
        .current_dir(checkout.root())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .args(identity)
        .args(args)
        .output()
        .unwrap();
    output.status.success()
}

/// Makes a checkout after a `git merge` of two branches that each updated the agent's image.
fn merged() -> Checkout {
    let checkout = Checkout::new();
    let git = |args: &[&str]| assert!(git(&checkout, args), "{args:?}");
    let commit = |program: &str| {
        checkout.image("agent", &agent_with(program));
        checkout.result(&["update", "agent"]);
        git(&["add", "Boxfile", LOCK]);
        git(&["commit", "--quiet", "--message", program]);
    };
    git(&["init", "--quiet", "--initial-branch", "main"]);
    commit("first");
    git(&["checkout", "--quiet", "-b", "release-1.2"]);
    commit("theirs");
    git(&["checkout", "--quiet", "main"]);
    commit("ours");
    assert!(!self::git(&checkout, &["merge", "--quiet", "release-1.2"]), "there is no conflict");
    checkout
}

#[test]
fn a_merge_conflict() {
    let checkout = merged();
    let conflicted = checkout.read(LOCK);
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r"
    error: the lock has an unresolved merge conflict
       --> Boxfile.lock:11:1
        |
     11 | <<<<<<< HEAD
        | ^^^^^^^^^^^^ left by the merge
        |
        = help: run `boxbuild update` to resolve everything again, or take one side (`git checkout --ours`) and run `boxbuild lock`
    ");
    let locked = checkout.run(&["build", "--locked"]);
    assert_eq!(locked.code, 3, "{}", locked.notes);
    assert_eq!(checkout.read(LOCK), conflicted);
    // The tag refers to the image that was written last.
    let ran = checkout.run(&["update"]);
    insta::assert_snapshot!(shown(&ran.notes), @r"
    warning: everything in Boxfile.lock is resolved again: the lock has an unresolved merge conflict
    wrote Boxfile.lock
    ");
    let fresh = Checkout::new();
    fresh.image("agent", &agent_with("ours"));
    assert_eq!(checkout.read(LOCK), self::locked(&fresh));
    checkout.built(&["--locked"]);
}

#[test]
fn a_merge_conflict_is_settled_by_taking_one_side() {
    let checkout = merged();
    assert!(git(&checkout, &["checkout", "--theirs", LOCK]));
    let theirs = checkout.read(LOCK);
    assert_eq!(checkout.result(&["lock"]), "");
    assert_eq!(checkout.read(LOCK), theirs, "the pins are kept");
    checkout.built(&["--locked"]);
}

#[test]
fn a_digest_edited_by_hand() {
    let digest = format!("digest = \"sha256:{}\"", "0".repeat(64));
    let checkout = Checkout::new();
    let good = locked(&checkout);
    checkout.write(LOCK, line(&good, "digest", &digest));
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r#"
    error: the lock pins `agent` to sha256:DIGEST, which is no longer in images/agent
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: put it back, or run `boxbuild update agent` to take what is there now
    "#);
    checkout.result(&["update", "agent"]);
    assert_eq!(checkout.read(LOCK), good);
}

#[test]
fn an_image_entry_that_does_not_fit_its_image() {
    let size: fn(&mut LockEntry) = |entry| entry.size += 1;
    let layers: fn(&mut LockEntry) = |entry| entry.layers.truncate(1);
    for (change, expected) in
        [(size, "the image has another size"), (layers, "the image has other layers")]
    {
        let checkout = Checkout::new();
        let good = locked(&checkout);
        let mut lock = Lock::parse(&good).unwrap();
        let mut entry = lock.get("agent", Some(Platform::LinuxAmd64)).unwrap().clone();
        change(&mut entry);
        lock.set(entry);
        checkout.write(LOCK, lock.write());
        let message = checkout.fails(&["build"]);
        assert!(
            message.contains(expected) && message.contains("run `boxbuild update agent`"),
            "{message}"
        );
        checkout.result(&["update", "agent"]);
        assert_eq!(checkout.read(LOCK), good);
    }
}

/// If a lock's entry for a file of the checkout differs from the file, `lock` uses the file.
#[test]
fn a_skill_entry_edited_by_hand() {
    let checkout = Checkout::new();
    let good = locked(&checkout);
    let (before, skill) = good.split_once("name = \"skill:greet\"").unwrap();
    checkout
        .write(LOCK, format!("{before}name = \"skill:greet\"{}", line(skill, "size", "size = 7")));
    let ran = checkout.run(&["build", "--locked"]);
    assert_eq!(ran.code, 3, "{}", ran.notes);
    assert!(ran.notes.contains("skill:greet: locked 7 bytes"), "{}", ran.notes);
    checkout.result(&["lock"]);
    assert_eq!(checkout.read(LOCK), good);
}

#[test]
fn an_entry_from_another_platform() {
    let checkout = Checkout::new();
    let good = locked(&checkout);
    checkout.write(LOCK, line(&good, "platform", "platform = \"linux/arm64\""));
    let ran = checkout.run(&["build", "--locked"]);
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(shown(&ran.notes), @r"
    error: Boxfile.lock is out of date, but --locked was given
      agent (linux/amd64): not locked yet
      agent (linux/arm64): no longer declared
      = help: review what changed; if it is intended, run `boxbuild lock` and check the lock in
    ");
    checkout.result(&["lock"]);
    assert_eq!(checkout.read(LOCK), good);
}

#[test]
fn a_lock_of_another_epoch_keeps_its_pins() {
    let (checkout, message) = refused(3, |text| {
        let lock = Lock::parse(text).unwrap();
        let mut other = Lock::new(77);
        lock.entries().for_each(|entry| drop(other.set(entry.clone())));
        other.write()
    });
    let current = format!("epoch {}", box_contract::manifest::FORMAT_EPOCH);
    insta::assert_snapshot!(message.replace(&current, "epoch CURRENT"), @r"
    error: Boxfile.lock is for boxes of format epoch 77, and this boxbuild writes epoch CURRENT
      = help: use the boxbuild that wrote it, or run `boxbuild lock` to rewrite it with the same pins
    ");
    let other = checkout.read(LOCK);
    for frozen in [&["lock", "--check"][..], &["fetch", "--locked"]] {
        let ran = checkout.run(frozen);
        assert!(ran.code == 3 && ran.notes.contains("format epoch 77"), "{}", ran.notes);
        assert_eq!(checkout.read(LOCK), other, "{frozen:?}");
    }
    checkout.image("agent", &agent_with("new agent"));
    assert_eq!(checkout.notes(&["lock"]), "wrote Boxfile.lock\n");
    assert_eq!(checkout.read(LOCK), locked(&Checkout::new()), "the tag is not followed");
    checkout.built(&["--locked"]);
    let current = format!("epoch = {}\n", box_contract::manifest::FORMAT_EPOCH);
    checkout.write(LOCK, checkout.read(LOCK).replace(&current, "epoch = 3\n"));
    checkout.result(&["update"]);
    assert!(checkout.read(LOCK).contains(&current), "an update writes the current one, too");
}

#[test]
fn a_lock_of_version_1_is_used_and_rewritten_when_it_changes() {
    let checkout = Checkout::new();
    let current = locked(&checkout);
    let former = current
        .replace("version = 2\n", "version = 1\n")
        .replace("\n\n[[entry]]", "\ncheck = \"77f6cd5b8e4f0a21\"\n\n[[entry]]")
        .replacen("\ncheck = \"77f6cd5b8e4f0a21\"\n", "\n", 1);
    assert_eq!(former.matches("check = ").count(), names(&current).len() - 1);
    checkout.write(LOCK, &former);
    checkout.image("agent", &agent_with("new agent"));
    checkout.built(&["--locked"]);
    assert_eq!(checkout.read(LOCK), former, "nothing changed");
    checkout.write("skills/greet/notes.md", "more");
    assert!(checkout.result(&["lock"]).starts_with("skill:greet: blake3:"));
    let fresh = Checkout::new();
    fresh.write("skills/greet/notes.md", "more");
    assert_eq!(checkout.read(LOCK), locked(&fresh));
}

#[test]
fn a_lock_that_is_a_directory() {
    let checkout = Checkout::new();
    fs::create_dir(checkout.path(LOCK)).unwrap();
    for command in ["build", "lock", "update"] {
        let message = checkout.fails(&[command]);
        assert_eq!(
            message,
            "error: cannot read Boxfile.lock: it is not a regular file\n  = help: move it away, or name another lock with --lock-file PATH\n"
        );
    }
}

/// A file that is not a lock is never overwritten, even if `--lock-file` names it.
#[test]
fn another_file_is_left_alone() {
    let checkout = Checkout::new();
    checkout.write("thesis.txt", "my thesis\n");
    checkout.fails(&["lock", "--lock-file", "thesis.txt"]);
    insta::assert_snapshot!(checkout.fails(&["update", "--lock-file", "thesis.txt"]), @r"
    error: thesis.txt is not a lock, and is not overwritten
      = help: move it away, so that a new lock is written
    ");
    assert_eq!(checkout.read("thesis.txt"), "my thesis\n");
}

/// A digest in the Boxfile takes precedence over the lock.
#[test]
fn a_lock_that_contradicts_the_boxfile() {
    let checkout = Checkout::new();
    let lock = Lock::parse(&locked(&checkout)).unwrap();
    let named = lock.get("agent", Some(Platform::LinuxAmd64)).unwrap().digest.to_string();
    checkout.image("agent", &agent_with("another agent"));
    checkout.result(&["update", "agent"]);
    let other = Lock::parse(&checkout.read(LOCK)).unwrap();
    let mut entry = other.get("agent", Some(Platform::LinuxAmd64)).unwrap().clone();
    checkout.edit("Boxfile", "oci:images/agent\"", &format!("oci:images/agent@{named}\""));
    entry.source = format!("oci:images/agent@{named}");
    let mut forged = other.clone();
    forged.set(entry);
    checkout.write(LOCK, forged.write());
    let ran = checkout.run(&["build", "--locked"]);
    assert_eq!(ran.code, 3, "{}", ran.notes);
    assert!(ran.notes.contains("the Boxfile names another digest"), "{}", ran.notes);
}
