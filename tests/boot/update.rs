//! Updates: a box that runs is replaced by another one with the same name, options and published ports.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;

use crate::scenario::{Ran, Scenario, bake, tools};
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

/// Serves its version from a directory in memory, at two ports.
fn serving(version: &str) -> String {
    let script = format!(
        "echo {version} starts; mkdir -p /tmp/www; echo {version} >/tmp/www/index.html; httpd -p 127.0.0.1:4089 -h /tmp/www; exec httpd -f -p 127.0.0.1:4088 -h /tmp/www"
    );
    boxfile("hello", &script)
}

const NEVER: &str = "echo never ready; exec sleep 1000";

/// A client connects as often as it can while the box is updated. An update to a box that declares no port closes the declared port.
const CLIENTS: &str = r#"
ifconfig lo 127.0.0.1 up
boxlaunch run -q -d --name hello -p 8080:4088 --startup-timeout 2 /v1; wget -qO- http://127.0.0.1:8083/
while [ ! -e /tmp/done ]; do wget -qO- http://127.0.0.1:8080/ || echo failed; usleep 20000; done >/tmp/answers 2>&1 & clients=$!
boxlaunch update -q hello /v2 2>&1 | sed 's/[0-9a-f]\{64\}/N/g'
sleep 0.2; touch /tmp/done; wait $clients
uniq /tmp/answers
boxlaunch ps -n; boxlaunch logs hello; boxlaunch ps -a -n | grep -c hello-; boxlaunch logs $(boxlaunch ps -a -n | grep hello-)
timeout 1 boxlaunch events --since 600s | cut -d' ' -f2- | sed 's/[0-9a-f]\{64\}/N/g; s/hello-..../hello-N/'
boxlaunch update hello /v2 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch port hello | grep -v sock
wget -qO- http://127.0.0.1:8083/ 2>&1; boxlaunch exec hello -- wget -qO- http://127.0.0.1:4089/
"#;
/// Then a new box does not become ready.
const KEPT: &str = r#"
boxlaunch update --json hello /never >/out/kept.json; echo $?
wget -qO- http://127.0.0.1:8080/; boxlaunch ps -n
boxlaunch update hello /never 2>&1 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch update --retry hello /never 2>&1 | grep -v guest | tail -n 4 | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch rm -f hello
"#;
/// A box with a volume is stopped first. If the new one does not become ready, the old one is started again.
const VOLUME: &str = r#"
boxlaunch run -q -d --name data --volume data:/data -p 8082:4088 --startup-timeout 2 /v1
boxlaunch exec data -- sh -c 'echo kept >/data/file'
boxlaunch update -q data /v2 | sed 's/[0-9a-f]\{64\}/N/g'; wget -qO- http://127.0.0.1:8082/; boxlaunch exec data cat /data/file
boxlaunch update --json data /never >/out/data.json; echo $?
wget -qO- http://127.0.0.1:8082/; boxlaunch exec data cat /data/file; boxlaunch inspect --json data >/out/record.json
boxlaunch rm -f data
"#;

/// A box that asks for more is refused with what it asks for, and the box with less replaces the one with more.
const ASKED: &str = r#"
boxlaunch run -q -d --name asked --startup-timeout 2 /v2; was=$(boxlaunch ps -a -n)
for more in host port volume secret; do boxlaunch update -q asked /$more 2>&1; echo $?; done | sed 's/[0-9a-f]\{64\}/N/g'
[ "$was" = "$(boxlaunch ps -a -n)" ] && echo the same
boxlaunch update -q --accept asked /host | sed 's/[0-9a-f]\{64\}/N/g'
boxlaunch update asked /v2 2>&1 | grep -A3 'other things' | sed 's/[0-9a-f]\{64\}/N/g'; boxlaunch exec asked -- wget -qO- http://127.0.0.1:4089/
boxlaunch rm -f asked
"#;

/// Runs the scripts in a virtual host that has the boxes v1, v2, never, and four that ask for more than v2. Only v1 declares a port.
static RAN: LazyLock<Ran> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    let boxes = [
        ("v1", serving("v1") + "publish 4089 host=8083\n"),
        ("v2", serving("v2")),
        ("never", boxfile("hello", NEVER)),
        ("host", serving("host") + "network \"filtered\" { allow \"a.example\"; }\n"),
        ("port", serving("port") + "publish 4089\n"),
        ("volume", serving("volume") + "volume \"data\" guest=\"/data\"\n"),
        ("secret", serving("secret") + "secret \"KEY\"\n"),
    ];
    let host = boxes.into_iter().fold(tools.host.clone(), |host, (name, text)| {
        let file = at(&format!("Boxfile.{name}"));
        fs::write(&file, text).unwrap();
        bake(&file, &tools.programs.box_init, &at(name));
        host.file(at(name), format!("/{name}"))
    });
    let scenario = Scenario::default().script(30, "clients", CLIENTS);
    let scenario = scenario.script(25, "kept", KEPT).script(25, "volume", VOLUME);
    scenario.script(25, "asked", ASKED).start_for_files(&host)
});

fn json(name: &str) -> Value {
    serde_json::from_slice(&RAN.1[Path::new(name)]).unwrap()
}

/// The client's answers are those of the old box, and then those of the new one: no connection is refused or cut off.
fn no_client_is_refused_while_a_box_is_updated() {
    insta::assert_snapshot!(RAN.0["clients"].stdout, @"
    hello
    v1
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
    wget: can't connect to remote host (127.0.0.1): Connection refused
    v2
    ");
}

fn a_box_goes_on_if_the_new_one_is_not_ready() {
    insta::assert_snapshot!(RAN.0["kept"].stdout, @"
    6
    v2
    hello
    error: hello was not updated: sha256:N did not become ready before
      = help: --retry tries it again
    error: the agent was not ready after 2 s; its health check: port 4088: Connection refused (os error 111)
    error: hello was not updated: sha256:N goes on
      = help: `boxlaunch ps -a` lists the start that failed, and `boxlaunch logs` has its output

    hello
    ");
    let report = json("kept.json");
    assert_fits("update", &report);
    assert_eq!(report["result"], "kept");
    let codes: Vec<_> = report["errors"].as_array().unwrap().iter().map(|it| &it["code"]).collect();
    assert_eq!(codes, ["startup-timeout", "not-updated"]);
    let said = report["errors"][0]["said"].to_string();
    assert!(said.contains("never ready"), "{said}");
}

fn a_box_with_a_volume_keeps_its_data_and_comes_back() {
    insta::assert_snapshot!(RAN.0["volume"].stdout, @"
    data
    data is updated from sha256:N to sha256:N
    v2
    kept
    6
    v2
    kept
    data
    ");
    let (report, record) = (json("data.json"), json("record.json"));
    assert_fits("update", &report);
    assert_eq!(report["result"], "restored");
    assert_eq!((&record["box"], &record["updated"]["from"]), (&report["from"], &report["to"]));
}

fn a_box_that_asks_for_more_is_refused_and_one_with_less_is_not() {
    let output = &RAN.0["asked"].stdout;
    let refused = |what: &str| output.lines().any(|it| it.starts_with(&format!("  {what}: - → ")));
    for what in ["network allow", "publish 4089", "volume data", "secret KEY"] {
        assert!(refused(what), "{what}: {output}");
    }
    assert_eq!(output.lines().filter(|it| *it == "2").count(), 4, "{output}");
    assert!(output.contains("the same\nasked is updated from sha256:N to sha256:N\n"), "{output}");
    assert!(output.contains("(allows less)"), "{output}");
    assert!(output.ends_with("v2\nasked\n"), "{output}");
}

tests![
    no_client_is_refused_while_a_box_is_updated,
    a_box_goes_on_if_the_new_one_is_not_ready,
    a_box_with_a_volume_keeps_its_data_and_comes_back,
    a_box_that_asks_for_more_is_refused_and_one_with_less_is_not
];
