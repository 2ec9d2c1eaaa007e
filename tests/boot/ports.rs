//! A hostile guest searches the host's ports for one beside init's connection, or misuses that connection.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::json;

use crate::erofs::build_from;
use crate::plans::{change_plan, copy};
use crate::scenario::{Scenario, Step, tools};

/// `port-init` reads the agent's last argument as the attempt to make. [`make_boxes`] replaces it for each box.
const BOXFILE: &str = r#"box "ports"
agent { image "oci:agent"; port 4088; entrypoint "/none" "attempt"; limits memory="64MiB"; }
vm memory="256MiB"
"#;
/// The attempts after which the box still starts. The attempts in [`REFUSED`] make the start fail.
const SERVED: [&str; 2] = ["scan", "second"];
const REFUSED: [&str; 3] = ["wrong", "again", "half"];
/// Lists the sockets of a box on the host every half second while the guest tries ports, and prints each distinct list, then the
/// guest's output. For each name: the number of sockets, their flags (00010000 listens), and their state (02 is connecting, 03
/// connected). The sockets that the VMM has connected to are listed in its network namespace.
const WATCH: &str = r#"
boxlaunch run -d --budget off --startup-timeout 100 --name $name /boxes/$name >/dev/null
vmm=$(boxlaunch inspect --json $name | sed 's/.*"vmm":\([0-9]*\),"protocol.*/\1/')
look() {
    cat /proc/net/unix /proc/$vmm/net/unix |
        sed -n 's,^[^ ]* [^ ]* [^ ]* \([^ ]*\) [^ ]* \([^ ]*\) .*/\([a-z]*\)\.sock$,\3 \1 \2,p' | sort | uniq -c | tr -s '\n ' ' '
    echo
}
until boxlaunch logs $name | grep -q others; do look; sleep 0.5; done >/tmp/$name
look >>/tmp/$name
sort -u /tmp/$name
boxlaunch logs $name
boxlaunch stop $name >/dev/null
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let (dir, boxes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_boxes(dir.path(), boxes.path());
    let scenario = SERVED.iter().fold(Scenario::default(), |scenario, name| {
        scenario.script(60, name, &format!("name={name}; {WATCH}"))
    });
    let run = "boxlaunch run -d --budget off --startup-timeout 2";
    let scenario = REFUSED.iter().fold(scenario, |scenario, name| {
        scenario.step_within(20, name, &format!("{run} --name {name} /boxes/{name}"))
    });
    let scenario = scenario.step("left", "boxlaunch ps --names");
    scenario.start(&tools().host.clone().disk(boxes.path(), "/boxes"))
});

fn make_boxes(dir: &Path, boxes: &Path) {
    let base = dir.join("base.box");
    build_from(BOXFILE, dir, &tools().programs.port_init, &base);
    for name in SERVED.iter().chain(&REFUSED) {
        let bundle = boxes.join(name);
        copy(&base, &bundle);
        change_plan(&bundle, |plan| plan["agent"]["argv"] = json!(["/none", name]));
    }
}

/// The guest's report of its attempts to connect to 66,536 ports of the host.
const FOUND: &str = "66536 ports: connected [1024], refused [4088]";
/// The number of bytes that the host answers on the guest's second control connection.
const UNANSWERED: &str = "bytes of answers on the others: [0]";
/// The only list of sockets that [`WATCH`] may print: one connected control socket, and no other connection.
const ONE_CONNECTION: &str = " 2 agent 00010000 01 1 control 00000000 03 1 supervisor 00010000 01 ";

fn shown(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    assert_eq!(step.status, 0, "{step:?}");
    step.stdout.lines().collect()
}

/// Fails if a guest can also connect to the host through the agent's port, 4088. After the greeting, a connection to the
/// control port, 1024, still succeeds, because libkrun accepts it, but no program of the host answers.
fn no_port_of_the_host_answers_but_the_one() {
    let lines = shown("scan");
    let [before, after] =
        ["before the greeting", "after it"].map(|when| format!("{when}: {FOUND}"));
    assert_eq!(lines, [ONE_CONNECTION, &before, &after, UNANSWERED]);
    let document = include_str!("../../docs/security.md");
    assert!(document.contains("each of 66,536 ports of the host"), "{FOUND}");
}

/// A guest that opens two control connections gets an answer only on the first. Fails if the supervisor keeps its listener.
fn a_second_connection_is_none() {
    let before = "bytes of an answer before the greeting: 0";
    assert_eq!(shown("second"), [ONE_CONNECTION, before, UNANSWERED]);
}

fn a_greeting_that_is_wrong_or_not_the_only_one_ends_the_start() {
    let misused = "error: the control channel was misused: it got";
    for (name, reason) in [
        ("wrong", format!("{misused} a greeting without this boot's nonce\n")),
        ("again", format!("{misused} a second greeting\n")),
        ("half", "error: the agent was not ready after 2 s\n".to_owned()),
    ] {
        let step = &STEPS[name];
        assert_eq!((step.status, step.stdout.as_str()), (1, ""), "{name}: {step:?}");
        assert!(step.stderr.contains(&reason), "{name}: {step:?}");
    }
    assert_eq!(STEPS["left"].stdout, "", "none of them counts as started");
}

tests![
    no_port_of_the_host_answers_but_the_one,
    a_second_connection_is_none,
    a_greeting_that_is_wrong_or_not_the_only_one_ends_the_start
];
