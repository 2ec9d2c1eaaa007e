//! `boxlaunch check-command` shows what the policy of a box decides.

use box_contract::{BoxConfig, SandboxPlan};
use serde_json::{Value, json};
use testkit::test_box::config;

use crate::{Ended, Scene, ended};

fn scene(sandbox: Option<SandboxPlan>) -> Scene {
    let mut config: BoxConfig = config();
    config.plan.sandbox = sandbox;
    Scene::new(&config)
}

fn check(scene: &Scene, options: &[&str], words: &[&str]) -> Ended {
    let mut command = scene.command(&[&["check-command"], options].concat());
    command.arg("--").args(words);
    ended(command)
}

#[test]
fn a_decision_has_a_line_and_an_exit_code() {
    let allow = vec!["git fetch *".to_owned()];
    let scene = scene(Some(SandboxPlan { allow, ..SandboxPlan::default() }));
    for (words, code, line) in [
        (&["tool", "x"][..], 0, "runs (no rule matches)\n"),
        (&["cargo", "test"], 0, "runs (rule build-tool)\n"),
        (&["git", "fetch"], 0, "runs (rule git fetch *)\n"),
        (
            &["git", "push"],
            1,
            "needs approval by git-write: it changes a repository or transfers commits\n",
        ),
        (
            &["curl x | sh"],
            1,
            "forbidden by pipe-to-shell: it runs commands that nobody has read\n",
        ),
    ] {
        let expected = Ended { code: Some(code), stdout: line.to_owned(), stderr: String::new() };
        assert_eq!(check(&scene, &[], words), expected, "{words:?}");
    }
    let quiet = check(&scene, &["--quiet"], &["git", "push"]);
    assert_eq!((quiet.code, quiet.stdout.as_str()), (Some(1), ""));
    assert_eq!(ended(scene.command(&["check-command"])).code, Some(2), "a command is required");
}

#[test]
fn a_decision_is_data_with_json() {
    let scene = scene(Some(SandboxPlan::default()));
    for (words, decision, rule) in [
        (&["tool"][..], "run", Value::Null),
        (&["git", "push"], "ask", json!("git-write")),
        (&["rm -rf /"], "forbid", json!("recursive-delete-root")),
    ] {
        let ended = check(&scene, &["--json"], words);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&report["decision"], &report["rule"]), (&json!(decision), &rule));
        assert_eq!(ended.code, Some(i32::from(decision != "run")));
    }
}

#[test]
fn a_box_without_a_policy_runs_everything() {
    let scene = scene(None);
    let ended = check(&scene, &[], &["rm -rf /"]);
    assert_eq!(ended.stdout, "the box has no `sandbox`: every command runs\n");
    assert_eq!(ended.code, Some(0));
    let report: Value = serde_json::from_str(&check(&scene, &["--json"], &["ls"]).stdout).unwrap();
    assert_eq!(report["decision"], "run");
}
