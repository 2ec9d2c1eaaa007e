//! `boxlaunch volume`, and the errors of `run --volume`, which need no VM.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use box_contract::{Scope, VolumePlan};
use serde_json::Value;
use tempfile::TempDir;
use testkit::test_box::config;

use crate::{Ended, Scene, in_state};

/// Returns the words, the exit code and the output of a command. The path of the state directory is replaced by `STATE`.
fn output(state: &TempDir, args: &[&str]) -> String {
    let Ended { code, stdout, stderr } = in_state(state, args);
    let text = format!("{} -> {}\n{stdout}{stderr}", args.join(" "), code.unwrap());
    text.replace(state.path().to_str().unwrap(), "STATE")
}

#[test]
fn volumes_are_made_shown_and_removed() {
    let state = tempfile::tempdir().unwrap();
    let steps: [&[&str]; 12] = [
        &["volume", "ls"],
        &["volume", "ls", "--json"],
        &["volume", "create", "work", "--size", "64MiB"],
        &["volume", "create", "work"],
        &["volume", "create", "-x"],
        &["volume", "create", "../x"],
        &["volume", "create", "small", "--size", "1MiB"],
        &["volume", "create", "small", "--size", "8 MB"],
        &["volume", "create", "small", "--size", "2T"],
        &["-q", "volume", "ls"],
        &["volume", "inspect", "work", "other"],
        &["volume", "rm", "other", "work"],
    ];
    insta::assert_snapshot!(steps.map(|step| output(&state, step)).concat());
    assert_eq!(fs::read_dir(state.path().join("volumes")).unwrap().count(), 1, "its lock");
}

#[test]
fn a_volume_that_cannot_be_read_is_a_warning_beside_the_others() {
    let state = tempfile::tempdir().unwrap();
    for name in ["bad", "good"] {
        in_state(&state, &["volume", "create", name, "--size", "8MiB"]);
    }
    fs::write(state.path().join("volumes/bad/record.json"), "{").unwrap();
    insta::assert_snapshot!(output(&state, &["-q", "volume", "ls"]), @"
    -q volume ls -> 0
    good
    boxlaunch: warning: the volume bad is damaged: its record is malformed: EOF while parsing an object at line 1 column 1
    ");
    let Ended { code, stdout, stderr } = in_state(&state, &["volume", "ls", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> =
        report["volumes"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["good"]);
    assert_eq!(code, Some(0));
    assert!(stderr.starts_with("boxlaunch: warning: the volume bad is damaged: "), "{stderr}");
}

#[test]
fn an_error_is_data_with_a_code() {
    let state = tempfile::tempdir().unwrap();
    let code = |args: &[&str]| {
        let Ended { code, stdout, .. } = in_state(&state, args);
        let report: Value = serde_json::from_str(&stdout).unwrap();
        (code, report["errors"][0]["code"].as_str().unwrap().to_owned())
    };
    let missing = code(&["volume", "inspect", "--json", "other"]);
    assert_eq!(missing, (Some(1), "volume-not-found".to_owned()));
    in_state(&state, &["volume", "create", "work"]);
    fs::write(state.path().join("volumes/work/record.json"), "{").unwrap();
    let damaged = code(&["volume", "inspect", "--json", "work"]);
    assert_eq!(damaged, (Some(1), "volume-damaged".to_owned()));
}

#[test]
fn a_volume_takes_hardly_any_room_until_it_is_written() {
    let state = tempfile::tempdir().unwrap();
    in_state(&state, &["volume", "create", "work"]);
    let report: Value =
        serde_json::from_str(&in_state(&state, &["volume", "ls", "--json"]).stdout).unwrap();
    let volume = &report["volumes"][0];
    assert_eq!(volume["size_bytes"], 10_u64 << 30);
    let disk = fs::metadata(Path::new(volume["disk"].as_str().unwrap())).unwrap();
    assert_eq!((disk.len(), disk.mode() & 0o777), (10 << 30, 0o600));
    assert!(disk.blocks() * 512 < 1 << 20, "{}", disk.blocks());
}

#[test]
fn a_run_refuses_volumes_that_do_not_fit() {
    let mut config = config();
    config.plan.scratch = vec![box_contract::ScratchPlan {
        name: "tmp".to_owned(),
        guest: "/scratch".to_owned(),
        size_bytes: 1 << 20,
        scope: box_contract::Scope::Agent,
    }];
    let scene = Scene::new(&config);
    scene.trust_kvm();
    let mut output = String::new();
    for volumes in [
        &["work"][..],
        &["./dir:/w"],
        &["work:w"],
        &["work:/w:ro"],
        &["work:/proc/w"],
        &["work:/w", "work:/x"],
        &["work:/w", "more:/w/"],
        &["work:/scratch"],
        &["a:/a", "b:/b", "c:/c", "d:/d"],
    ] {
        let mut args = vec!["run"];
        volumes.iter().for_each(|it| args.extend(["--volume", it]));
        let ended = scene.run_true(&args);
        assert_eq!(ended.code, Some(2), "{volumes:?}: {}", ended.stderr);
        output += &ended.stderr;
    }
    let emulated = scene.run_true(&["run", "--emulated", "--volume", "work:/w"]);
    assert_eq!(emulated.code, Some(2), "{}", emulated.stderr);
    insta::assert_snapshot!(output + &emulated.stderr);
    assert!(!scene.state.path().join("volumes").exists());
}

#[test]
fn what_a_box_declares_is_not_given_another_place() {
    let mut config = config();
    config.plan.name = "desk".to_owned();
    let volume = |(name, guest): (&str, &str)| VolumePlan {
        name: name.to_owned(),
        guest: guest.to_owned(),
        scope: Scope::Business,
    };
    config.plan.volumes = [("data", "/data"), ("home", "/home/dev")].map(volume).to_vec();
    let scene = Scene::new(&config);
    let refused = [["--volume", "desk.data:/home/dev"], ["-v", ".:/home/dev"]]
        .map(|[option, value]| scene.run_true(&["run", option, value]).stderr);
    let first: Vec<_> = refused.iter().map(|it| it.lines().next().unwrap()).collect();
    let expected = [
        "error: the volume desk.data is named twice",
        "error: /home/dev is in use: the box has its volume home at /home/dev",
    ];
    assert_eq!(first, expected);
}
