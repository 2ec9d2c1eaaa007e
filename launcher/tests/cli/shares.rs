//! Shares that every run refuses, because a box could change what the programs trust, or read secrets.

use std::fs;
use std::path::Path;
use std::process::Command;

use box_contract::{Access, BoxConfig, Scope, ScratchPlan, SharePlan, SkillMode, SkillPlan};
use testkit::test_box::config;

use crate::{Scene, piped, refused};

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
    let shares = |from: &str, to: &str, share: &str| {
        let mount = r#"mount --bind "$1" "$2" && shift 2 && exec "$@""#;
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", mount, "sh", &at(from), &at(to)]);
        let share = format!("{}:/w{share}", at(to.split('/').next().unwrap()));
        command.args([env!("CARGO_BIN_EXE_boxlaunch"), "run", "-v", &share]);
        command.arg(scene.made.path()).args(["--", "true"]);
        command.env("HOME", at("none")).env("XDG_CONFIG_HOME", at("kept"));
        command.env("BOXLAUNCH_STATE", at("kept/state"));
        let error = refused(piped(command), 2);
        error.lines().next().unwrap().replace(&home.path().display().to_string(), "HOME")
    };
    let lines = [
        shares("kept/boxbuild", "elsewhere", ":rw"),
        shares("kept", "elsewhere", ":rw"),
        shares("kept/boxbuild", "project/inner", ":rw"),
        shares("kept/state", "elsewhere", ""),
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
    let named = |variable: &str, path: &str, share: &str| {
        let mut command = scene.command(&["run", "-v", &format!("{}:/w{share}", at("work"))]);
        command.args(["-v", &format!("{}:/k", at("keys"))]).env("HOME", at("none"));
        command.env(variable, at(path));
        refused(command, 2).replace(&real.display().to_string(), "HOME")
    };
    let texts = named("BOXBUILD_INIT", "work/target/init", ":rw")
        + &named("REGISTRY_AUTH_FILE", "keys/auth.json", "");
    insta::assert_snapshot!(texts, @"
    error: a box must not write to HOME/work, which contains the init that boxbuild puts into boxes: HOME/work/target/init, which BOXBUILD_INIT names
      = help: share a directory that does not have HOME/work/target/init in it; or move that file elsewhere, and set BOXBUILD_INIT to its new path
    error: a box must not read HOME/keys, which contains the credentials of registries: HOME/keys/auth.json, which REGISTRY_AUTH_FILE names
      = help: share a directory that does not have HOME/keys/auth.json in it; or move that file elsewhere, and set REGISTRY_AUTH_FILE to its new path
    ");
}

/// Returns a box with two scratch disks, a share and a mounted skill. With a writable share, it uses all devices of a VM.
fn desk() -> BoxConfig {
    let mut config = config();
    let scratch = |name: &str| ScratchPlan {
        name: name.into(),
        guest: format!("/var/{name}"),
        size_bytes: 1 << 20,
        scope: Scope::Both,
    };
    config.plan.scratch = ["a", "b"].map(scratch).to_vec();
    config.plan.shares = vec![SharePlan {
        name: "input".into(),
        guest: "/data".into(),
        access: Access::ReadOnly,
        scope: Scope::Both,
        host: Some("project".into()),
    }];
    config.plan.skills =
        vec![SkillPlan { name: "hot".into(), mode: SkillMode::Mounted, ..SkillPlan::default() }];
    config
}

/// Returns the error of `boxlaunch run OPTIONS BOX` in the directory `DIR`, which ends with `code`.
fn error(scene: &Scene, directory: &Path, code: i32, options: &str) -> String {
    let words: Vec<_> = ["run"].into_iter().chain(options.split(' ')).collect();
    let mut command = scene.command(&words);
    command.current_dir(directory);
    refused(command, code).replace(directory.canonicalize().unwrap().to_str().unwrap(), "DIR")
}

#[test]
fn devices_run_out_and_what_is_missing_is_named() {
    let (desk, other) = (Scene::new(&desk()), Scene::new(&config()));
    let home = tempfile::tempdir().unwrap();
    for name in ["hot", "project"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    let skill = "---\nname: hot\ndescription: Changes.\n---\n";
    fs::write(home.path().join("hot/SKILL.md"), skill).unwrap();
    let all = [
        (&desk, 2, "--share input=project --skill hot=hot -v .:/w:rw --volume more:/more"),
        (&desk, 2, "--skill hot=hot"),
        (&desk, 2, "--share input=project"),
        (&desk, 2, "-v .:/data --share input=project --skill hot=hot"),
        (&desk, 2, "--share input=project --skill hot=project"),
        (&other, 1, "-v ./none:/x"),
        (&other, 2, "--share none"),
        (&other, 2, "--emulated -v .:/x"),
    ];
    let errors = all.map(|(scene, code, it)| error(scene, home.path(), code, it));
    insta::assert_snapshot!(errors.concat(), @r#"
    error: the box cannot have all of this: its disks, shares and network take 5 devices, and a VM has 4: one for each disk, one for all writable shares together, one for all other shares together, and one for `network "shared"`
      = help: leave a volume, --disk or the directories of one kind out
    error: the box wants to read a directory of this host at /data, its share input
      = help: add `--share input` to give it "project", or `--share input=DIR` for another
    error: the box wants its skill hot from a directory of this host
      = help: add `--skill hot=DIR`, or `--skills DIR` for the directory that the skill is in
    error: /data is in use: the box has its share input at /data
      = help: choose another path: `-v .:/PATH`
    error: project is not the directory of a skill
      = help: name a directory that has a file SKILL.md
    error: cannot share ./none: No such file or directory (os error 2)
      = help: create it first, or share another
    error: the box declares no share none
      = help: write `-v ./none:/PATH` for a directory of your own
    error: a box that sees directories of this host cannot be started with --emulated
      = help: start it on a host with KVM; or leave --share and --skills out, or put `share` into a profile, and build a box without that
    "#);
}

#[test]
fn a_file_is_only_read_and_not_too_large() {
    let mut config = desk();
    config.plan.skills.clear();
    let (scene, home) = (Scene::new(&config), tempfile::tempdir().unwrap());
    fs::write(home.path().join("settings"), "of the host").unwrap();
    fs::write(home.path().join("large"), vec![0; (1 << 20) + 1]).unwrap();
    let all = [
        (2, "-v ./settings:/x:rw --share input=settings"),
        (1, "-v /bin:/bin2 --share input=/proc"),
        (1, "-v ./large:/x --share input=settings"),
    ];
    insta::assert_snapshot!(all.map(|(code, it)| error(&scene, home.path(), code, it)).concat(), @"
    error: ./settings is a file, of which a box gets a copy to read
      = help: share it without `rw`, or share the directory that it is in
    error: cannot share /proc: /proc is a file system of the kernel
      = help: share a directory that has no file system of the kernel, such as /proc, in it
    error: cannot share DIR/large: file too large
      = help: share the directory that it is in, or copy it: `boxlaunch cp`
    ");
}
