//! A running box as the host sees and controls it: health, resources, port, events, clock, and stop signal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use testbed::hello::TAG;
use testbed::prerequisites::{Package, packages, with_program};
use testbed::program;
use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};
use crate::schema::assert_fits;

/// The agent is healthy, hangs, and is healthy again. The business application is healthy once it listens.
const HEALTH: &str = "boxlaunch events --json >/tmp/events & echo $! >/tmp/watching; boxlaunch events >/tmp/lines &
sleep 0.5; boxlaunch run -d --name watched /watched
boxlaunch health watched; echo $?; boxlaunch health --json watched
boxlaunch health --in business watched; echo $?
boxlaunch exec watched -- httpd -p 8080 -h /workspace; boxlaunch health --in business watched; echo $?
boxlaunch exec watched -- sh -c 'kill $(pidof httpd)'; boxlaunch health --json --in business watched
boxlaunch kill -s STOP watched; boxlaunch health --timeout 3 watched; echo $?
boxlaunch kill -s CONT watched; boxlaunch health watched";
/// Health checks that run a program. Then the supervisor is killed.
const PROGRAMS: &str = "boxlaunch run -d --name checked /checked
boxlaunch health --in business checked; boxlaunch exec checked touch /tmp/well; boxlaunch health --in business checked
boxlaunch exec checked -- sh -c 'echo slow >/tmp/well'; boxlaunch health --timeout 1 --in business checked
kill -9 $(boxlaunch inspect --json checked | sed 's/.*\"supervisor\":\\([0-9]*\\).*/\\1/')";
/// Prints the resources of a box before and after a component writes a file, starts two processes and uses CPU time.
const STATS: &str = "boxlaunch stats --json watched
boxlaunch exec watched -- sh -c 'head -c 5000000 /dev/zero >/tmp/five; sleep 1000 & sleep 1000 & i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'
boxlaunch stats --json; boxlaunch stats watched | sed 's/  */ /g' | cut -d' ' -f1-2; boxlaunch stats nobody; echo $?";
/// Asks a stopped VM for its resources, and asks again after it has continued.
const STOPPED: &str = "kill -STOP $(boxlaunch inspect --json watched | sed 's/.*\"vmm\":\\([0-9]*\\),\"protocol.*/\\1/')
boxlaunch stats watched; echo $?
kill -CONT $(boxlaunch inspect --json watched | sed 's/.*\"vmm\":\\([0-9]*\\),\"protocol.*/\\1/'); boxlaunch stats watched >/dev/null; echo $?";
/// Prints the port of the agent, and tests its socket on the host.
const PORT: &str = "boxlaunch port watched | sed 's,/tmp.*/,/,'; test -S $(boxlaunch -q port watched) && echo socket";
/// Sets the host's clock forward and back, and prints how far the guest's clock differs from it, in seconds. The box then ends.
const CLOCK: &str = "seconds() { boxlaunch exec watched date +%s; }
before=$(date +%s); echo $(($(seconds) - before))
for time in 2000000000 1500000000; do date -s @$time >/dev/null; sleep 0.5; echo $(($(seconds) - time)); done
date -s @$before >/dev/null; boxlaunch stop watched >/dev/null; sleep 0.3; boxlaunch rm watched >/dev/null; sleep 0.3";
/// Prints the events of three boxes: `watched` is stopped and removed, the supervisor of `checked` was killed, and the agent of `three`
/// exceeds its memory limit.
const EVENTS: &str = "sleep 2; boxlaunch run --name three /hungry >/dev/null 2>&1; sleep 0.3
kill $(cat /tmp/watching); cat /tmp/events; cut -d' ' -f2- /tmp/lines >&2
boxlaunch inspect three; boxlaunch events --since 1h --json >/tmp/past & sleep 1; kill $!; wc -l </tmp/past
boxlaunch rm -f checked; boxlaunch health checked; echo $?";
/// Stops a box whose agent's image has the stop signal SIGQUIT.
const SIGNAL: &str =
    "boxlaunch run -d --name polite /polite; boxlaunch exec polite -- sleep 1000 & pid=$!
sleep 1; boxlaunch stop polite; wait $pid; echo $?; boxlaunch logs polite";

/// A client of the agent that reads nothing blocks neither the box nor other clients, and is disconnected in the end.
const STALLED: &str = "boxlaunch run -d --name flood /flood; socket=$(boxlaunch -q port flood)
mkfifo /tmp/pipe; { sleep 14; cat >/dev/null; } </tmp/pipe & reader=$!
curl --silent --no-buffer --http0.9 --unix-socket $socket http://x >/tmp/pipe & stalled=$!
sleep 1; for i in 1 2 3; do timeout 5 boxlaunch exec flood echo $i; done
timeout 5 curl --silent --http0.9 --unix-socket $socket http://x | head -c 4 | tr '\n' .; echo
wait $reader $stalled; echo given up; boxlaunch rm -f flood";

/// An agent that exceeds its memory limit after a second.
const HUNGRY: &str =
    r#"entrypoint "/bin/sh" "-c" "sleep 1; exec head -c 100000000 /dev/zero | tail -c 100000000""#;
/// An agent that exits with 0 on SIGQUIT, and only prints a line on SIGTERM.
const POLITE: &str = r#"entrypoint "/bin/sh" "-c" "trap 'echo quit; exit 0' QUIT; trap 'echo term' TERM; while :; do sleep 0.1; done""#;
/// An agent whose answers are endless.
const FLOOD: &str = r#"entrypoint "/bin/sh" "-c" "nc -ll -p 4088 -e yes""#;
/// A health check that passes if `/tmp/well` exists. If the file is not empty, the check takes 1000 s.
const CHECK: &str = r#"health "exec" "/bin/sh" "-c" "cat /tmp/well; test -s /tmp/well && sleep 1000; test -e /tmp/well""#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let hello = hello_checkout(dir.path());
    let image = "image \"oci:images/agent\" ";
    let http = "health \"http\" path=\"/health\"";
    let agent = |agent: &str, image_of: &str| {
        let text = hello.replace(image, &format!("image \"oci:{image_of}\"\n    {agent} "));
        text.replace(http, "health \"none\"")
    };
    let business =
        |health: &str| hello.replace("business {", &format!("business {{\n    {health}"));
    polite_image().write_layout(&dir.path().join("images/polite"), TAG, Compression::Gzip).unwrap();
    let boxes = [
        ("watched", business("health \"tcp\" port=8080")),
        ("checked", business(CHECK)),
        ("hungry", agent(HUNGRY, "images/business")),
        ("polite", agent(POLITE, "images/polite")),
        ("flood", agent(FLOOD, "images/business")),
    ];
    let curl = Path::new("/usr/bin/curl");
    packages(&[Package::Curl], &mut |line| println!("{line}")).unwrap();
    let host = with_program(tools.host.clone(), curl, "/usr/bin/curl").unwrap();
    let host = boxes.iter().fold(host, |host, (name, text)| {
        let boxfile = dir.path().join(format!("{name}.kdl"));
        let bundle = dir.path().join(format!("{name}.box"));
        fs::write(&boxfile, text).unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        host.file(bundle, format!("/{name}"))
    });
    let scripts = [
        ("health", HEALTH),
        ("stats", STATS),
        ("stopped", STOPPED),
        ("port", PORT),
        ("clock", CLOCK),
        ("programs", PROGRAMS),
        ("events", EVENTS),
        ("signal", SIGNAL),
        ("stalled", STALLED),
    ];
    let all = Scenario::default();
    scripts.iter().fold(all, |all, (name, script)| all.script(30, name, script)).start(&host)
});

/// Returns an image with a shell, and with SIGQUIT as its stop signal.
fn polite_image() -> Image {
    let busybox = fs::read(program::find("busybox").unwrap()).unwrap();
    let layer = Layer::new().dir("/bin", 0o755).dir("/tmp", 0o1777);
    let layer = layer.file("/bin/busybox", 0o755, busybox);
    let layer = layer.symlink("/bin/sh", "busybox").symlink("/bin/sleep", "busybox");
    let config = Config { stop_signal: "SIGQUIT".to_owned(), ..Config::default() };
    Image::new(config).with(layer.to_tar())
}

#[track_caller]
fn lines(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step.stdout.lines().collect()
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn a_health_check_is_made_when_it_is_asked_for() {
    let lines = lines("health");
    assert_eq!(lines[..3], ["watched", "healthy", "0"]);
    let [well, unwell] = [3, 8].map(|at| json(lines[at]));
    assert_fits("health", &well);
    assert_fits("health", &unwell);
    let refused = "port 8080: Connection refused (os error 111)";
    assert_eq!((&well["healthy"], &unwell["reason"]), (&true.into(), &refused.into()));
    assert_eq!(lines[4..8], [&format!("unhealthy: {refused}"), "1", "healthy", "0"]);
    let hangs = "unhealthy: port 4088: no answer";
    assert_eq!(lines[9..], ["watched", hangs, "1", "watched", "healthy"]);
}

fn a_program_that_checks_says_why_and_has_a_time_limit() {
    let lines = lines("programs");
    let missing = "unhealthy: cat: can't open '/tmp/well': No such file or directory";
    let late = "unhealthy: the check took longer than 1 s";
    assert_eq!(lines[1..], [missing, "healthy", late]);
}

fn what_a_box_takes_is_shown() {
    let lines = lines("stats");
    let [before, after] = [0, 1].map(|at| json(lines[at]));
    for stats in [&before, &after] {
        assert_fits("stats", stats);
    }
    let of =
        |stats: &Value, field: &str| stats["boxes"][0]["components"][1][field].as_u64().unwrap();
    assert_eq!((of(&before, "pids"), of(&after, "pids")), (0, 2));
    assert!(of(&before, "disk_bytes") < 100_000);
    assert!((5_000_000..5_100_000).contains(&of(&after, "disk_bytes")), "{after}");
    assert!(of(&after, "cpu_us") > of(&before, "cpu_us"));
    assert!(of(&after, "disk_max_bytes") > of(&after, "memory_max_bytes"), "{after}");
    let machine = &after["boxes"][0]["machine"];
    assert!(machine["memory_bytes"].as_u64().unwrap() > 20_000_000, "{machine}");
    let head = ["NAME PART", "watched machine", "watched agent", "watched business", "1"];
    assert_eq!(lines[2..], head);
}

fn a_machine_that_does_not_answer_keeps_nobody_waiting() {
    let lines = lines("stopped");
    assert!(lines.len() == 4 && lines[1].starts_with("watched   machine"), "{lines:?}");
    assert_eq!(lines[2..], ["1", "0"]);
    assert_eq!(STEPS["stopped"].stderr, "boxlaunch: watched: the box does not answer\n");
}

fn the_port_is_a_socket() {
    assert_eq!(lines("port"), ["4088/tcp -> /agent.sock", "socket"]);
}

fn the_clock_is_right_at_the_start_and_follows_the_hosts() {
    for (what, difference) in ["at the start", "ahead", "back"].iter().zip(lines("clock")) {
        assert!((0..3).contains(&difference.parse::<i64>().unwrap()), "{what}: {difference}");
    }
}

fn what_happens_to_boxes_is_shown() {
    let lines = lines("events");
    let events: Vec<Value> = lines
        .iter()
        .filter(|line| line.starts_with("{\"time_ms\""))
        .map(|line| json(line))
        .collect();
    let shown = |event: &Value| {
        assert_fits("event", event);
        format!("{} {}", event["event"].as_str().unwrap(), event["name"].as_str().unwrap())
    };
    let expected = [
        "start watched",
        "ready watched",
        "end watched",
        "remove watched",
        "start checked",
        "ready checked",
        "end checked",
        "start three",
        "ready three",
        "end three",
    ];
    assert_eq!(events.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!(events[2]["status"], 143);
    assert_eq!(events[6]["error"], "its supervisor was killed");
    let for_people = &STEPS["events"].stderr;
    assert!(for_people.contains("end checked: its supervisor was killed\n"), "{for_people}");
    assert!(lines.contains(&"oom killed   agent"), "{lines:?}");
    let [past, removed, health] = lines[lines.len() - 3..] else { panic!("{lines:?}") };
    assert_eq!(past.trim(), "6", "of those that have a record");
    assert_eq!([removed, health], ["checked", "1"]);
}

fn a_program_is_asked_to_end_with_the_signal_of_its_image() {
    // The command in the box ends with SIGTERM (143), and the agent with SIGQUIT.
    assert_eq!(lines("signal"), ["polite", "polite", "143", "quit"]);
}

fn a_client_of_the_agent_that_reads_nothing_holds_up_nobody() {
    assert_eq!(lines("stalled"), ["flood", "1", "2", "3", "y.y.", "given up", "flood"]);
}

tests![
    a_health_check_is_made_when_it_is_asked_for,
    a_program_that_checks_says_why_and_has_a_time_limit,
    what_a_box_takes_is_shown,
    a_machine_that_does_not_answer_keeps_nobody_waiting,
    the_port_is_a_socket,
    the_clock_is_right_at_the_start_and_follows_the_hosts,
    what_happens_to_boxes_is_shown,
    a_program_is_asked_to_end_with_the_signal_of_its_image,
    a_client_of_the_agent_that_reads_nothing_holds_up_nobody
];
