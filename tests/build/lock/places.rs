//! Tests that the path of the lock, and the paths in it, do not depend on the working directory.

use std::fs;

use super::{LOCK, locked};
use crate::checkout::{BOXFILE, Checkout, Ran};

#[test]
fn the_lock_is_beside_the_boxfile_of_any_name() {
    let checkout = Checkout::new();
    let lock = locked(&checkout);
    let other = Checkout::new();
    fs::create_dir(other.path("project")).unwrap();
    for name in ["Boxfile", "images", "skills"] {
        fs::rename(other.path(name), other.path("project").join(name)).unwrap();
    }
    let built = other.built(&["-f", "project/Boxfile"]);
    assert_eq!(built["box"], checkout.built(&[])["box"]);
    assert_eq!(other.read("project/Boxfile.lock"), lock, "paths start from the Boxfile");
    assert!(other.path("test.box").is_dir() && !other.path("project/test.box").exists());
    fs::create_dir(other.path("elsewhere")).unwrap();
    let mut up = other.boxbuild(&["build", "--locked", "-f", "../project/Boxfile"]);
    let ran = Ran::of(up.current_dir(other.path("elsewhere")));
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert!(other.path("elsewhere/test.box").is_dir());
    let absolute = other.path("project/Boxfile");
    other.built(&["--locked", "-f", absolute.to_str().unwrap()]);
}

#[test]
fn it_has_the_name_of_its_boxfile() {
    let checkout = Checkout::new();
    checkout.write("ci.Boxfile", BOXFILE);
    checkout.built(&["-f", "ci.Boxfile"]);
    assert!(checkout.path("ci.Boxfile.lock").is_file() && !checkout.path(LOCK).exists());
}

#[test]
fn another_place_can_be_named() {
    let checkout = Checkout::new();
    checkout.built(&["--lock-file", "other.lock"]);
    assert!(!checkout.path(LOCK).exists());
    checkout.built(&["--lock-file", "other.lock", "--locked"]);
    let args = ["build", "--locked", "-f", "./Boxfile", "--lock-file", "none.lock"];
    let output = checkout.run(&args).notes;
    assert!(output.contains("run `boxbuild lock -f ./Boxfile --lock-file none.lock`"), "{output}");
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_and_there_is_no_box() {
    let checkout = Checkout::new();
    let output = checkout.fails(&["build", "--lock-file", "missing/other.lock"]);
    insta::assert_snapshot!(output, @r"
    error: cannot write missing/other.lock: No such file or directory (os error 2)
      = help: name a writable path with --lock-file PATH
    ");
    assert!(!checkout.path("test.box").exists());
}

#[test]
fn a_failed_build_writes_no_lock() {
    let checkout = Checkout::new();
    checkout.agent_of(testkit::images::Layer::new().symlink("/dev", "/etc").to_tar());
    checkout.fails(&["build"]);
    assert!(!checkout.path(LOCK).exists());
}

#[test]
fn nothing_else_is_left_beside_it() {
    let checkout = Checkout::new();
    locked(&checkout);
    checkout.write("skills/greet/notes.md", "more");
    locked(&checkout);
    let mut names: Vec<_> = fs::read_dir(checkout.root())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["Boxfile", "Boxfile.lock", "images", "skills", "store"]);
}
