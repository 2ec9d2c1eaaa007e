//! Declarations of a Boxfile in TOML take effect in the guest: a program of the checkout as the agent, variables from files,
//! another user, and resource limits.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, assert_ready, bake, tools};

const BOXFILE: &str = r#"
box = "language"
vm = { cpus = 1, memory = "256MiB" }
budget = { total = "2s" }

[agent]
kind = "local_binary"
binary = "bin/agent"
health = { kind = "http", path = "/health" }
limits = { memory = "64MiB", pids = 32 }

[business]
image = "oci:images/business"
env-file = ["first.env", "second.env"]
env = { OVER = "the Boxfile" }
user = "1000:100"
rlimits = { nofile = 64, core = "0B", cpu = "60s" }
limits = { memory = "64MiB", pids = 32 }

"#;

/// Prints the resource limits, the user, and the variables of its process, then the agent's health.
const LOOK: &str = "ulimit -n; grep -E 'core file|cpu time' /proc/self/limits; id -u; id -g; \
    echo $FIRST $SECOND $OVER; wget -qO- http://127.0.0.1:4088/health";

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &path("images")).unwrap();
    fs::create_dir(path("bin")).unwrap();
    fs::copy(&tools.programs.hello_agent, path("bin/agent")).unwrap();
    fs::write(path("first.env"), "FIRST=1\nSECOND=1\nOVER=1\n").unwrap();
    fs::write(path("second.env"), "# over the first\nSECOND='2'\n").unwrap();
    fs::write(path("Boxfile.toml"), BOXFILE).unwrap();
    let bundle = path("language.box");
    bake(&path("Boxfile.toml"), &tools.programs.box_init, &bundle);
    let host = tools.host.clone().file(&bundle, "/language");
    Scenario::default()
        .step("verify", "boxlaunch verify /language")
        .step("inspect", "boxlaunch inspect /language")
        .run("look", "/language", LOOK)
        .start(&host)
});

fn declarations_take_effect_in_the_guest() {
    let inspected = &STEPS["inspect"].stdout;
    assert!(inspected.contains("user        1000:100"), "{inspected}");
    let step = &STEPS["look"];
    assert_eq!(step.status, 0, "{step:?}");
    let report = step.json();
    assert_ready(&report);
    let lines: Vec<_> = report["command"]["stdout"].as_str().unwrap().lines().collect();
    assert_eq!(lines[0], "64");
    let limits: Vec<Vec<&str>> =
        lines[1..3].iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(limits[0][..5], ["Max", "cpu", "time", "60", "60"]);
    assert_eq!(limits[1][..6], ["Max", "core", "file", "size", "0", "0"]);
    assert_eq!(lines[3..5], ["1000", "100"]);
    assert_eq!(lines[5], "1 2 the Boxfile");
    assert!(lines[6].contains("HEALTHY"), "{lines:?}");
}

tests![declarations_take_effect_in_the_guest];
