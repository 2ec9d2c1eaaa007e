//! The JSON of commands that change boxes and volumes, and `--all`.

use serde_json::{Value, json};

use crate::Ended;
use crate::metrics::Host;

/// Returns the exit code and the report of a command.
fn report(host: &Host, words: &str) -> (Option<i32>, Value) {
    let Ended { code, stdout, stderr } = host.run(words);
    (code, serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}")))
}

#[test]
fn all_that_have_ended_are_removed_and_named() {
    let host = Host::new();
    assert_eq!(report(&host, "rm --all --json"), (Some(0), json!({ "names": ["ended"] })));
    assert_eq!(report(&host, "rm --all --json"), (Some(0), json!({ "names": [] })));
    assert_eq!(host.run("ps -aq").stdout.lines().count(), 2, "those that run stay");
}

#[test]
fn a_report_has_what_was_done_and_what_failed() {
    let host = Host::new();
    let (code, removed) = report(&host, "rm ended none one --json");
    assert_eq!((code, &removed["names"]), (Some(1), &json!(["ended"])));
    let codes: Vec<_> =
        removed["errors"].as_array().unwrap().iter().map(|it| it["code"].as_str()).collect();
    assert_eq!(codes, [Some("name-not-found"), Some("still-running")]);
    let (code, stopped) = report(&host, "stop none --json");
    assert_eq!((code, stopped["errors"][0]["code"].as_str()), (Some(1), codes[0]));
    let (code, made) = report(&host, "volume create work --size 64m --json");
    assert_eq!((code, &made["volumes"][0]["size_bytes"]), (Some(0), &json!(64 << 20)));
    assert_eq!(report(&host, "volume rm work --json"), (Some(0), json!({ "names": ["work"] })));
}

#[test]
fn a_list_is_filtered_by_status_name_and_box() {
    let host = Host::new();
    let names = |words: &str| {
        let mut names: Vec<_> =
            host.run(&format!("ps -q {words}")).stdout.lines().map(str::to_owned).collect();
        names.sort();
        names.join(" ")
    };
    assert_eq!(names("--filter name=o"), "one two");
    assert_eq!(names("-f name=ne -f name=tw"), "one two", "one of equal keys");
    assert_eq!(names("-f name=ne -f status=ended"), "", "all of different keys");
    assert_eq!(names("-f status=ended"), "ended");
    let (_, all) = report(&host, "ps -a --json");
    let digest = all["boxes"][0]["box"].as_str().unwrap();
    assert_eq!(names(&format!("-a -f box={}", &digest[..20])), "ended one two");
    assert_eq!(names("-f box=sha256:no"), "");
    for wrong in ["status=busy", "label=x", "name"] {
        assert_eq!(host.run(&format!("ps -f {wrong}")).code, Some(2), "{wrong}");
    }
}

#[test]
fn a_run_in_the_foreground_is_not_updated() {
    let refused = Host::new().run("update one /none.box");
    insta::assert_snapshot!(refused.stderr, @"
    error: the run of one cannot be repeated: it was not started with `run --detach`, or an older boxlaunch has started it
      = help: run the box anew, with --detach
    ");
}
