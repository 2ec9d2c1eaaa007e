//! Shares that every run refuses, because a box could change what the programs trust, or read secrets.

use std::fs;
use std::process::Command;

use testkit::test_box::config;

use crate::{Scene, ended, piped};

/// Shares a bind mount of a protected directory, a bind mount of a directory that contains one, and a directory that contains
/// such a bind mount.
#[test]
fn no_mount_leads_a_box_to_what_the_programs_keep() {
    let scene = Scene::new(&config());
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path).display().to_string();
    for path in ["kept/boxbuild/inner", "kept/state", "project/inner", "elsewhere"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    let refused = |from: &str, to: &str, share: &str| {
        let mount = r#"mount --bind "$1" "$2" && shift 2 && exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", mount, "sh", &at(from), &at(to)]);
        let share = format!("{}:/w{share}", at(to.split('/').next().unwrap()));
        command.args([env!("CARGO_BIN_EXE_boxlaunch"), "run", "-v", &share]);
        command.arg(scene.made.path()).args(["--", "true"]);
        command.env("HOME", at("none")).env("XDG_CONFIG_HOME", at("kept"));
        command.env("BOXLAUNCH_STATE", at("kept/state"));
        let ended = ended(piped(command));
        assert_eq!(ended.code, Some(2), "{ended:?}");
        ended.stderr.lines().next().unwrap().replace(&home.path().display().to_string(), "HOME")
    };
    let lines = [
        refused("kept/boxbuild", "elsewhere", ":rw"),
        refused("kept", "elsewhere", ":rw"),
        refused("kept/boxbuild", "project/inner", ":rw"),
        refused("kept/state", "elsewhere", ""),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    error: a box must not write to HOME/elsewhere: boxbuild keeps its files in HOME/kept/boxbuild
    error: a box must not write to HOME/elsewhere: boxlaunch keeps its files in HOME/kept/state
    error: a box must not write to HOME/project: boxbuild keeps its files in HOME/kept/boxbuild
    error: a box must not read HOME/elsewhere: boxlaunch keeps its files in HOME/kept/state
    ");
}

#[test]
fn no_box_writes_to_a_file_that_a_variable_names() {
    let scene = Scene::new(&config());
    let home = tempfile::tempdir().unwrap();
    let real = home.path().canonicalize().unwrap();
    let at = |path: &str| real.join(path).display().to_string();
    for path in ["work/target", "keys"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    for path in ["work/target/init", "keys/auth.json"] {
        fs::write(at(path), "").unwrap();
    }
    let refused = |variable: &str, path: &str, share: &str| {
        let mut command = scene.command(&["run", "-v", &format!("{}:/w{share}", at("work"))]);
        command.args(["-v", &format!("{}:/k", at("keys"))]).env("HOME", at("none"));
        command.env(variable, at(path));
        let ended = ended(command);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        ended.stderr.replace(&real.display().to_string(), "HOME")
    };
    let texts = refused("BOXBUILD_INIT", "work/target/init", ":rw")
        + &refused("REGISTRY_AUTH_FILE", "keys/auth.json", "");
    insta::assert_snapshot!(texts, @"
    error: a box must not write to HOME/work, which contains the init that boxbuild puts into boxes: HOME/work/target/init, which BOXBUILD_INIT names
      = help: share a directory that does not have HOME/work/target/init in it; or move that file elsewhere, and set BOXBUILD_INIT to its new path
    error: a box must not read HOME/keys, which contains the credentials of registries: HOME/keys/auth.json, which REGISTRY_AUTH_FILE names
      = help: share a directory that does not have HOME/keys/auth.json in it; or move that file elsewhere, and set REGISTRY_AUTH_FILE to its new path
    ");
}
