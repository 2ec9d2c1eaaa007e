//! The business application with `autostart`: when it starts, where its output is kept, and when it restarts.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use serde_json::Value;

use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};
use crate::schema::assert_fits;

/// Asks the agent for its health at each start, fails twice, and runs on after the third start.
const THIRD_TIME: &str = r##"autostart #true restart="on-failure"
    entrypoint "/bin/sh" "-c" #"""
        echo started >>/tmp/starts; starts=$(wc -l </tmp/starts); echo start $starts
        wget -qO- http://agent-host:4088/health; echo; echo from $(hostname) >&2
        [ $starts = 3 ] && exec sleep 1000
        exit 5
        """#"##;
/// Exits at once with status 0.
const ONCE: &str = r#"autostart #true restart="on-failure"
    entrypoint "/bin/sh" "-c" "echo once""#;
/// Fails one second after each start.
const FAILING: &str = r##"autostart #true restart="on-failure"
    entrypoint "/bin/sh" "-c" "sleep 1; exit 3""##;

/// `wrote BOX TEXT` waits until the business application of the box has written a line with this text.
const WAIT: &str = "wrote() { until boxlaunch logs --component business \"$1\" 2>/dev/null | grep -q \"$2\"; do usleep 50000; done; }\n";
const RESTARTED: &str = "boxlaunch run -d --name third /third; wrote third 'start 3'
boxlaunch logs --component business third 2>/tmp/errors; cat /tmp/errors
boxlaunch exec third -- sh -c 'pidof sleep >/dev/null && echo it stays'
sleep 2 # a record is written once in a second
boxlaunch inspect --json third | sed 's/.*\"business_status\":\\([^,]*\\),.*/business_status \\1/'
boxlaunch logs third | grep -c start; boxlaunch stop third; boxlaunch ps -n";
const ENDED: &str = "boxlaunch run --name once /once >/dev/null 2>/tmp/said & pid=$!
until grep -q 'has ended' /tmp/said; do usleep 50000; done; sleep 1
boxlaunch ps -n; boxlaunch stop once; wait $pid; grep -o 'the business.*' /tmp/said
boxlaunch logs --component business once; boxlaunch logs --json --in business once; boxlaunch inspect --json once";

/// Starts commands in the component until it has reached its process limit, so that the program cannot restart.
const CROWDED: &str = "boxlaunch run -d --name crowd /failing
until boxlaunch logs --component business crowd 2>&1 | grep -m1 -o 'the component has as many.*'; do
    boxlaunch exec crowd sleep 1000 2>/dev/null & usleep 20000
done
boxlaunch ps -n; boxlaunch rm -f crowd";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let hello = hello_checkout(dir.path());
    let mut host = tools.host.clone();
    for (name, declared) in [("third", THIRD_TIME), ("once", ONCE), ("failing", FAILING)] {
        let (boxfile, bundle) =
            (dir.path().join(format!("{name}.kdl")), dir.path().join(format!("{name}.box")));
        let text = hello.replace("business {", &format!("business {{\n    {declared}"));
        fs::write(&boxfile, text).unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        host = host.file(bundle, format!("/{name}"));
    }
    let waiting = |script: &str| format!("{WAIT}{script}");
    Scenario::default()
        .script(30, "restarted", &waiting(RESTARTED))
        .script(30, "ended", &waiting(ENDED))
        .script(60, "crowd", CROWDED)
        .start(&host)
});

#[track_caller]
fn lines(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    assert_eq!(step.status, 0, "{step:?}");
    println!("{}\n{}", step.stdout, step.stderr);
    step.stdout.lines().collect()
}

fn a_program_that_fails_is_started_again() {
    let lines = lines("restarted");
    assert_eq!(lines[0], "third");
    for (at, start) in [(1, "start 1"), (3, "start 2"), (5, "start 3")] {
        assert_eq!(lines[at], start, "{lines:?}");
        assert!(lines[at + 1].contains("HEALTHY"), "the agent was ready before: {lines:?}");
    }
    assert_eq!(lines[7..10], ["from business-host"; 3]);
    assert_eq!(lines[10..], ["it stays", "business_status 5", "0", "third"]);
}

fn a_program_that_ends_well_stays_ended_and_the_box_goes_on() {
    let lines = lines("ended");
    let output = "the business application has ended with status 0; its output: boxlaunch logs --component business once";
    assert_eq!(lines[..4], ["once", "once", output, "once"], "{lines:?}");
    let [logged, record] = [4, 5].map(|at| serde_json::from_str::<Value>(lines[at]).unwrap());
    assert_fits("logs", &logged);
    assert_eq!((&logged["component"], &logged["text"]), (&"business".into(), &"once\n".into()));
    assert_fits("record", &record);
    assert_eq!(record["business_status"], 0);
}

fn a_program_that_cannot_be_started_again_does_not_end_the_box() {
    let reason = "the component has as many processes as it may have";
    assert_eq!(lines("crowd"), ["crowd", reason, "crowd", "crowd"]);
}

tests![
    a_program_that_fails_is_started_again,
    a_program_that_ends_well_stays_ended_and_the_box_goes_on,
    a_program_that_cannot_be_started_again_does_not_end_the_box
];
