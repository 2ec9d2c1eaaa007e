//! Updates: a box that runs is replaced by another one with the same name, options and published ports.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::scenario::{Scenario, Step, bake, tools};
use crate::schema::assert_fits;

/// The Boxfile of an agent that runs `script`, and is ready when its port accepts connections.
fn boxfile(name: &str, script: &str) -> String {
    format!(
        r##"box "{name}"
agent {{
    image "oci:images/business"
    entrypoint "/bin/sh" "-c" #"{script}"#
    port 4088
    health "tcp"
    limits memory="64MiB" pids=64
}}
vm cpus=1 memory="192MiB"
"##
    )
}

/// Serves its version from a directory in memory.
fn serving(version: &str) -> String {
    let script = format!(
        "echo {version} starts; mkdir -p /tmp/www; echo {version} >/tmp/www/index.html; exec httpd -f -p 127.0.0.1:4088 -h /tmp/www"
    );
    boxfile("hello", &script)
}

const NEVER: &str = "echo never ready; exec sleep 1000";

/// A client connects as often as it can while the box is updated. An update to a box that publishes no port closes the port.
const CLIENTS: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name hello -p 8080:4088 --startup-timeout 20 /v1
while [ ! -e /tmp/done ]; do wget -qO- http://127.0.0.1:8080/ || echo failed; usleep 20000; done >/tmp/answers 2>&1 & clients=$!
boxlaunch update -q hello /v2 2>&1 | sed 's/[0-9a-f]\{64\}/N/g'
sleep 0.2; touch /tmp/done; wait $clients
uniq /tmp/answers
boxlaunch ps -n; boxlaunch logs hello; boxlaunch ps -a -n | grep -c hello-; boxlaunch logs $(boxlaunch ps -a -n | grep hello-)
timeout 1 boxlaunch events --since 600s | cut -d' ' -f2- | sed 's/[0-9a-f]\{64\}/N/g; s/hello-..../hello-N/'
boxlaunch update hello /v2 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch port hello | grep -v sock
boxlaunch run -q -d --name port /ported; wget -qO- http://127.0.0.1:8083/
boxlaunch update -q port /v2 2>&1 | sed 's/[0-9a-f]\{64\}/N/g'
wget -qO- http://127.0.0.1:8083/ 2>&1; boxlaunch exec port -- wget -qO- http://127.0.0.1:4088/; boxlaunch port port | grep -c 8083
"#;
/// The new box does not become ready.
const KEPT: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name kept -p 8081:4088 --startup-timeout 2 /v1
boxlaunch update --json kept /never >/out/kept.json; echo $?
wget -qO- http://127.0.0.1:8081/; boxlaunch ps -n | grep kept
boxlaunch update kept /never 2>&1 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch update --retry kept /never 2>&1 | grep -v guest | tail -n 4 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch run -q --name front /v1 >/dev/null 2>&1 & for i in 1 2 3 4 5 6 7 8 9; do boxlaunch ps | grep front | grep -q running && break; sleep 0.3; done
boxlaunch update front /v2 2>&1 | head -n 1; boxlaunch rm -f front kept
"#;
/// A box with a volume is stopped first. If the new one does not become ready, the old one is started again.
const VOLUME: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name data --volume data:/data -p 8082:4088 --startup-timeout 2 /v1
boxlaunch exec data -- sh -c 'echo kept >/data/file'
boxlaunch update -q data /v2 | sed 's/[0-9a-f]\{64\}/N/g'; wget -qO- http://127.0.0.1:8082/; boxlaunch exec data cat /data/file
boxlaunch update --json data /never >/out/data.json; echo $?
wget -qO- http://127.0.0.1:8082/; boxlaunch exec data cat /data/file; boxlaunch inspect --json data >/out/record.json
boxlaunch rm -f data
"#;

type Ran = (BTreeMap<String, Step>, BTreeMap<PathBuf, Vec<u8>>);

/// Runs a script in a virtual host that has the boxes v1, v2 and never.
fn ran(seconds: u32, script: &str) -> Ran {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let boxes = [
        ("v1", serving("v1")),
        ("v2", serving("v2")),
        ("never", boxfile("hello", NEVER)),
        ("ported", serving("v1") + "publish 4088 host=8083\n"),
    ];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, text)| {
        let file = at(&format!("Boxfile.{name}"));
        fs::write(&file, text).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    Scenario::default().script(seconds, "it", script).start_for_files(&host)
}

fn json(ran: &Ran, name: &str) -> Value {
    serde_json::from_slice(&ran.1[Path::new(name)]).unwrap()
}

/// The client's answers are those of the old box, and then those of the new one: no connection is refused or cut off.
fn no_client_is_refused_while_a_box_is_updated() {
    let (steps, _) = ran(30, CLIENTS);
    let step = &steps["it"];
    insta::assert_snapshot!(step.stdout, @"
    hello
    hello is updated from sha256:N to sha256:N
    v1
    v2
    hello
    v2 starts
    1
    v1 starts
    start hello-N
    ready hello-N
    start hello
    ready hello
    updated hello from sha256:N to sha256:N
    end hello-N with 143
    hello is unchanged: sha256:N runs already
    4088/tcp of agent -> 127.0.0.1:8080
    port
    v1
    port is updated from sha256:N to sha256:N
    wget: can't connect to remote host (127.0.0.1): Connection refused
    v2
    0
    ");
}

fn a_box_goes_on_if_the_new_one_is_not_ready() {
    let ran = ran(25, KEPT);
    let step = &ran.0["it"];
    insta::assert_snapshot!(step.stdout, @"
    kept
    6
    v1
    kept
    error: kept was not updated: sha256:N did not become ready before
      = help: --retry tries it again
    error: the agent was not ready after 2 s; its health check: port 4088: Connection refused (os error 111)
    error: kept was not updated: sha256:N goes on
      = help: `boxlaunch ps -a` lists the start that failed, and `boxlaunch logs` has its output

    error: the run of front cannot be repeated: it was not started with `run --detach`, or an older boxlaunch has started it
    front
    kept
    ");
    let report = json(&ran, "kept.json");
    assert_fits("update", &report);
    assert_eq!(report["result"], "kept");
    let codes: Vec<_> = report["errors"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["startup-timeout", "not-updated"]);
    let said = report["errors"][0]["said"].to_string();
    assert!(said.contains("never ready"), "{said}");
}

fn a_box_with_a_volume_keeps_its_data_and_comes_back() {
    let ran = ran(25, VOLUME);
    let step = &ran.0["it"];
    insta::assert_snapshot!(step.stdout, @"
    data
    data is updated from sha256:N to sha256:N
    v2
    kept
    6
    v2
    kept
    data
    ");
    let (report, record) = (json(&ran, "data.json"), json(&ran, "record.json"));
    assert_fits("update", &report);
    assert_eq!(report["result"], "restored");
    assert_eq!((&record["box"], &record["updated"]["from"]), (&report["from"], &report["to"]));
}

tests![
    no_client_is_refused_while_a_box_is_updated,
    a_box_goes_on_if_the_new_one_is_not_ready,
    a_box_with_a_volume_keeps_its_data_and_comes_back
];
