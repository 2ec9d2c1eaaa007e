//! Root of a component succeeds in none of 70 attempts to get out of the component. A component does not see the other one's IPC
//! objects, and still answers while the other one uses all the CPU time, processes and memory that it can get.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::promises::COMPONENT_ATTEMPTS;
use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, Step, bake, tools};

const BOXFILE: &str = r#"box "isolated"
agent {
    image "oci:image"
    health "none"
    limits memory="64MiB" pids=32
}
business {
    image "oci:image"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;

/// Starts a web server on the virtual host that no box may reach.
const SERVE: &str =
    "ifconfig lo 127.0.0.1; mkdir -p /tmp/www; echo host >/tmp/www/index.html; httpd -p 127.0.0.1:8099 -h /tmp/www
wget -qO- http://127.0.0.1:8099/; ls -l /dev/kvm | cut -c1";
/// Makes IPC objects in the agent's component, and looks for them in both components.
const IPC: &str = "boxlaunch exec --in agent red /red-team ipc make; boxlaunch exec --in agent red /red-team ipc seek
echo other; boxlaunch exec red /red-team ipc seek";
/// Uses as much CPU time, processes and memory as possible in the business component, while the agent's component answers.
const EXHAUST: &str = "boxlaunch exec red /red-team burn & burning=$!
boxlaunch exec red /red-team multiply; boxlaunch exec red /red-team hoard; echo $?
boxlaunch exec --in agent red /red-team ipc seek | head -n 1
kill $burning; boxlaunch exec red /red-team probe | wc -l";

/// Returns an image with the hostile program and two device nodes: `/dev/null` and `/dev/kmsg`.
fn image(program: &Path) -> Image {
    let layer = Layer::new()
        .dir("/tmp", 0o1777)
        .dir("/nodes", 0o755)
        .device("/nodes/null", 0o666, 1, 3)
        .device("/nodes/kmsg", 0o666, 1, 11)
        .file("/red-team", 0o755, fs::read(program).unwrap());
    let entrypoint = ["/red-team", "wait"].map(str::to_owned).to_vec();
    Image::new(Config { entrypoint, ..Config::default() }).with(layer.to_tar())
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("isolated.box"));
    let image = image(&tools.programs.red_team);
    image.write_layout(&dir.path().join("image"), "latest", Compression::Gzip).unwrap();
    fs::write(&boxfile, BOXFILE).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    Scenario::default()
        .script(10, "serve", SERVE)
        .step("run", "boxlaunch run -d --name red --agent-socket /tmp/host.sock /isolated")
        .step("socket", "stat -c %F /tmp/host.sock")
        .step("agent", "boxlaunch exec --in agent red /red-team probe")
        .step("business", "boxlaunch exec red /red-team probe")
        .script(30, "ipc", IPC)
        .script(60, "exhaust", EXHAUST)
        .start(&tools.host.clone().file(&bundle, "/isolated"))
});

fn lines(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step.stdout.lines().collect()
}

/// Checks that all attempts in `component` are refused, and that each layer refuses at least one.
fn assert_all_refused(component: &str) {
    let mut by_layer = BTreeMap::<&str, usize>::new();
    let lines = lines(component);
    for line in &lines {
        let [_, layer, outcome, _] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line:?}");
        };
        assert_eq!(outcome, "refused", "{line}");
        *by_layer.entry(layer).or_default() += 1;
    }
    COMPONENT_ATTEMPTS.check(lines.len() as f64);
    let layers: Vec<_> = by_layer.into_keys().collect();
    assert_eq!(layers, ["capability", "filter", "init", "machine", "mount", "namespace"]);
}

#[test]
fn root_of_the_agent_succeeds_in_nothing() {
    assert_all_refused("agent");
}

#[test]
fn root_of_the_business_application_succeeds_in_nothing() {
    assert_all_refused("business");
}

#[test]
fn what_is_tried_is_there_on_the_host() {
    assert_eq!(lines("serve"), ["host", "c"], "a port to connect to, and a KVM");
    assert_eq!(lines("socket"), ["socket"]);
}

#[test]
fn ipc_of_one_component_is_not_seen_by_the_other() {
    let kinds = ["memory", "semaphores", "messages", "queue"];
    let there = kinds.map(|kind| format!("{kind} there"));
    let missing = kinds.map(|kind| format!("{kind} ENOENT"));
    let expected = [&there[..], &there, &["other".to_owned()], &missing].concat();
    assert_eq!(lines("ipc"), expected);
}

#[test]
fn who_takes_everything_stops_nobody_else() {
    let lines = lines("exhaust");
    let [processes, killed, answer, attempts] = lines[..] else { panic!("{lines:?}") };
    let processes: u32 = processes.parse().unwrap();
    assert!((8..32).contains(&processes), "{processes} processes were started");
    assert_eq!((killed, answer), ("137", "memory there"));
    assert_eq!(attempts, COMPONENT_ATTEMPTS.number.to_string(), "the component itself lives, too");
}
