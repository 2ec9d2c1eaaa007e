//! A lock that was edited, merged or taken from elsewhere is refused, and `lock` writes it anew.

use boxfile_spec::{Lock, Platform};

use super::{LOCK, locked};
use crate::checkout::{Checkout, agent_with, shown};

/// Edits a good lock, and returns what a build then says, which leaves the lock as it is.
fn edited(edit: impl Fn(&str) -> String) -> (Checkout, String) {
    let checkout = Checkout::new();
    let (good, text) = (locked(&checkout), edit(&locked(&checkout)));
    assert_ne!(good, text);
    checkout.write(LOCK, &text);
    let said = checkout.fails(&["build"]);
    assert_eq!(checkout.fails(&["update"]), said);
    let locked = checkout.run(&["build", "--locked"]);
    assert_eq!((locked.code, &locked.notes), (3, &said));
    assert_eq!(checkout.read(LOCK), text);
    (checkout, shown(&said))
}

/// Replaces the first line that starts so.
fn line(text: &str, start: &str, to: &str) -> String {
    let line = text.lines().find(|it| it.starts_with(start)).unwrap();
    text.replacen(line, to, 1)
}

/// Asserts that `lock` mends what the message says is wrong.
fn mended(checkout: &Checkout) {
    let ran = checkout.run(&["lock"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert!(
        ran.notes.starts_with("warning: Boxfile.lock is mended: what is intact in it stays"),
        "{}",
        ran.notes
    );
    checkout.built(&["--locked"]);
}

#[test]
fn a_digest_edited_by_hand() {
    let digest = format!("digest = \"sha256:{}\"", "0".repeat(64));
    let (checkout, said) = edited(|text| line(text, "digest", &digest));
    insta::assert_snapshot!(said, @r#"
    error: the entry `agent` for linux/amd64 does not fit its check
       --> Boxfile.lock:17:9
        |
      7 | name = "agent"
        |        ------- something in this entry was changed by hand or lost in a merge
    ...
     17 | check = "0123456789abcdef"
        |         ^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
    mended(&checkout);
}

#[test]
fn a_size_edited_by_hand() {
    let (checkout, said) = edited(|text| line(text, "size", "size = 7"));
    assert!(said.contains("the entry `agent` for linux/amd64 does not fit its check"), "{said}");
    mended(&checkout);
}

#[test]
fn a_layer_taken_out_by_hand() {
    let (checkout, said) = edited(|text| {
        let layer = text.lines().find(|it| it.starts_with("    \"sha256:")).unwrap();
        text.replacen(&format!("{layer}\n"), "", 1)
    });
    assert!(said.contains("the entry `agent` for linux/amd64 does not fit its check"), "{said}");
    mended(&checkout);
}

#[test]
fn an_entry_from_another_platform() {
    let (checkout, said) = edited(|text| line(text, "platform", "platform = \"linux/arm64\""));
    insta::assert_snapshot!(said, @r#"
    error: the entry `agent` was resolved for linux/amd64, not for this platform
       --> Boxfile.lock:10:12
        |
     10 | platform = "linux/arm64"
        |            ^^^^^^^^^^^^^ changed or copied by hand
        |
        = help: run `boxbuild lock` to write it anew
    "#);
    mended(&checkout);
}

#[test]
fn what_is_no_lock() {
    let (checkout, said) = edited(|text| line(text, "digest", "digest ="));
    insta::assert_snapshot!(said, @r"
    error: line 11 is not TOML: a value is missing behind the `=`
       --> Boxfile.lock:11:9
        |
     11 | digest =
        |         ^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    mended(&checkout);
}

#[test]
fn a_merge_conflict() {
    let (checkout, said) = edited(|text| {
        let digest = text.lines().find(|it| it.starts_with("digest")).unwrap();
        let sides = format!("<<<<<<< ours\n{digest}\n=======\n{digest}\n>>>>>>> theirs");
        text.replacen(digest, &sides, 1)
    });
    insta::assert_snapshot!(said, @r"
    error: the file has an unresolved merge conflict
       --> Boxfile.lock:11:1
        |
     11 | <<<<<<< ours
        | ^^^^^^^^^^^^ one side starts here
    ...
     13 | =======
        | ------- the other side starts here
    ...
     15 | >>>>>>> theirs
        | -------------- it ends here
        |
        = help: keep either side, and run `boxbuild lock`: it adds what is missing
    ");
    mended(&checkout);
}

#[test]
fn bytes_that_are_no_text() {
    let checkout = Checkout::new();
    let lock = locked(&checkout);
    checkout.write(LOCK, [b"# \xff\n", lock.as_bytes()].concat());
    insta::assert_snapshot!(checkout.fails(&["build"]), @r"
    error: Boxfile.lock is not UTF-8 text; run `boxbuild lock` to write it anew
    ");
    mended(&checkout);
}

/// Rewrites a lock with its checks: nothing in the text tells.
fn forged(change: impl Fn(&Lock) -> Lock) -> (Checkout, String) {
    edited(|text| change(&Lock::parse(text).unwrap()).write())
}

#[test]
fn a_lock_of_another_epoch() {
    let (checkout, said) = forged(|lock| {
        let mut other = Lock::new(lock.epoch() + 1);
        lock.entries().for_each(|entry| drop(other.set(entry.clone())));
        other
    });
    insta::assert_snapshot!(said, @r"
    error: Boxfile.lock is for boxes of format epoch 2, and this boxbuild writes epoch 1; use the boxbuild that wrote it, or run `boxbuild lock` to write it anew
    ");
    mended(&checkout);
}

#[test]
fn an_entry_that_does_not_fit_its_image() {
    let checkout = Checkout::new();
    let mut lock = Lock::parse(&locked(&checkout)).unwrap();
    let mut entry = lock.get("agent", Some(Platform::LinuxAmd64)).unwrap().clone();
    entry.size += 1;
    lock.set(entry);
    checkout.write(LOCK, lock.write());
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r#"
    error: the lock's entry `agent` does not fit the image that it names: the image has another size; run `boxbuild update agent` to write it anew
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
    "#);
    checkout.result(&["update", "agent"]);
    checkout.built(&["--locked"]);
}

#[test]
fn a_lock_that_is_a_directory() {
    let checkout = Checkout::new();
    std::fs::create_dir(checkout.path(LOCK)).unwrap();
    for command in ["build", "lock", "update"] {
        let said = checkout.fails(&[command]);
        assert_eq!(said, "error: cannot read Boxfile.lock: it is not a regular file\n");
    }
}

/// One entry that was edited, or left open by a merge, costs no other its pin.
#[test]
fn what_is_intact_stays_pinned() {
    let checkout = Checkout::new();
    let pinned = locked(&checkout);
    checkout.image("agent", &agent_with("new agent"));
    let (before, skill) = pinned.split_once("name = \"skill:greet\"").unwrap();
    let edited = format!("{before}name = \"skill:greet\"{}", line(skill, "size", "size = 7"));
    checkout.write(LOCK, edited);
    let ran = checkout.run(&["lock"]);
    assert!(ran.notes.contains("the entry `skill:greet` is resolved anew"), "{}", ran.notes);
    assert_eq!(checkout.read(LOCK), pinned, "the tag of the agent's image had moved");
}

/// Whatever `--lock-file` names: what is no lock is not written over.
#[test]
fn another_file_is_left_alone() {
    let checkout = Checkout::new();
    checkout.write("thesis.txt", "my thesis\n");
    insta::assert_snapshot!(checkout.fails(&["lock", "--lock-file", "thesis.txt"]), @r"
    error: thesis.txt is no lock, and is left as it is; move it away to have one written
    ");
    assert_eq!(checkout.read("thesis.txt"), "my thesis\n");
}

/// A digest of the Boxfile counts before whatever the lock says.
#[test]
fn a_lock_that_says_otherwise_than_the_boxfile() {
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
    assert_eq!(ran.code, 1, "{}", ran.notes);
    assert!(ran.notes.contains("the Boxfile names another digest"), "{}", ran.notes);
}
