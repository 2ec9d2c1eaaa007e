//! Tasks that are refused before the box starts, and boxes without a task.

use std::fs;

use boxlaunch::boxes::Boxes;
use nix::sys::stat::Mode;
use testkit::test_box::config;

use crate::{Scene, boxlaunch, record, refused};

const FEW: &str = r#"{"id":"x"}"#;
const OTHER: &str = r#"{"id":"x","type":"y","description":"z","timeout":1}"#;
const TASK: &str = r#"{"id":"x","type":"y","description":"z"}"#;

/// Returns a box and a directory with files of tasks, and with something else in the place of a result.
fn scene() -> Scene {
    let scene = Scene::new(&config());
    let at = |name: &str| scene.state.path().join(name);
    let long = "\0".repeat(60_000);
    for (name, text) in [("few", FEW), ("other", OTHER), ("long", &long), ("task", TASK)] {
        fs::write(at(&format!("{name}.json")), text).unwrap();
    }
    fs::create_dir(at("place")).unwrap();
    nix::unistd::mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    scene
}

/// Returns the error of a command in the directory of [`scene`], which ends with `code`. `BOX` is the box.
fn error(scene: &Scene, code: i32, words: &str) -> String {
    let (made, state) = (scene.made.path().to_str().unwrap(), scene.state.path());
    let words: Vec<_> = words.split(' ').map(|it| if it == "BOX" { made } else { it }).collect();
    let mut command = boxlaunch(&words);
    command.current_dir(state).env("BOXLAUNCH_STATE", state);
    refused(command, code).replace(state.canonicalize().unwrap().to_str().unwrap(), "DIR")
}

#[test]
fn what_is_no_task_is_refused_before_the_box_starts() {
    let scene = scene();
    let tasks = ["few", "other", "long", "none"];
    let tasks = tasks.map(|it| error(&scene, 2, &format!("run --task {it}.json BOX")));
    insta::assert_snapshot!(tasks.concat(), @"
    error: few.json: it is not a task: missing field `type` at line 1 column 10
      = help: a task is a JSON object with `id`, `type` and `description`, and if need be `input`, `tags` and `timeout_seconds`
    error: other.json: it is not a task: unknown field `timeout`, expected one of `id`, `type`, `description`, `input`, `tags`, `timeout_seconds` at line 1 column 48
      = help: a task is a JSON object with `id`, `type` and `description`, and if need be `input`, `tags` and `timeout_seconds`
    error: long.json: it is not a JSON object
      = help: a task is a JSON object with `id`, `type` and `description`, and if need be `input`, `tags` and `timeout_seconds`
    error: cannot read the task from none.json: No such file or directory (os error 2)
      = help: correct the path: there is no such file
    ");
    let options = [
        "run --result r.json BOX",
        "run --emulated --task task.json BOX",
        "run --task task.json BOX -- true",
    ];
    insta::assert_snapshot!(options.map(|it| error(&scene, 2, it)).concat(), @"
    error: --result: the box has no task
      = help: give it one: `--task FILE`, or `task` in the Boxfile
    error: --task cannot be used with --emulated: the box runs in a VM within the emulated host
      = help: start it on a host with KVM; or leave it out
    error: the argument '--task <FILE>' cannot be used with '[CMD]...'

    Usage: boxlaunch run [OPTIONS] <BOX> [-- <CMD>...]
           boxlaunch run [OPTIONS] --image <IMAGE> -- <CMD>...

    For more information, try '--help'.
    ");
    assert_eq!(Boxes::new(scene.state.path()).all().unwrap(), []);
}

#[test]
fn a_result_is_written_to_a_regular_file() {
    let scene = scene();
    let places = [(1, "/nowhere/r.json"), (2, "place"), (2, "pipe"), (2, "/dev/null"), (2, "-")];
    let places = places
        .map(|(code, it)| error(&scene, code, &format!("run --task task.json --result {it} BOX")));
    insta::assert_snapshot!(places.concat(), @"
    error: cannot write /nowhere/r.json: No such file or directory (os error 2)
      = help: create its directory first, or name another path
    error: --result DIR/place: there is something other than a file
      = help: name a file, whose directory has to exist
    error: --result DIR/pipe: there is something other than a file
      = help: name a file, whose directory has to exist
    error: --result /dev/null: there is something other than a file
      = help: name a file, whose directory has to exist
    error: --result cannot be `-`
      = help: name a file; `boxlaunch task NAME --result` prints the result later
    ");
    assert_eq!(Boxes::new(scene.state.path()).all().unwrap(), []);
}

/// A run that does not get its name leaves the result of another one as it is.
#[test]
fn a_box_without_a_task_has_none_to_show_and_keeps_its_name() {
    let scene = scene();
    scene.trust_kvm();
    let boxes = Boxes::new(scene.state.path());
    boxes.create(Some("other"), record(&scene.made)).unwrap().end(Some(0), None).unwrap();
    let kept = scene.state.path().join("kept.json");
    fs::write(&kept, "kept").unwrap();
    let named = "run --name other --task task.json --result kept.json BOX";
    insta::assert_snapshot!(error(&scene, 1, "task other") + &error(&scene, 1, named), @"
    error: the box other has no task
      = help: declare a `task` in the Boxfile, or give one to a run: `boxlaunch run --task FILE`
    error: the name other is taken by another box
      = help: `boxlaunch start` starts the box that has it again; --replace takes its place and removes it with its disk; or use another name
    ");
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept");
    assert_eq!(boxes.all().unwrap().len(), 1);
}
