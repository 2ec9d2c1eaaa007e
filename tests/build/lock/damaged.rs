//! A lock that was edited, merged or taken from elsewhere is refused, and `lock` writes it anew.

use boxfile_spec::{Lock, Platform};

use super::{LOCK, locked};
use crate::checkout::{Checkout, shown};

/// Edits a good lock, and returns what a build then says, which leaves the lock as it is.
fn edited(edit: impl Fn(&str) -> String) -> (Checkout, String) {
    let checkout = Checkout::new();
    let (good, text) = (locked(&checkout), edit(&locked(&checkout)));
    assert_ne!(good, text);
    checkout.write(LOCK, &text);
    let said = checkout.fails(&["build"]);
    for args in [&["build", "--locked"][..], &["update"]] {
        assert_eq!(checkout.fails(args), said, "{args:?}");
    }
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
        ran.notes.starts_with("warning: Boxfile.lock cannot be used; everything is resolved anew"),
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
    checkout.write(LOCK, b"version = 1 # \xff\n");
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
