//! `boxlaunch skills` without a running box. `load` reads and checks the skills before it connects to the box.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;
use std::process::Command;

use box_contract::rules::MAX_MOUNTED_SKILLS;
use box_contract::{SkillMode, SkillPlan};
use insta::assert_snapshot;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::test_box::config;

use crate::{Ended, Scene, boxlaunch, ended, piped};

/// Returns a state directory with the record of a started box that has two skills. The box has no supervisor any more. The tests
/// also put directories of skills there.
fn started() -> TempDir {
    let state = tempfile::tempdir().unwrap();
    let boxes = state.path().join("boxes");
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(boxes.join("hello")).unwrap();
    builder.create(boxes.join(".locks")).unwrap();
    let skills = [
        SkillPlan { name: "greet".into(), ..SkillPlan::default() },
        SkillPlan { name: "shared".into(), mode: SkillMode::Mounted, ..SkillPlan::default() },
    ];
    let record = json!({
        "name": "hello", "box": format!("sha256:{}", "0".repeat(64)), "directory": "/hello.box",
        "components": ["agent"], "skills": skills, "vm": { "cpus": 1, "memory-mib": 256 },
        "state": "running", "supervisor": 1, "vmm": 1, "protocol": 4, "runtime": "/none",
        "created_ms": 1, "remove": false,
    });
    fs::write(boxes.join("hello/record.json"), record.to_string()).unwrap();
    state
}

/// Creates a skill in the directory `name`.
fn skill(state: &TempDir, name: &str, frontmatter: &str) {
    let directory = state.path().join(name);
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("SKILL.md"), format!("---\n{frontmatter}\n---\n")).unwrap();
}

/// Runs `boxlaunch ARGS` with `state` as its state and current directory.
fn run(state: &Path, args: &[&str]) -> Ended {
    let mut command = boxlaunch(args);
    command.env("BOXLAUNCH_STATE", state).current_dir(state);
    ended(command)
}

#[test]
fn what_is_part_of_the_box_is_neither_loaded_nor_replaced() {
    let state = started();
    for name in ["greet", "shared"] {
        skill(&state, name, &format!("name: {name}\ndescription: Other."));
    }
    let output = ["greet", "shared"].map(|name| {
        let loaded = run(state.path(), &["skills", "hello", "load", name]);
        assert_eq!((loaded.code, loaded.stdout.as_str()), (Some(1), ""));
        loaded.stderr
    });
    assert_snapshot!(output.concat(), @"
    error: the skill greet is baked into the box
      = help: baked skills cannot be changed: build the box again, or give the skill another name
    error: the skill shared is a directory of the host that is mounted in the box
      = help: change the files in its directory, or give the skill another name
    ");
}

#[test]
fn what_is_no_skill_is_shown_with_its_places() {
    let state = started();
    skill(&state, "notes", "name: other\ndescription: \"\\e[2J\"\ntools:\n  - script: run.sh");
    skill(&state, "Wrong", "name: wrong\ndescription: Wrong.");
    fs::create_dir(state.path().join("none")).unwrap();
    symlink("/etc", state.path().join("linked")).unwrap();
    let output = ["notes", "Wrong", "none", "missing", "linked"].map(|name| {
        let loaded = run(state.path(), &["skills", "hello", "load", name]);
        assert_eq!((loaded.code, loaded.stdout.as_str()), (Some(1), ""), "{name}");
        loaded.stderr
    });
    assert_snapshot!(output.concat(), @r#"
    error: the skill's name `other` differs from its directory's, `notes`
      --> notes/SKILL.md:2:7
       |
     2 | name: other
       |       ^^^^^ not the directory's name
       |
       = help: write `name: notes`, or rename the directory

    error: the description has a control character
      --> notes/SKILL.md:3:14
       |
     3 | description: "\e[2J"
       |              ^^^^^^^ this is more than text
       |
       = help: remove it: on a terminal, it could hide what is there

    error: the skill has no file `run.sh`
      --> notes/SKILL.md:5:13
       |
     5 |   - script: run.sh
       |             ^^^^^^ named here
       |
       = help: add it to the skill's directory, or correct the path, which is relative to it
    error: the directory Wrong cannot name a skill: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    error: none has no regular file SKILL.md
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    error: missing is not a directory
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    error: linked has no regular file SKILL.md
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    "#);
    let json = run(state.path(), &["skills", "hello", "load", "notes", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let errors = json["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 3);
    assert!(errors.iter().all(|it| it["code"] == "skill-invalid"));
    assert_eq!(errors[0]["labels"][0]["line"], 2);
}

#[test]
fn skills_beside_what_was_named_are_shown() {
    let state = started();
    fs::create_dir(state.path().join("s")).unwrap();
    for name in ["a", "b", "c", "notes"] {
        skill(&state, &format!("s/{name}"), &format!("name: {name}\ndescription: Notes."));
    }
    let output = ["s/notes/SKILL.md", "s", "./s/"].map(|path| {
        let loaded = run(state.path(), &["skills", "hello", "load", path]);
        assert_eq!((loaded.code, loaded.stdout.as_str()), (Some(1), ""), "{path}");
        loaded.stderr
    });
    let mut inside = boxlaunch(&["skills", "hello", "load", "SKILL.md"]);
    inside.env("BOXLAUNCH_STATE", state.path()).current_dir(state.path().join("s/notes"));
    assert_snapshot!(output.concat() + &ended(inside).stderr, @"
    error: s/notes/SKILL.md is not a directory
      = help: name its directory: s/notes
    error: s is not a skill
      = help: name the skills in it, such as s/a, s/b, s/c
    error: ./s/ is not a skill
      = help: name the skills in it, such as ./s/a, ./s/b, ./s/c
    error: SKILL.md is not a directory
      = help: name its directory: .
    ");
}

#[test]
fn the_skills_of_a_directory_are_checked_before_the_start() {
    let mut config = config();
    config.plan.skills = vec![SkillPlan { name: "greet".into(), ..SkillPlan::default() }];
    let (scene, home) = (Scene::new(&config), tempfile::tempdir().unwrap());
    for directory in ["wrong", "baked", "none", "good", "other", "linked", "many"] {
        fs::create_dir(home.path().join(directory)).unwrap();
    }
    skill(&home, "wrong/notes", "name: other\ndescription: Notes.");
    skill(&home, "baked/greet", "name: greet\ndescription: Greets.");
    for directory in ["good/notes", "other/notes"] {
        skill(&home, directory, "name: notes\ndescription: Notes.");
    }
    // A line of the definition that the link leads to would be in the error about it.
    symlink("../wrong/notes", home.path().join("linked/notes")).unwrap();
    fs::write(home.path().join("good/README.md"), "no skill").unwrap();
    for number in 0..MAX_MOUNTED_SKILLS {
        skill(&home, &format!("many/s{number}"), "");
    }
    let refused = |directories: &[&str]| {
        let path = |it: &str| match it {
            "~/skills" => Path::new(it).to_owned(),
            it => home.path().join(it),
        };
        let option = |it: &&str| format!("--skills={}", path(it).display());
        let options: Vec<_> = directories.iter().map(option).collect();
        let words = ["run"].into_iter().chain(options.iter().map(String::as_str));
        let ended = scene.run(&words.collect::<Vec<_>>());
        assert_ne!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr.replace(&home.path().display().to_string(), "HOME")
    };
    let all: [&[&str]; 9] = [
        &["wrong"],
        &["baked"],
        &["none"],
        &["missing"],
        &["~/skills"],
        &["good/notes"],
        &["good", "other"],
        &["linked"],
        &["many", "good"],
    ];
    assert_snapshot!(all.map(refused).concat(), @r#"
    error: the skill's name `other` differs from its directory's, `notes`
      --> HOME/wrong/notes/SKILL.md:2:7
       |
     2 | name: other
       |       ^^^^^ not the directory's name
       |
       = help: write `name: notes`, or rename the directory
    error: the skill greet is baked into the box, and HOME/baked/greet has its name
      = help: move that skill to another directory, or build the box without its own
    error: HOME/none has no directory with a SKILL.md in it
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    error: HOME/missing is not a directory
      = help: a skill is a directory that has the skill's name and contains a file SKILL.md: docs/skills.md
    error: ~/skills is not a directory
      = help: the shell did not expand `~`: write "$HOME/skills"
    error: HOME/good/notes is a skill, not a directory of skills
      = help: name the directory that it is in
    error: the skill notes is given twice: HOME/good/notes and HOME/other/notes
      = help: leave one of the directories out
    error: HOME/linked/notes leads to HOME/wrong/notes, which is not in HOME/linked
      = help: a box may have put that link there; if you mean that directory, leave the link out and add `--skills HOME/wrong`, or copy it
    error: `--skill` and `--skills` may mount at most 128 skills together
      = help: leave some out, or build them into the box: `skills dir=…` in the Boxfile
    "#);
}

/// The last check of the skills is made when all are open, and each has several open files.
#[test]
fn a_low_limit_of_open_files_is_raised_for_the_skills() {
    let (scene, home) = (Scene::new(&config()), tempfile::tempdir().unwrap());
    for number in 0..40 {
        skill(&home, &format!("s{number}"), &format!("name: s{number}\ndescription: Notes."));
    }
    let path = home.path().display();
    let options = [format!("--skills={path}"), format!("--share={path}:/w:rw")];
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn 64 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_boxlaunch")]);
    command.arg("run").args(options).arg(scene.made.path());
    command.env("BOXLAUNCH_STATE", scene.state.path());
    let refused = ended(piped(command));
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains("must not get skills"), "{}", refused.stderr);
}

#[test]
fn a_box_that_does_not_run_has_no_skills_to_show() {
    let state = started();
    skill(&state, "notes", "name: notes\ndescription: Notes.\nlicence: 1");
    let all: [&[&str]; 8] = [
        &["skills", "hello"],
        &["skills", "hello", "ls"],
        &["skills", "hello", "list"],
        &["skills"],
        &["skills", "hello", "load", "notes"],
        &["skills", "hello", "unload", "notes"],
        &["skills", "nobody"],
        &["skills", "hello", "load"],
    ];
    let output = all.map(|args| run(state.path(), args).stderr);
    assert_snapshot!(output.join("--\n"), @"
    error: the box hello is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    --
    error: the box hello is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    --
    error: the box hello is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    --
    error: the following required arguments were not provided:
      <NAME>

    Usage: boxlaunch skills [OPTIONS] <NAME> [load <DIR>...|unload <SKILL>...]

    For more information, try '--help'.
    --
    warning: the frontmatter has no key `licence`
      --> notes/SKILL.md:4:1
       |
     4 | licence: 1
       | ^^^^^^^ nothing reads this
       |
       = help: did you mean `license`?
    error: the box hello is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    --
    error: the box hello is not running
      = help: `boxlaunch inspect` says how it ended, and `boxlaunch start` starts it again; `boxlaunch ps` lists the boxes that run
    --
    error: no started box has the name nobody
      = help: `boxlaunch ps -a` lists the started boxes
    --
    error: the following required arguments were not provided:
      <DIR>...

    Usage: boxlaunch skills <NAME> load <DIR>...

    For more information, try '--help'.
    ");
}

#[test]
fn inspect_shows_what_a_skill_says_about_itself() {
    let mut config = config();
    config.plan.skills = vec![
        SkillPlan { name: "a".into(), ..SkillPlan::default() },
        SkillPlan {
            name: "greet".into(),
            version: Some("1.0.0".into()),
            description: Some("Greets \u{202e}somebody.".into()),
            author: Some("Me".into()),
            ..SkillPlan::default()
        },
    ];
    let scene = Scene::new(&config);
    let text = scene.run(&["inspect"]).stdout;
    let lines: Vec<_> =
        text.lines().filter(|it| it.contains("skill") || it.contains("Greets")).collect();
    assert_snapshot!(lines.join("\n"), @"
    skill       a, mode bake
    skill       greet 1.0.0, mode bake, by Me
                Greets �somebody.
    ");
    let report: Value = serde_json::from_str(&scene.run(&["inspect", "--json"]).stdout).unwrap();
    assert_eq!(report["plan"]["skills"][0], json!({ "name": "a" }));
    assert_eq!(report["plan"]["skills"][1]["version"], "1.0.0");
}
