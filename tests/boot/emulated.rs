//! `boxlaunch run --emulated` and `boxbuild budget` in a container that has QEMU, but neither KVM nor a network.

use serde_json::Value;

use crate::container::Home;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn an_ordinary_user_without_kvm_network_or_programs_but_qemu_runs_a_box() {
    let home = Home::new();
    let run = ["run", "--emulated", "hello.box"];
    let boxlaunch =
        |programs: &str, more: &[&str]| home.run("boxlaunch", programs, &[&run[..], more].concat());
    let script = "echo from $(hostname); echo to stderr >&2; exit 7";
    let ran = boxlaunch("programs", &["--", "sh", "-c", script]);
    let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(7), "{stderr}");
    assert_eq!(stdout, "from business-host\n");
    assert!(stderr.starts_with("boxlaunch: running on an emulated CPU: slow"), "{stderr}");
    assert!(stderr.lines().nth(1).unwrap().starts_with("boxlaunch: QEMU "), "{stderr}");
    assert!(stderr.ends_with("\nto stderr\n"), "{stderr}");

    let report = boxlaunch("programs", &["--until-ready", "--json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert!(report["phases_ms"]["total"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["agent_socket"].is_null(), "it would lead nowhere here: {report}");

    let refused = boxlaunch("programs", &["--agent-socket", "s"]);
    let message = "error: --agent-socket cannot be used with --emulated";
    assert!(text(&refused.stderr).starts_with(message), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(2));

    let missing = boxlaunch("images", &[]);
    assert_eq!(
        text(&missing.stderr).lines().collect::<Vec<_>>(),
        [
            "error: qemu-system-x86_64 is not installed",
            "  = help: sudo apt-get install qemu-system-x86"
        ]
    );
    assert_eq!(missing.status.code(), Some(1));

    let budget = ["budget", "hello.box", "--runs", "1", "--json"];
    let measured = home.run("boxbuild", "programs", &budget);
    assert_eq!(measured.status.code(), Some(0), "{measured:?}");
    let measured: Value = serde_json::from_slice(&measured.stdout).unwrap();
    assert_eq!(measured["within_budget"], true, "{measured}");
    let missing = home.run("boxbuild", "images", &budget);
    assert_eq!(missing.status.code(), Some(1), "{missing:?}");
    let missing: Value = serde_json::from_slice(&missing.stdout).unwrap();
    assert_eq!(missing["errors"][0]["message"], "qemu-system-x86_64 is not installed");
}

tests![an_ordinary_user_without_kvm_network_or_programs_but_qemu_runs_a_box];
