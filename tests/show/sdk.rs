//! The Python package: its tests that start no box, with the programs of this build. `tests/boot/sdk.rs` has the others.

use std::os::unix::fs::symlink;
use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::{Artefacts, Workspace, program};

#[test]
fn the_python_package_understands_the_programs() {
    let workspace = Workspace::find();
    let programs = Artefacts::build(&workspace).unwrap();
    packages(&[Package::Python], &mut |line| println!("{line}")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (source, name) in [(&programs.boxbuild, "boxbuild"), (&programs.boxlaunch, "boxlaunch")] {
        symlink(source, folder.path().join(name)).unwrap();
    }
    let mut python = Command::new("python3");
    python.args(["-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."]);
    python.current_dir(workspace.path("sdk/python")).env("BOXBUILD_BIN", folder.path());
    let output = program::finish(&mut python).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("skipped"), "{text}");
}
