//! `run --restart`: a box that has failed is started again by its own supervisor.

use std::path::Path;

use serde_json::Value;
use testbed::hello;

use crate::scenario::{Scenario, UNHURRIED, bake, tools};

/// The Boxfile of an agent whose port accepts connections, and whose main program runs `script` meanwhile.
fn boxfile(script: &str) -> String {
    format!(
        r##"box "restarted"
agent {{
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" #"echo starts; mkdir -p /tmp/www; echo served >/tmp/www/index.html; httpd -p 127.0.0.1:4088 -h /tmp/www; {script}"#
    port 4088
    health "tcp"
    limits memory="64MiB" pids=64
}}
vm cpus=1 memory="192MiB"
"##
    )
}

/// Waits until the status of a box has the text of the second argument.
const WAIT: &str = r#"until_() { for i in $(seq 200); do boxlaunch ps -a | grep "^$1 " | grep -q "$2" && return; sleep 0.1; done; echo "$1: no $2"; boxlaunch ps -a; }
ifconfig lo 127.0.0.1 up
"#;
/// The agent fails one second after it was ready.
const FAILING: &str = r#"
boxlaunch run -q -d --name failing -p 8080:4088 --restart on-failure:2 /failing
until_ failing 'starting again: its agent ended with status 3'; until_ failing ', 1 restart'
wget -qO- http://127.0.0.1:8080/
until_ failing 'ended with 3'
boxlaunch inspect --json failing >/out/failing.json; boxlaunch logs failing
timeout 1 boxlaunch events --since 600s | cut -d' ' -f2- | sed 's/sha256:[0-9a-f]*/N/'
"#;
/// A box that waits for its next start is stopped, and one that runs is killed: none comes back.
const STOPPED: &str = r#"
boxlaunch run -q -d --name waiting --restart on-failure /failing; until_ waiting 'starting again'
boxlaunch stop waiting; boxlaunch ps -a | grep -o 'waiting .* ended with 3'  | cut -d' ' -f1
boxlaunch run -q -d --name killed --restart unhealthy /healthy; boxlaunch kill killed; sleep 3; boxlaunch ps -n
"#;
/// The check of the agent fails once its server has gone. The box that was started again does not come back when it is stopped.
const SICK: &str = r#"
boxlaunch run -q -d --name sick -p 8081:4088 --restart unhealthy --health-interval 1 /healthy
boxlaunch exec sick killall httpd; until_ sick ', 1 restart'; wget -qO- http://127.0.0.1:8081/
boxlaunch inspect --json sick >/out/sick.json; boxlaunch stop sick; sleep 3; boxlaunch ps -n
"#;
/// A box that nobody uses ends by itself, also while a client is attached to another one. That client uses its box.
const IDLE: &str = r#"
boxlaunch run -q -d --name idle --idle 3s --grace 1 /healthy; boxlaunch attach idle >/dev/null 2>&1 & client=$!
boxlaunch run -q -d --name unused --idle 1s --grace 1 /healthy; until_ unused stopped
sleep 4; boxlaunch ps -n; kill $client; until_ idle 'ended\|stopped'; echo "runs: $(boxlaunch ps -n)"
boxlaunch ps -a | grep '^idle\|^unused' | grep -o 'stopped .*' | sed 's/[0-9]* second.* ago/N seconds ago/'
boxlaunch inspect --json idle | grep -o '"stopped_by":"idle"'
"#;
/// While a box waits for its restart, a share has become a link to a directory that it may not see.
const LED_AWAY: &str = r#"
mkdir -p /tmp/led/project/notes /tmp/led/keys
boxlaunch run -q -d --name led -v /tmp/led/project:/w:rw -v /tmp/led/project/notes:/notes --restart on-failure /failing
boxlaunch exec led -- sh -c 'rmdir /w/notes; ln -s ../keys /w/notes'
until_ led 'failed'; boxlaunch ps -n; boxlaunch inspect led | grep -o 'would see /tmp/led/keys of this host at /notes'
"#;

fn a_box_that_fails_is_started_again_until_somebody_stops_it() {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let boxes = [("failing", "sleep 1; exit 3"), ("healthy", "exec sleep 1000")];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, script)| {
        let file = at(&format!("Boxfile.{name}"));
        std::fs::write(&file, boxfile(script)).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    let scripts = [
        ("failing", FAILING),
        ("stopped", STOPPED),
        ("sick", SICK),
        ("idle", IDLE),
        ("led-away", LED_AWAY),
    ];
    let scenario = scripts.into_iter().fold(Scenario::default(), |scenario, (name, script)| {
        scenario.script(UNHURRIED, name, &format!("{WAIT}{script}"))
    });
    let (steps, files) = scenario.start_for_files(&host);
    let record = |name: &str| -> Value { serde_json::from_slice(&files[Path::new(name)]).unwrap() };
    let restarted = |name: &str| record(name)["restarted"].clone();
    for name in ["failing", "stopped", "sick"] {
        insta::assert_snapshot!(name, steps[name].stdout);
    }
    insta::assert_snapshot!(steps["idle"].stdout, @r#"
    idle
    unused
    idle
    runs: 
    stopped N seconds ago: nobody used it
    stopped N seconds ago: nobody used it
    "stopped_by":"idle"
    "#);
    insta::assert_snapshot!(steps["led-away"].stdout, @"
    led
    would see /tmp/led/keys of this host at /notes
    ");
    assert_eq!(restarted("failing.json")["count"], 2);
    assert_eq!(restarted("failing.json")["reason"], "its agent ended with status 3");
    let reason = restarted("sick.json")["reason"].to_string();
    assert!(reason.contains("the agent was unhealthy: port 4088: Connection refused"), "{reason}");
}

tests![a_box_that_fails_is_started_again_until_somebody_stops_it];
