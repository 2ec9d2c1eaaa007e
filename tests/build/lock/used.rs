//! Tests that a missing lock is written, that an existing lock is used, and that it changes as little as possible.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{LOCK, entries, locked, names};
use crate::checkout::{Checkout, agent_with, business_with, files, shown, tools};

#[test]
fn it_is_written_without_building() {
    let checkout = Checkout::new();
    let ran = checkout.run(&["lock"]);
    assert_eq!(ran.code, 0);
    insta::assert_snapshot!(shown(&ran.notes), @"wrote Boxfile.lock");
    insta::assert_snapshot!(shown(&ran.result), @"
    agent (linux/amd64): added, sha256:DIG
    business (linux/amd64): added, sha256:DIG
    init (linux/amd64): added, sha256:DIG
    kernel (linux/amd64): added, sha256:DIG
    skill:greet: added, blake3:DIG
    ");
    assert_eq!(names(&checkout.read(LOCK)), ["agent", "business", "init", "kernel", "skill:greet"]);
    assert!(!checkout.path("test.box").exists());
    for kind in ["blobs", "actions"] {
        let stored = checkout.path("store").join(kind);
        assert!(!stored.exists() || files(&stored).is_empty(), "something was stored");
    }
}

#[test]
fn a_build_writes_what_lock_would_write() {
    let (one, other) = (Checkout::new(), Checkout::new());
    let notes = one.notes(&["build"]);
    assert!(notes.starts_with("wrote Boxfile.lock\nbuilt: test.box"), "{notes}");
    assert_eq!(one.read(LOCK), locked(&other));
}

#[test]
fn nothing_of_the_machine_is_in_it() {
    let (one, other) = (Checkout::new(), Checkout::new());
    let lock = locked(&one);
    assert_eq!(lock, locked(&other));
    let (root, kernel) = (one.root().parent().unwrap(), &tools().kernel);
    assert!(!lock.contains(root.to_str().unwrap()), "{lock}");
    assert!(!lock.contains(kernel.file_name().unwrap().to_str().unwrap()), "{lock}");
}

#[test]
fn a_tag_that_moved_does_not_change_the_box() {
    let checkout = Checkout::new();
    let lock = locked(&checkout);
    checkout.image("agent", &agent_with("new agent"));
    let pinned = checkout.built(&[]);
    assert_eq!(pinned["box"], Checkout::new().built(&[])["box"]);
    assert_eq!(checkout.read(LOCK), lock);
    fs::remove_file(checkout.path(LOCK)).unwrap();
    assert_ne!(checkout.built(&[])["box"], pinned["box"]);
    assert_ne!(checkout.read(LOCK), lock);
}

#[test]
fn an_image_that_is_gone_is_missed() {
    let checkout = Checkout::new();
    locked(&checkout);
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &agent_with("new agent"));
    for command in ["build", "lock"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&checkout.fails(&[command])), @r#"
            error: the lock pins `agent` to sha256:DIGEST, which is no longer in images/agent
              --> Boxfile:3:11
               |
             3 |     image "oci:images/agent"
               |           ^^^^^^^^^^^^^^^^^^ named here
               |
               = help: put it back, or run `boxbuild update agent` to take what is there now
            "#);
        }
    }
    for command in [["build", "--locked"], ["fetch", "--locked"], ["lock", "--check"]] {
        let ran = checkout.run(&command);
        assert_eq!(ran.code, 3, "{command:?}: {}", ran.notes);
    }
    checkout.result(&["update", "agent"]);
    checkout.built(&[]);
}

/// Returns the lock's inode, modification time and text, one of which changes if the lock is written or replaced.
fn stamp(checkout: &Checkout) -> (u64, i64, i64, String) {
    let metadata = fs::metadata(checkout.path(LOCK)).unwrap();
    (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), checkout.read(LOCK))
}

#[test]
fn it_is_left_alone_while_nothing_changes() {
    let checkout = Checkout::new();
    locked(&checkout);
    let before = stamp(&checkout);
    let commands: [&[&str]; 5] =
        [&["build"], &["build", "--locked"], &["lock"], &["update"], &["update", "agent"]];
    for command in commands {
        let notes = checkout.notes(command);
        assert!(!notes.contains("wrote") && !notes.contains("updated"), "{notes}");
        assert_eq!(stamp(&checkout), before, "{command:?}");
    }
    assert_eq!(checkout.notes(&["lock"]), "Boxfile.lock is up to date\n");
}

#[test]
fn only_changed_files_are_written_again() {
    let checkout = Checkout::new();
    let before = locked(&checkout);
    // The images' tags have moved, too, but a build does not update them.
    checkout.image("agent", &agent_with("new agent"));
    checkout.image("business", &business_with("new app"));
    checkout.write("skills/greet/tools/greet.sh", "#!/bin/sh\necho hi\n");
    let notes = checkout.notes(&["build"]);
    insta::assert_snapshot!(shown(&notes), @r#"
    warning: the lock keeps another image than oci:images/agent has now
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ now DIG, locked DIG
       |
       = help: run `boxbuild update agent` to build the new one

    warning: the lock keeps another image than oci:images/business has now
      --> Boxfile:8:11
       |
     8 |     image "oci:images/business"
       |           ^^^^^^^^^^^^^^^^^^^^^ now DIG, locked DIG
       |
       = help: run `boxbuild update business` to build the new one
    updated Boxfile.lock
      skill:greet: blake3:DIG → blake3:DIG
    built: test.box (rootfs 1.0 MiB); start it: boxlaunch run test
    "#);
    let after = checkout.read(LOCK);
    let changed: Vec<&str> = names(&before)
        .into_iter()
        .zip(entries(&before).into_iter().zip(entries(&after)))
        .filter_map(|(name, (old, new))| (old != new).then_some(name))
        .collect();
    assert_eq!(changed, ["skill:greet"]);
}

#[test]
fn new_declarations_are_added_and_old_ones_removed() {
    let checkout = Checkout::new();
    locked(&checkout);
    checkout.write("a.env", "A=1\n");
    checkout.edit(
        "Boxfile",
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    env-file \"a.env\"\n",
    );
    checkout.edit("Boxfile", "skill \"greet\" path=\"skills/greet\"\n", "");
    insta::assert_snapshot!(shown(&checkout.result(&["lock"])), @"
    env:a.env: added, sha256:DIG
    skill:greet: removed
    ");
    assert_eq!(names(&checkout.read(LOCK)), ["agent", "business", "env:a.env", "init", "kernel"]);
}

#[test]
fn another_reference_is_resolved_again() {
    let checkout = Checkout::new();
    locked(&checkout);
    let layout = checkout.path("images/agent");
    let image = agent_with("second");
    image.write_layout(&layout, "v2", testkit::images::Compression::Gzip).unwrap();
    checkout.edit("Boxfile", "oci:images/agent", "oci:images/agent:v2");
    insta::assert_snapshot!(shown(&checkout.notes(&["build"])), @r#"
    updated Boxfile.lock
      agent (linux/amd64): "oci:images/agent" → "oci:images/agent:v2", sha256:DIG → sha256:DIG
        - layer sha256:DIG
        + layer sha256:DIG
    built: test.box (rootfs 1.0 MiB); start it: boxlaunch run test
    "#);
    checkout.edit("Boxfile", "oci:images/agent:v2", "oci:images/agent:latest");
    let second = checkout.built(&[])["box"].clone();
    assert_eq!(second, Checkout::new().built(&[])["box"], "the reference is not part of the box");
}

#[test]
fn as_data() {
    let checkout = Checkout::new();
    let report = checkout.run(&["lock", "--json"]).json();
    assert_eq!((&report["lock"], &report["written"]), (&"Boxfile.lock".into(), &true.into()));
    let changes = report["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 5);
    assert_eq!((&changes[0]["name"], &changes[0]["change"]), (&"agent".into(), &"added".into()));
    assert_eq!(changes[0]["platform"], "linux/amd64");
    assert!(changes[0]["new"].as_str().unwrap().starts_with("sha256:"));
    let again = checkout.run(&["lock", "--json"]).json();
    assert_eq!((&again["written"], &again["changes"]), (&false.into(), &serde_json::json!([])));
}
