//! Tests of `boxbuild verify --rebuild`, which builds a box again from its lock and compares the two.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use box_contract::manifest::METADATA_TYPE;
use serde_json::Value;
use testkit::test_box::BoxFiles;

use crate::checkout::{BOXFILE, Checkout, Ran, business_with, files, shown};

/// Returns every file below the checkout: the Boxfile, the images, the boxes and the store.
fn everything(checkout: &Checkout) -> BTreeMap<PathBuf, Vec<u8>> {
    files(checkout.root()).into_iter().collect()
}

/// Runs `boxbuild verify --rebuild`, which must change nothing, and leave nothing in TMPDIR.
fn rebuild(checkout: &Checkout, args: &[&str]) -> Ran {
    let temporary = tempfile::tempdir().unwrap();
    let before = everything(checkout);
    let mut command = checkout.boxbuild(&[&["verify", "--rebuild"], args].concat());
    let ran = Ran::of(command.env("TMPDIR", temporary.path()));
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "TMPDIR has leftovers");
    assert!(before == everything(checkout), "a file was changed");
    ran
}

/// Runs `boxbuild verify --rebuild`, which must find a difference.
fn differs(checkout: &Checkout, args: &[&str]) -> Ran {
    let ran = rebuild(checkout, args);
    assert_eq!(ran.code, 5, "{}{}", ran.notes, ran.result);
    ran
}

fn equal(checkout: &Checkout, args: &[&str]) -> String {
    let ran = rebuild(checkout, args);
    assert_eq!((ran.code, ran.notes.as_str()), (0, ""), "{}", ran.result);
    ran.result
}

/// Returns the digest that a build prints.
fn built(checkout: &Checkout, args: &[&str]) -> String {
    checkout.built(args)["box"].as_str().unwrap().to_owned()
}

#[test]
fn the_box_of_a_build_is_what_its_lock_makes() {
    let checkout = Checkout::new();
    let digest = built(&checkout, &[]);
    let expected = format!("{digest} is what Boxfile and Boxfile.lock make\n");
    assert_eq!(equal(&checkout, &[]), expected);
    for word in ["test.box", "test", digest.as_str()] {
        assert_eq!(equal(&checkout, &[word]), expected, "{word}");
    }
    assert_eq!(equal(&checkout, &["--jobs", "1", "--offline"]), expected);
    // Without the thin directory, the name in the store is used.
    fs::remove_dir_all(checkout.path("test.box")).unwrap();
    assert_eq!(equal(&checkout, &[]), expected);
}

#[test]
fn nothing_of_the_store_is_used() {
    let checkout = Checkout::new().whole();
    let digest = built(&checkout, &[]);
    // Every blob and record of the store is garbage now. The box itself is in its own directory.
    for (path, bytes) in files(&checkout.path("store/blobs")) {
        let path = checkout.path("store/blobs").join(path);
        fs::remove_file(&path).unwrap();
        fs::write(path, vec![b'x'; bytes.len()]).unwrap();
    }
    assert!(equal(&checkout, &["test.box"]).starts_with(&digest));
    // An image whose layers are gone cannot be built again, although a build takes the box from its store.
    let checkout = Checkout::new();
    built(&checkout, &[]);
    let layers = BoxFiles::of(&checkout.path("images/agent")).path().join("blobs/sha256");
    let large = files(&layers).into_iter().filter(|(_, bytes)| bytes.len() > 10_000);
    large.for_each(|(path, _)| fs::remove_file(layers.join(path)).unwrap());
    built(&checkout, &["--locked"]);
    let ran = rebuild(&checkout, &[]);
    assert_eq!(ran.code, 1, "{}", ran.result);
    assert!(ran.notes.contains("images/agent"), "{}", ran.notes);
}

#[test]
fn each_profile_is_rebuilt_for_itself() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}profile \"ci\" {{ vm memory=\"512MiB\"; }}\n"));
    let plain = built(&checkout, &["--name", "plain"]);
    let ci = built(&checkout, &["--profile", "ci", "--name", "ci"]);
    let ci_is = format!("{ci} is what Boxfile (profile ci) and Boxfile.lock make\n");
    assert_eq!(equal(&checkout, &["--profile", "ci", "ci"]), ci_is);
    assert!(equal(&checkout, &["plain"]).starts_with(&plain));
    let ran = differs(&checkout, &["ci"]);
    assert!(ran.result.starts_with("plan     vm memory-mib  512 → 256\n"), "{}", ran.result);
}

#[test]
fn the_file_that_differs_is_named_with_both_origins() {
    let checkout = Checkout::new();
    built(&checkout, &["--output", "old.box"]);
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    built(&checkout, &[]);
    let ran = differs(&checkout, &["old.box"]);
    insta::assert_snapshot!(shown(&ran.result), @"
    changed  /a3s/skills/greet/SKILL.md  size
             a  file, 49 bytes, skill greet
             b  file, 54 bytes, skill greet
    ");
    insta::assert_snapshot!(shown(&ran.notes), @"
    0 added, 0 removed, 1 changed
    error: the box is sha256:DIGEST, and Boxfile and Boxfile.lock make another box: sha256:DIGEST
      = help: a is the box, and b what was built
    ");
    let report = differs(&checkout, &["old.box", "--json"]).json();
    assert_eq!(report["ok"], false);
    assert_eq!(report["differences"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["differences"][0]["path"], "/a3s/skills/greet/SKILL.md");
    assert_eq!(report["differences"][0]["a"]["origin"]["name"], "greet");
    assert_eq!(report["errors"][0]["code"], "digest-mismatch");
}

#[test]
fn a_box_of_other_inputs_is_found_before_the_build() {
    let checkout = Checkout::new();
    built(&checkout, &["--output", "old.box"]);
    checkout.image("business", &business_with("another app"));
    checkout.result(&["update"]);
    let ran = differs(&checkout, &["old.box"]);
    assert!(ran.result.starts_with("changed  the business image\n         a  sha256:"));
    assert!(ran.notes.contains("name other inputs than the box has"), "{}", ran.notes);
    let report = differs(&checkout, &["old.box", "--json"]).json();
    let names: Vec<_> = report["inputs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!((names, &report["rebuilt"]), (vec![&Value::from("business image")], &Value::Null));
    let [a, b] = ["a", "b"].map(|side| report["inputs"][0][side].as_array().unwrap());
    assert_eq!((a.len(), b.len(), a[0] == b[0], a[1] == b[1]), (2, 2, true, false), "{report:#}");
}

#[test]
fn a_lock_that_does_not_fit_is_no_base_for_a_rebuild() {
    let checkout = Checkout::new();
    built(&checkout, &[]);
    let refused = |because: &str| {
        let ran = rebuild(&checkout, &[]);
        assert_eq!((ran.code, ran.result.as_str()), (3, ""), "{}", ran.notes);
        assert!(ran.notes.contains(because), "{}", ran.notes);
    };
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    refused("Boxfile.lock is out of date, but --rebuild was given\n  skill:greet: locked blake3:");
    checkout.edit("Boxfile", "skill \"greet\" path=\"skills/greet\"\n", "");
    refused("skill:greet: no longer declared");
    fs::remove_file(checkout.path("Boxfile.lock")).unwrap();
    refused("there is no Boxfile.lock, but --rebuild was given");
}

#[test]
fn a_box_that_somebody_changed_consistently_is_another_box() {
    let checkout = Checkout::new().whole();
    built(&checkout, &[]);
    let forged = |forge: &dyn Fn(&BoxFiles)| {
        let copy = checkout.path("forged.box");
        fs::remove_dir_all(&copy).ok();
        for (path, bytes) in files(&checkout.path("test.box")) {
            fs::create_dir_all(copy.join(&path).parent().unwrap()).unwrap();
            fs::write(copy.join(path), bytes).unwrap();
        }
        forge(&BoxFiles::of(&copy));
        let ran = differs(&checkout, &["./forged.box"]);
        assert!(ran.notes.contains("make another box"), "{}", ran.notes);
        ran
    };
    let ran = forged(&|it| {
        it.edit_config(|config| config["plan"]["agent"]["argv"][0] = "/agent/bin/agenu".into());
    });
    assert!(ran.result.starts_with("plan     agent argv  "), "{}", ran.result);
    let ran = forged(&|it| it.edit_config(|config| config["kernel-version"] = "Linux 9".into()));
    assert!(ran.result.starts_with("changed  the config\n"), "{}", ran.result);
    let ran = forged(&|it| {
        it.edit_manifest(|manifest| manifest["annotations"] = serde_json::json!({ "a": "b" }));
    });
    assert!(ran.result.starts_with("changed  the manifest\n"), "{}", ran.result);
    // The listing of this box has the true file, but the rootfs has other bytes.
    let ran = forged(&|it| {
        let mut bytes = fs::read(it.blob(METADATA_TYPE)).unwrap();
        let at = bytes.windows(8).position(|it| it == b"\nGreets.").unwrap();
        bytes[at + 1] = b'g';
        let other = serde_json::to_value(it.put(METADATA_TYPE, &bytes)).unwrap();
        it.edit_manifest(|manifest| {
            let layers = manifest["layers"].as_array_mut().unwrap();
            *layers.iter_mut().find(|it| it["mediaType"] == METADATA_TYPE).unwrap() = other;
        });
    });
    assert!(ran.notes.contains("/a3s/skills/greet/SKILL.md"), "{}", ran.notes);
}

#[test]
fn what_belongs_to_a_rebuild_needs_the_option() {
    let checkout = Checkout::new();
    for args in [&["--profile", "x"][..], &["-f", "x"], &["--jobs", "1"], &["--lock-file", "x"]] {
        let ran = checkout.run(&[&["verify", "test.box"], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.notes);
        assert!(ran.notes.contains("--rebuild"), "{}", ran.notes);
    }
    assert_eq!(checkout.run(&["verify"]).code, 2);
}

#[test]
fn what_a_killed_rebuild_left_is_removed() {
    let checkout = Checkout::new();
    built(&checkout, &[]);
    let temporary = tempfile::tempdir().unwrap();
    let left = temporary.path().join(".boxbuild-0123456789abcdef");
    fs::create_dir_all(left.join("blobs")).unwrap();
    fs::write(left.join("blobs/blob"), "half").unwrap();
    let mut command = checkout.boxbuild(&["verify", "--rebuild"]);
    assert_eq!(Ran::of(command.env("TMPDIR", temporary.path())).code, 0);
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
}
