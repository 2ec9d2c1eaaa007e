//! Root of a component succeeds in none of 70 attempts to get out of the component. A component does not see the other one's IPC
//! objects, and still answers while the other one uses all the CPU time, processes and memory that it can get. It sees the files of
//! its image, those that the box adds, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
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
/// Uses as much CPU time as possible in both components for a third of a second. Then uses as much CPU time, processes and memory as
/// possible in the business component, while the agent's component answers.
const EXHAUST: &str = "boxlaunch exec red /red-team burn >/tmp/business & burning=$!
boxlaunch exec --in agent red /red-team burn >/tmp/agent & other=$!
until grep -qs burning /tmp/business && grep -qs burning /tmp/agent; do usleep 10000; done
boxlaunch stats --json red; usleep 300000; boxlaunch stats --json red; kill $other
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

/// The results of the commands, and the list of the box's files.
static RAN: LazyLock<(BTreeMap<String, Step>, Value)> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("isolated.box"));
    let image = image(&tools.programs.red_team);
    image.write_layout(&dir.path().join("image"), "latest", Compression::Gzip).unwrap();
    fs::write(&boxfile, BOXFILE).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let listed =
        Command::new(&tools.programs.boxbuild).args(["ls", "--json"]).arg(&bundle).output();
    let files = serde_json::from_slice(&listed.unwrap().stdout).unwrap();
    let steps = Scenario::default()
        .anew()
        .script(10, "serve", SERVE)
        .step("run", "boxlaunch run -d --name red --agent-socket /tmp/host.sock /isolated")
        .step("socket", "stat -c %F /tmp/host.sock")
        .step("agent-files", "boxlaunch exec --in agent red /red-team list / /dev")
        .step("business-files", "boxlaunch exec red /red-team list / /dev")
        .step("agent", "boxlaunch exec --in agent red /red-team probe")
        .step("business", "boxlaunch exec red /red-team probe")
        .script(30, "ipc", IPC)
        .script(60, "exhaust", EXHAUST)
        .start(&tools.host.clone().file(&bundle, "/isolated"));
    (steps, files)
});

fn lines(name: &str) -> Vec<&'static str> {
    let step = &RAN.0[name];
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

fn root_of_the_agent_succeeds_in_nothing() {
    assert_all_refused("agent");
}

fn root_of_the_business_application_succeeds_in_nothing() {
    assert_all_refused("business");
}

/// The mount points in a component's root.
const MOUNTS: [&str; 5] = ["/a3s/bin/box-exec", "/a3s/run/box-exec.sock", "/dev", "/proc", "/sys"];
/// The devices of a component, with their types.
const DEVICES: [&str; 13] = [
    "c /dev/full",
    "c /dev/null",
    "c /dev/random",
    "c /dev/tty",
    "c /dev/urandom",
    "c /dev/zero",
    "l /dev/fd",
    "l /dev/ptmx",
    "l /dev/stderr",
    "l /dev/stdin",
    "l /dev/stdout",
    "mount /dev/pts",
    "mount /dev/shm",
];

/// Returns the lines of `red-team list /` for a component that sees the files of its image, those that the box adds, and no others.
/// The box adds files as a layer above the image.
fn declared(component: &str) -> BTreeSet<String> {
    let layers = [format!("/roots/{component}/"), format!("/boxbuild/system/{component}/")];
    let entries = RAN.1["entries"].as_array().unwrap();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap().to_owned();
    let line = |entry: &Value, path: &str| {
        if MOUNTS.contains(&path) {
            return format!("mount {path}");
        }
        let kind = match &*text(entry, "type") {
            "directory" => 'd',
            "file" => '-',
            "char-device" => 'c',
            kind => panic!("{kind}"),
        };
        format!("{kind}{} {path}", text(entry, "mode"))
    };
    let below = |layer: &String| {
        let path = |entry: &Value| Some(format!("/{}", text(entry, "path").strip_prefix(layer)?));
        let found = entries.iter().filter_map(|it| path(it).map(|path| (path, it)));
        found.map(|(path, it)| (path.clone(), line(it, &path))).collect::<BTreeMap<_, _>>()
    };
    layers.iter().flat_map(below).collect::<BTreeMap<_, _>>().into_values().collect()
}

fn a_component_sees_its_image_what_the_box_adds_and_nothing_else() {
    for component in ["agent", "business"] {
        let lines = lines(&format!("{component}-files"));
        let (devices, root): (Vec<&str>, Vec<&str>) =
            lines.into_iter().partition(|line| line.contains(" /dev/"));
        let root: BTreeSet<String> = root.into_iter().map(str::to_owned).collect();
        assert_eq!(root, declared(component));
        assert!(root.contains("-0755 /red-team") && root.contains("mount /dev"), "{root:?}");
        // The mode of a device is not declared.
        let shown = |line: &str| match line.split_once(' ').unwrap() {
            ("mount", path) => format!("mount {path}"),
            (kind, path) => format!("{} {path}", &kind[..1]),
        };
        let devices: BTreeSet<String> = devices.into_iter().map(shown).collect();
        assert_eq!(devices, BTreeSet::from(DEVICES.map(str::to_owned)));
    }
}

fn what_is_tried_is_there_on_the_host() {
    assert_eq!(lines("serve"), ["host", "c"], "a port to connect to, and a KVM");
    assert_eq!(lines("socket"), ["socket"]);
}

fn ipc_of_one_component_is_not_seen_by_the_other() {
    let kinds = ["memory", "semaphores", "messages", "queue"];
    let there = kinds.map(|kind| format!("{kind} there"));
    let missing = kinds.map(|kind| format!("{kind} ENOENT"));
    let expected = [&there[..], &there, &["other".to_owned()], &missing].concat();
    assert_eq!(lines("ipc"), expected);
}

fn who_takes_everything_stops_nobody_else() {
    let lines = lines("exhaust");
    let [_, _, processes, killed, answer, attempts] = lines[..] else { panic!("{lines:?}") };
    let processes: u32 = processes.parse().unwrap();
    assert!((8..32).contains(&processes), "{processes} processes were started");
    assert_eq!((killed, answer), ("137", "memory there"));
    assert_eq!(attempts, COMPONENT_ATTEMPTS.number.to_string(), "the component itself lives, too");
}

/// The CPU weight of the agent is 20 and that of the business application 39, because the Boxfile declares none.
fn busy_components_share_a_cpu_by_their_weights() {
    let lines = lines("exhaust");
    let [before, after] = [0, 1].map(|at| serde_json::from_str::<Value>(lines[at]).unwrap());
    let time = |stats: &Value, component: &str| {
        let components = stats["boxes"][0]["components"].as_array().unwrap();
        let found = components.iter().find(|it| it["component"] == component).unwrap();
        found["cpu_us"].as_f64().unwrap()
    };
    let [agent, business] = ["agent", "business"].map(|it| time(&after, it) - time(&before, it));
    let ratio = business / agent;
    println!("{agent} and {business} microseconds, ratio {ratio:.2}");
    assert!(agent + business > 200_000.0, "both are busy: {agent} and {business}");
    assert!((1.6..2.4).contains(&ratio), "{ratio}, and not 39 to 20");
}

tests![
    root_of_the_agent_succeeds_in_nothing,
    root_of_the_business_application_succeeds_in_nothing,
    a_component_sees_its_image_what_the_box_adds_and_nothing_else,
    what_is_tried_is_there_on_the_host,
    ipc_of_one_component_is_not_seen_by_the_other,
    who_takes_everything_stops_nobody_else,
    busy_components_share_a_cpu_by_their_weights
];
