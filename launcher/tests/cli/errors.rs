//! Errors as data: the object that `--json` prints on standard output, and the exit code.

use std::fs;

use box_contract::NetworkMode;
use serde_json::{Value, json};
use testkit::damage;
use testkit::test_box::config;

use crate::{Ended, Scene, boxlaunch, ended};

/// Returns the exit code and the error of a command that failed with `--json`. It must have printed exactly one error.
fn failed(Ended { code, stdout, stderr }: &Ended) -> (Option<i32>, Value) {
    assert_eq!((stderr.as_str(), stdout.lines().count()), ("", 1));
    let mut object: Value = serde_json::from_str(stdout).unwrap();
    assert_eq!(object["errors"].as_array().unwrap().len(), 1, "{object}");
    (*code, object["errors"][0].take())
}

#[test]
fn an_error_has_code_message_and_help() {
    let empty = tempfile::tempdir().unwrap();
    let path = empty.path().join("no.box");
    for command in ["inspect", "verify", "run"] {
        let mut command = boxlaunch(&[command, "--json"]);
        command.arg(&path).env("BOXLAUNCH_STATE", empty.path());
        let expected = json!({
            "severity": "error",
            "code": "box-not-found",
            "message": format!("there is no {}", path.display()),
            "help": "name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`",
            "labels": [],
        });
        assert_eq!(failed(&ended(command)), (Some(1), expected));
    }
}

#[test]
fn a_damaged_box_is_an_error_of_every_command() {
    let scene = Scene::new(&config());
    let config = scene.made.manifest().config.digest;
    damage::flip(&scene.made, &scene.made.blob_path(&config));
    for command in ["inspect", "verify", "run"] {
        let (code, error) = failed(&scene.run(&[command, "--json"]));
        assert_eq!((code, &error["code"]), (Some(5), &"box-damaged".into()), "{command}");
    }
}

#[test]
fn a_blob_that_differs_is_an_error_beside_the_report() {
    let scene = Scene::new(&config());
    let named = scene.made.manifest().layers[0].digest;
    damage::flip(&scene.made, &scene.made.blob_path(&named));
    let ended = scene.run(&["verify", "--json"]);
    let (code, error) = failed(&ended);
    assert_eq!((code, &error["code"]), (Some(5), &"box-damaged".into()));
    assert_eq!(error["blob"], named.to_string());
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["ok"], report["blobs"].as_array().unwrap().len()), (&false.into(), 8));
}

#[test]
fn a_component_that_the_box_lacks_is_a_failure() {
    let mut config = config();
    config.plan.business = None;
    let scene = Scene::new(&config);
    let ended = scene.run_true(&["run", "--json", "--component", "business"]);
    let (code, error) = failed(&ended);
    assert_eq!((code, &error["code"]), (Some(1), &"component-not-found".into()));
    assert_eq!(error["message"], "the box has no business component to run the command in");
    assert_eq!(fs::read_dir(scene.state.path()).unwrap().count(), 0);
}

#[test]
fn a_socket_to_no_port_is_a_usage_error() {
    let mut config = config();
    (config.plan.agent.port, config.plan.agent.health) = (None, None);
    let scene = Scene::new(&config);
    let (code, error) = failed(&scene.run(&["run", "--json", "--agent-socket", "a.sock"]));
    assert_eq!((code, &error["code"]), (Some(2), &"usage".into()));
    assert!(error["message"].as_str().unwrap().contains("has no port"), "{error}");
}

#[test]
fn a_box_is_the_one_that_is_expected_and_no_larger_than_it_may_be() {
    let scene = Scene::new(&config());
    let other = format!("sha256:{}", "5".repeat(64));
    let fails = |options: &[&str]| {
        let (code, error) = failed(&scene.run(&[&["run", "--json"], options].concat()));
        (code, error["code"].clone(), error["message"].as_str().unwrap().to_owned())
    };
    let (code, name, message) = fails(&["--expect", &other]);
    assert_eq!((code, name), (Some(1), "digest-mismatch".into()));
    assert!(message.ends_with(&format!("not {other}")), "{message}");
    for (options, asks) in [
        (&["--max-memory", "1"][..], "MiB of memory, which is more than the maximum of 1 MiB"),
        (&["--cpus", "2", "--max-cpus", "1"], "--cpus 2 is more than the maximum of 1"),
    ] {
        let (code, name, message) = fails(options);
        assert_eq!((code, name), (Some(1), "host-policy".into()));
        assert!(message.ends_with(asks), "{message}");
    }
    let mut named = boxlaunch(&["run", "--json"]);
    named.arg(format!("{}@{other}", scene.made.path().display()));
    named.env("BOXLAUNCH_STATE", scene.made.path());
    assert_eq!(failed(&ended(named)).1["code"], "digest-mismatch");
    let mut short = boxlaunch(&["run", "--json"]);
    short.arg(format!("{}@sha256:short", scene.made.path().display()));
    let (code, error) = failed(&ended(short));
    assert_eq!((code, &error["message"]), (Some(2), &"\"sha256:short\" is not a digest".into()));
}

#[test]
fn what_is_not_on_the_internet_is_given_by_the_command_line() {
    let mut config = config();
    let allow = r#"[{"peer":"10.0.0.0/8"},{"peer":"127.0.0.1","port":9999},{"peer":"169.254.169.254","port":80}]"#;
    config.plan.network.mode = NetworkMode::Filtered;
    config.plan.network.allow = serde_json::from_str(allow).unwrap();
    let scene = Scene::new(&config);
    let errors = |options: &[&str]| {
        let Ended { code, stdout, .. } = scene.run(&[&["run", "--json"], options].concat());
        let object: Value = serde_json::from_str(&stdout).unwrap();
        (code, object["errors"].as_array().unwrap().clone())
    };
    let (code, refused) = errors(&[]);
    assert_eq!((code, refused.len()), (Some(2), 3), "{refused:?}");
    for (error, given) in refused.iter().zip(["10.0.0.0/8", "127.0.0.1:9999", "169.254.169.254:80"])
    {
        let help = error["help"].as_str().unwrap();
        let expected = format!("add `--network-local {given}` if it may reach that");
        assert!(help.contains(&expected), "{help}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("the box wants to reach what is not on the internet"),
            "{message}"
        );
    }
    for other in ["169.254.0.0/16", "127.0.0.1"] {
        let options = ["--detach", "--network-local", other, "--network-local", "10.0.0.0/8"];
        let (code, refused) = errors(&options);
        assert_eq!((code, refused.len()), (Some(2), 1), "{refused:?}");
    }
    // With these options, the run fails for another reason, such as missing KVM.
    let local = ["127.0.0.1:9999", "169.254.169.254:80", "10.0.0.0/8"];
    let all: Vec<_> = local.iter().flat_map(|it| ["--network-local", it]).collect();
    for options in [&all[..], &["--network=none"]] {
        assert_ne!(errors(options).0, Some(2), "{options:?}");
    }
}

#[test]
fn a_number_of_seconds_is_asked_for() {
    for (option, value, least) in
        [("--startup-timeout", "5w", 1), ("--startup-timeout", "2d", 1), ("--grace", "-1", 0)]
    {
        let ended = ended(boxlaunch(&["run", "x.box", option, value]));
        let asked = format!(
            "write a number of seconds from {least} to 86400, or a time with s, m, h or d, such as 15m"
        );
        assert!(ended.code == Some(2) && ended.stderr.contains(&asked), "{}", ended.stderr);
    }
}

#[test]
fn only_a_run_needs_a_state_directory() {
    let scene = Scene::new(&config());
    let without = |arg| {
        let mut command = scene.command(&[arg, "--json"]);
        command.env_clear();
        ended(command)
    };
    let (code, error) = failed(&without("run"));
    assert_eq!((code, &error["code"]), (Some(2), &"usage".into()));
    assert_eq!(without("verify").code, Some(0));
}
