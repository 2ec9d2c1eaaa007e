//! Checks that box-init has the same bytes in every build directory, because its digest is part of every box.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use testbed::artefacts::cargo_home;
use testbed::{Artefacts, Profile, Workspace, digest, program};

/// Entries at the root of the repository that are not part of the sources.
const NOT_SOURCES: [&str; 2] = ["target", ".git"];

fn copy(workspace: &Workspace, to: &Path) {
    for entry in fs::read_dir(workspace.path("")).unwrap() {
        let entry = entry.unwrap();
        if NOT_SOURCES.iter().all(|name| entry.file_name() != *name) {
            program::run(Command::new("cp").arg("-R").arg(entry.path()).arg(to)).unwrap();
        }
    }
}

/// Makes a cargo home at `at`, with the registry and the settings of the current cargo home.
fn home(at: &Path) {
    let own = cargo_home();
    fs::create_dir(at).unwrap();
    for name in ["registry", "config.toml"].into_iter().filter(|name| own.join(name).exists()) {
        symlink(own.join(name), at.join(name)).unwrap();
    }
}

#[test]
#[ignore = "compiles box-init and all that it depends on"]
fn box_init_has_the_same_bytes_in_another_directory_and_another_home_of_cargo() {
    let here = Workspace::find();
    program::run(&mut Artefacts::init_build(&here)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (root, cargo) = (directory.path().join("a/checkout"), directory.path().join("home"));
    fs::create_dir_all(&root).unwrap();
    copy(&here, &root);
    home(&cargo);
    let there = Workspace::at(&root);
    let mut build = Artefacts::static_build_with(&cargo, &there, &["box-init"]);
    program::run(build.arg("--offline")).unwrap();
    let [first, second] = [&here, &there].map(|it| Artefacts::locate(it, Profile::Dev).box_init);
    assert_eq!(digest::of_file(&first).unwrap(), digest::of_file(&second).unwrap());
    let bytes = fs::read(&second).unwrap();
    let leaks = |path: &Path| {
        let path = path.as_os_str().as_encoded_bytes();
        bytes.windows(path.len()).any(|window| window == path)
    };
    assert!(!leaks(&root) && !leaks(&cargo));
}
