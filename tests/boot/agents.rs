//! Agents in Python and in Node run commands in the business component. Hostile programs cannot block or end their box.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::debian::DebianImages;
use testbed::prerequisites::{Package, packages, with_program};

use crate::scenario::{Scenario, Step, bake, tools};

/// Calls box-exec sixteen times, and checks each call's input, both output streams, and the status.
const PYTHON: &str = r#"
import subprocess
done = 0
for i in range(16):
    run = subprocess.run(["/a3s/bin/box-exec", "-i", "sh", "-c", "cat; echo err >&2; exit $((%d %% 7))" % i],
        input=str(i), capture_output=True, text=True)
    done += (run.stdout, run.stderr, run.returncode) == (str(i), "err\n", i % 7)
print(done)
"#;
/// Makes the same calls in Node, eight at a time.
const NODE: &str = r#"
const { spawn } = require("child_process");
let next = 0, done = 0;
function start() {
    if (next === 16) return;
    const i = next++;
    const run = spawn("/a3s/bin/box-exec", ["-i", "sh", "-c", `cat; echo err >&2; exit ${i % 7}`]);
    let out = "", err = "";
    run.stdout.on("data", data => out += data);
    run.stderr.on("data", data => err += data);
    run.stdin.end(String(i));
    run.on("close", status => {
        done += out === String(i) && err === "err\n" && status === i % 7;
        if (done === 16) console.log(done);
        start();
    });
}
for (let i = 0; i < 8; i++) start();
"#;
/// Sends SIGSTOP to every new process of its user, also before the process has executed its program.
const STOPPER: &str = r#"
import os, signal
own = os.getpid()
known = {int(it) for it in os.listdir("/proc") if it.isdigit()}
print("ready", flush=True)
while True:
    for it in os.listdir("/proc"):
        if it.isdigit() and int(it) not in known and int(it) != own:
            try: os.kill(int(it), signal.SIGSTOP)
            except OSError: pass
"#;
/// Commands that the host runs in the agent's component end, although [`STOPPER`] stops their processes. `sleep` lives long enough to be
/// stopped; whether `true` is depends on the scheduler.
const STOPPED: &str = r#"
boxlaunch exec --in agent python -- python3 -c "$STOPPER" >/tmp/stopper & stopper=$!
until grep -q ready /tmp/stopper; do usleep 100000; done
for i in 1 2 3 4 5 6; do
    test $i -gt 4 && command='sleep 2' || command=true
    { boxlaunch exec --timeout 3 --in agent python $command 2>/dev/null; echo $?; } >/tmp/stopped-$i & pids="$pids $!"
done
wait $pids; cat /tmp/stopped-* | sort -u
kill -9 $stopper; wait $stopper; sleep 1
boxlaunch exec --in agent python echo again; boxlaunch exec python echo other; boxlaunch ps -n"#;
/// Opens files until the VM's kernel refuses more.
const HOLDER: &str = r#"
const fs = require("fs"), files = [];
try { for (;;) files.push(fs.openSync("/dev/null")); } catch (error) { console.log(error.code, files.length > 10000); }
setTimeout(() => {}, 1e9);
"#;
/// Clients connect to the agent while [`HOLDER`] runs. The box survives, and serves clients after the end of [`HOLDER`].
const FILES: &str = r#"
boxlaunch exec node -- node -e "$HOLDER" >/tmp/holder & holder=$!
until test -s /tmp/holder; do usleep 100000; done; cat /tmp/holder
socket=$(boxlaunch -q port node)
for i in 1 2 3 4 5; do timeout 2 curl --silent --max-time 1 --unix-socket $socket http://box/ >/dev/null; done
kill -9 $holder; wait $holder; sleep 1
curl --silent --unix-socket $socket http://box/; echo; boxlaunch exec node echo there; boxlaunch ps -n"#;
/// An agent in Node that answers each HTTP request with `served`.
const SERVER: &str =
    "require('http').createServer((_, to) => to.end('served')).listen(4088, '127.0.0.1')";

fn component(name: &str, image: &Path, rest: &str) -> String {
    let image = image.display();
    format!("{name} {{\n    image \"oci:{image}\"\n    limits memory=\"256MiB\"\n    {rest}\n}}\n")
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let say = &mut |line: &str| println!("{line}");
    let DebianImages { agent: python, business: node, .. } =
        DebianImages::make(&tools.workspace, say).unwrap();
    packages(&[Package::Curl], say).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let server = format!("entrypoint \"node\" \"-e\" \"{SERVER}\"");
    let user = "user \"nobody\"\n    workdir \"/tmp\"\n    health \"http\" path=\"/health\"";
    let curl = Path::new("/usr/bin/curl");
    let mut host = with_program(tools.host.clone().memory(2048), curl, "/bin/curl").unwrap();
    for (name, text) in [
        ("python", component("agent", &python, user) + &component("business", &node, "")),
        ("node", component("agent", &node, &server) + &component("business", &node, "")),
    ] {
        let (boxfile, bundle) = (dir.path().join(name), dir.path().join(format!("{name}.box")));
        fs::write(&boxfile, format!("box \"{name}\"\n{text}vm cpus=1 memory=\"768MiB\"\n"))
            .unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        host = host.disk(bundle, format!("/{name}"));
    }
    let with = |name: &str, value: &str, script: &str| {
        format!("{name}=$(cat <<'END'\n{value}\nEND\n)\n{script}")
    };
    let run = |name: &str| format!("boxlaunch run -d --name {name} /{name}");
    Scenario::default()
        .script(60, "start", &["python", "node"].map(run).join("\n"))
        .script(
            60,
            "python",
            &with("PROGRAM", PYTHON, "boxlaunch exec --in agent python -- python3 -c \"$PROGRAM\""),
        )
        .script(
            60,
            "node",
            &with("PROGRAM", NODE, "boxlaunch exec --in agent node -- node -e \"$PROGRAM\""),
        )
        .script(60, "stopped", &with("STOPPER", STOPPER, STOPPED))
        .script(60, "files", &with("HOLDER", HOLDER, FILES))
        .start(&host)
});

#[track_caller]
fn lines(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step.stdout.lines().collect()
}

fn an_agent_in_python_runs_sixteen_commands() {
    assert_eq!(lines("start"), ["python", "node"]);
    assert_eq!(lines("python"), ["16"]);
}

fn an_agent_in_node_runs_sixteen_commands() {
    assert_eq!(lines("node"), ["16"]);
}

fn who_stops_new_processes_keeps_nobody_waiting() {
    let lines = lines("stopped");
    let (statuses, rest) = lines.split_at(lines.len() - 4);
    // 0 if `true` is stopped too late, 124 or 137 if it is killed, and 126 if it is stopped before its execution.
    assert!(statuses.iter().all(|it| ["0", "124", "126", "137"].contains(it)), "{lines:?}");
    assert!(statuses.contains(&"124"), "{lines:?}");
    assert_eq!(rest, ["again", "other", "node", "python"]);
}

fn who_holds_all_files_ends_nobody_else() {
    assert_eq!(lines("files"), ["ENFILE true", "served", "there", "node", "python"]);
}

tests![
    an_agent_in_python_runs_sixteen_commands,
    an_agent_in_node_runs_sixteen_commands,
    who_stops_new_processes_keeps_nobody_waiting,
    who_holds_all_files_ends_nobody_else
];
