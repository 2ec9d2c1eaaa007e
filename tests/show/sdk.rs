//! The packages for Python and for TypeScript: their tests that start no box, with the programs of this build. `tests/boot/sdk.rs` has
//! the others.

use std::os::unix::fs::symlink;
use std::process::Command;

use tempfile::TempDir;
use testbed::prerequisites::{Package, packages, typescript};
use testbed::{Artefacts, Workspace, program};

/// Returns a directory with the programs of this build.
fn programs(workspace: &Workspace) -> TempDir {
    let programs = Artefacts::build(workspace).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (source, name) in [(&programs.boxbuild, "boxbuild"), (&programs.boxlaunch, "boxlaunch")] {
        symlink(source, folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn the_python_package_understands_the_programs() {
    let workspace = Workspace::find();
    packages(&[Package::Python], &mut |line| println!("{line}")).unwrap();
    let folder = programs(&workspace);
    let mut python = Command::new("python3");
    python.args(["-B", "-m", "unittest", "discover", "-s", "tests", "-t", "."]);
    python.current_dir(workspace.path("sdk/python")).env("BOXBUILD_BIN", folder.path());
    let output = program::finish(&mut python).unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("skipped"), "{text}");
}

#[test]
fn the_typescript_package_understands_the_programs() {
    let workspace = Workspace::find();
    let say = &mut |line: &str| println!("{line}");
    packages(&[Package::Python, Package::Bsdutils], say).unwrap();
    let typescript = typescript(&workspace, say).unwrap();
    let (folder, compiled) = (programs(&workspace), tempfile::tempdir().unwrap());
    typescript.compile(&workspace, compiled.path()).unwrap();
    let tests = ["answers", "calls", "programs", "sources"];
    let mut node = typescript.node();
    node.args(["--test", "--test-reporter=tap"]);
    node.args(tests.map(|name| compiled.path().join(format!("dist/tests/{name}.test.js"))));
    node.current_dir(workspace.path("sdk/typescript")).env("BOXBUILD_BIN", folder.path());
    let output = program::finish(&mut node).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let is_whole = text.contains("an aborted process") && !text.contains("# SKIP");
    assert!(output.status.success() && is_whole, "{text}");
}
