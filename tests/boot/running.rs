//! Running boxes: several at the same time, commands in them, their logs, and their ends.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use testbed::deaf::{self, TIMED};
use testbed::hello::BUDGET_MS;
use testbed::prerequisites::{Package, packages, with_program};
use testbed::promises::ENTER;

use crate::page::{Shown, assert_shown, commands};
use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};
use crate::schema::assert_fits;

const PAGE: &str = include_str!("../../docs/running.md");

/// Runs `boxlaunch exec` ten times, and prints how many ms each took.
const ENTERING: &str = "for i in 1 2 3 4 5 6 7 8 9 10; do timed boxlaunch exec hello true; done";
/// Runs 64 commands at the same time, beside one whose output is not read.
const PARALLEL: &str = "boxlaunch run -d --name many /wide >/dev/null; mkdir /tmp/many
boxlaunch exec many yes | { sleep 1000; cat; } >/dev/null & stalled=$!
for i in $(seq 64); do
    boxlaunch exec many -- head -c 150000 /dev/zero | wc -c >/tmp/many/$i & pids=\"$pids $!\"
done
wait $pids; cat /tmp/many/* | sort | uniq -c; kill $stalled";
/// Sends SIGTERM to `boxlaunch exec`, which passes it on to the command. A second SIGTERM kills the command, as does the end of
/// `boxlaunch exec`.
const SIGNALS: &str = r#"boxlaunch exec hello -- sh -c 'trap "echo got it; exit 7" TERM; while :; do sleep 0.1; done' & pid=$!
sleep 1; kill $pid; wait $pid; echo "status $?"
boxlaunch exec hello -- sh -c 'trap : TERM; while :; do sleep 0.1; done' & pid=$!
sleep 1; kill $pid; sleep 1; kill $pid; wait $pid; echo "status $?"
boxlaunch exec hello -- sleep 1000 & pid=$!
sleep 1; kill -9 $pid; wait $pid; echo "status $?"
sleep 1; boxlaunch exec hello -- sh -c 'ps | grep -c "[s]leep"'"#;
/// Runs commands that outlive `boxlaunch exec`, unless they end at once. Then prints the end of a log.
const DETACHED: &str = r#"boxlaunch run -d --name talker /talker >/dev/null
boxlaunch exec -d talker -- sh -c 'sleep 1; echo written >/tmp/late'; echo "status $?"
sleep 3; boxlaunch exec talker cat /tmp/late
boxlaunch exec -d talker -- sh -c 'yes'; echo "status $?"; boxlaunch exec talker killall yes
boxlaunch exec -d talker nothing 2>/tmp/errors; echo "status $?"; grep -c nothing /tmp/errors
boxlaunch exec --detach talker -- sh -c 'exit 7'; echo "status $?"
boxlaunch logs -n 1 -t talker | sed 's/[0-9-]*T[0-9:.]*Z/TIME/'"#;
/// Prints the agent's output with `attach`, with `logs -f` while it runs until it has ended, and with `logs` later.
const LOGS: &str =
    "boxlaunch attach talker >/tmp/attached & boxlaunch logs -f talker >/tmp/followed 2>/tmp/errors & pids=\"$!\"
sleep 2; boxlaunch stop --all --json; wait $pids
boxlaunch logs talker 2>/dev/null >/tmp/later; cmp /tmp/followed /tmp/later && echo same
head -n 1 /tmp/later; cat /tmp/errors; grep -c count /tmp/attached; boxlaunch logs --since 1s talker 2>&1 | wc -l
boxlaunch logs --json talker | head -n 1; boxlaunch rm --all";
/// Kills supervisors and VMMs at several moments of a start. After the next `boxlaunch ps`, no process and no directory is left.
const KILLED: &str = r#"
alive() { for p in $(grep -l '^/proc/self/exe' /proc/[0-9]*/cmdline 2>/dev/null); do
    echo "${p%/cmdline} $(tr '\0' ' ' <$p)"
done; }
for i in 0 1 2 3 4 5; do
    boxlaunch run -d --name k$i /hello >/dev/null 2>&1 & run=$!
    usleep $((i * 30000))
    while ! alive | grep -q -e "--name k$i "; do usleep 1000; done
    test $((i % 2)) = 0 && what="--name k$i " || what="exe vmm"
    kill -9 $(alive | grep -e "$what" | tail -n 1 | sed 's,^/proc/\([0-9]*\) .*,\1,')
    wait $run
    usleep 200000
    boxlaunch ps -n
    alive; ls /tmp | grep boxlaunch
done
boxlaunch ps -a --json; boxlaunch rm $(boxlaunch ps -an) >/dev/null"#;
/// Makes mistakes with a box that runs, and prints the code or the exit status of each error.
const MISTAKES: &str =
    "code() { \"$@\" 2>/dev/null | sed 's/.*\"code\":\"\\([a-z-]*\\)\".*/\\1/'; }
code boxlaunch run --json -d --name hello /hello; code boxlaunch exec --json nobody true
code boxlaunch exec --json --in nothing hello true; boxlaunch rm hello; echo $?";
/// Types commands into `boxlaunch shell`, in a terminal that script(1) makes.
const SHELL: &str = r#"{ sleep 2; printf 'cd /tmp; pwd; test -t 0 && echo terminal\n'; sleep 1; printf 'exit 6\n'; sleep 2; } |
    script -qec 'boxlaunch shell hello; echo "status $?"' /dev/null"#;
/// Edits a file with vi, which uses the whole screen, and ends the input of a terminal with Ctrl-D.
const SCREEN: &str = r#"{ sleep 2; printf 'ihello\033'; sleep 1; printf ':wq\r'; sleep 1; } | script -qec 'stty rows 20 cols 40; boxlaunch exec -it hello vi /tmp/file; echo "status $?"' /dev/null
boxlaunch exec hello cat /tmp/file
{ sleep 2; printf 'typed\n\004'; sleep 2; } | script -qec 'boxlaunch exec -it hello cat; echo "status $?"' /dev/null"#;
/// Ends boxes: by a signal to the agent while `boxlaunch wait` waits, and while the box runs in the foreground, where the output of its
/// agent can be read. Makes mistakes with a box that has ended.
const ENDS: &str = "boxlaunch run -d --name ends /hello >/dev/null
boxlaunch wait ends & pid=$!; sleep 1; boxlaunch kill -s TERM ends; wait $pid; boxlaunch ps -a | tail -n 1 | sed 's/  */ /g' | cut -d' ' -f1,7-9
boxlaunch stop ends; echo $?; boxlaunch exec --json ends true 2>/dev/null | grep -o not-running
boxlaunch rm ends; boxlaunch rm ends; echo $?
boxlaunch run -q --name front /talker 2>/dev/null >/tmp/front & pid=$!; sleep 2; head -n 1 /tmp/front; boxlaunch exec front echo hi; boxlaunch stop front; wait $pid; echo $?
boxlaunch rm front";

/// The number of stops of an agent that ignores SIGTERM.
const STOPS: u32 = 4;
/// Lists the boxes that are left after the stops: none. Then runs a command that is missing, after which the box is listed as stopped, without a
/// status of its agent.
const AFTER_STOPS: &str =
    "boxlaunch ps -an; boxlaunch run -q /hello -- /no/such/program 2>/dev/null; echo $?
boxlaunch ps -a | grep -c stopped; boxlaunch rm $(boxlaunch ps -an) >/dev/null";

/// Reads the output of an agent after it has ended, and ends another by Ctrl-C.
const FOREGROUND: &str = "boxlaunch run -q --rm /writer | { sleep 3; tail -c 4; }
timeout -s INT 3 boxlaunch run -q --rm /talker >/dev/null 2>&1; echo $?; boxlaunch ps -an";
/// A `boxlaunch wait` that is ended does not end the box. The supervisor does not keep a descriptor of its caller. Nothing is left
/// of a box with `--rm`. A box can be stopped before its agent is ready.
const WAITING: &str = r#"boxlaunch run -d --rm --name waiting /hello 9>/tmp/nine >/dev/null
timeout 1 boxlaunch wait waiting; echo $?; boxlaunch ps -n
ls -l /proc/$(boxlaunch inspect waiting --json | sed 's/.*supervisor":\([0-9]*\).*/\1/')/fd | grep -c nine
boxlaunch stop waiting >/dev/null & boxlaunch wait waiting; wait; boxlaunch ps -an
boxlaunch run -d --name early /sleeper >/dev/null 2>&1 & pid=$!
while ! boxlaunch ps -n | grep -q early; do usleep 10000; done; boxlaunch stop early; wait $pid; echo $?; boxlaunch rm early"#;

/// Prints the exit statuses that differ from the command's, which must be none; the statuses of commands that signals kill; the
/// blocked and ignored signals of a command; and its process group, session and terminal (proc(5)).
const STATUSES: &str = r#"for i in 0 1 2 3 63 64 65 77 100 $(seq 124 131) 137 143 192 254 255; do boxlaunch exec hello -- sh -c "exit $i"; test $? = $i || echo "$i is $?"; done
for s in 1 2 6 9 11 13 14 15; do boxlaunch exec hello -- sh -c "kill -$s \$\$"; echo $?; done
boxlaunch exec hello -- grep -E '^Sig(Blk|Ign)' /proc/self/status
boxlaunch exec hello -- sh -c 'set -- $(cat /proc/$$/stat); echo $(($5 == $$)) $(($6 == $$)) $7 $8'"#;
/// Orphans 500 processes, many more than the component may have at the same time.
const ORPHANS: &str = r#"boxlaunch exec hello -- sh -c '
    i=0; while [ $i -lt 500 ]; do (: & :); i=$((i + 1)); done; sleep 0.2; ls -d /proc/[0-9]* | wc -l'"#;
/// Two boxes at the same time. Each has its own `/tmp/name`.
const SIDE_BY_SIDE: &str = "boxlaunch run -d --name held /held
for name in held many; do boxlaunch exec $name -- sh -c \"echo $name >/tmp/name\"; done
for name in held many; do boxlaunch exec $name cat /tmp/name; done
boxlaunch ps -n | sort";
/// Kills the first process of a component. A program of the component can do this if the component has no PID namespace. Then
/// stops both boxes.
const HELD: &str = r#"boxlaunch exec held -- sleep 1000 & pid=$!
boxlaunch exec -u 0 held -- sh -c 'kill -9 $PPID; sleep 5'; echo $?; wait $pid; echo $?
boxlaunch exec held -- true; echo $?; boxlaunch ps -n
curl --silent --unix-socket "$(boxlaunch inspect held --json | sed 's/.*"agent_socket":"\([^"]*\)".*/\1/')" http://box/health; echo
boxlaunch stop held; boxlaunch stop -t 0 many; boxlaunch ps -n; boxlaunch rm held many"#;

/// An agent that writes more than all buffers up to the reader can hold, and ends.
const WRITER: &str = r#"entrypoint "/bin/sh" "-c" "yes | head -c 1000000; echo end""#;
/// An agent that never becomes ready.
const SLEEPER: &str = r#"entrypoint "/bin/sh" "-c" "sleep 1000""#;
/// An agent that writes five lines a second to its standard output, until SIGTERM.
const TALKER: &str = r#"entrypoint "/bin/sh" "-c" "echo first; echo problem >&2; while :; do echo count; sleep 0.2; done""#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let hello = hello_checkout(dir.path());
    let made = |name: &str, text: &str| {
        let boxfile = dir.path().join(format!("{name}.kdl"));
        fs::write(&boxfile, text).unwrap();
        let bundle = dir.path().join(format!("{name}.box"));
        bake(&boxfile, &tools.programs.box_init, &bundle);
        bundle
    };
    let image = "image \"oci:images/agent\" ";
    let with =
        |agent: &str| hello.replace(image, &format!("image \"oci:images/business\"\n    {agent} "));
    let unchecked =
        |text: String| text.replace("health \"http\" path=\"/health\"", "health \"none\"");
    let boxes = [
        ("hello", hello.clone()),
        ("wide", hello.replace("pids=32", "pids=500")),
        ("talker", unchecked(with(TALKER))),
        ("writer", unchecked(with(WRITER))),
        ("held", hello.replace("business {", "business {\n    namespaces pid=#false")),
        ("deaf", deaf::boxfile(&hello)),
        ("sleeper", with(SLEEPER).replace(&format!("budget total=\"{BUDGET_MS}ms\""), "")),
    ];
    packages(&[Package::Curl], &mut |line| println!("{line}")).unwrap();
    let host = ["script", "curl"].iter().fold(tools.host.clone(), |host, name| {
        let path = format!("/usr/bin/{name}");
        with_program(host, Path::new(&path), &path).unwrap()
    });
    let host = boxes
        .iter()
        .fold(host, |host, (name, text)| host.file(made(name, text), format!("/{name}")));
    let scripts = [
        (10, "life", "boxlaunch ps --json; boxlaunch inspect hello --json"),
        (5, "exec", "boxlaunch exec --json hello -- sh -c 'echo out; echo err >&2; exit 5'"),
        (
            5,
            "input",
            "echo in | boxlaunch exec -i -e A=1 -w /tmp -u nobody hello -- sh -c 'cat; echo $A; pwd; id -u'",
        ),
        (10, "enter", &format!("{TIMED}\n{ENTERING}")),
        (20, "signals", SIGNALS),
        (60, "statuses", STATUSES),
        (60, "orphans", ORPHANS),
        (20, "shell", SHELL),
        (20, "screen", SCREEN),
        (10, "mistakes", MISTAKES),
    ];
    let later = [
        (100, "parallel", PARALLEL),
        (10, "side-by-side", SIDE_BY_SIDE),
        (20, "held", HELD),
        (20, "detached", DETACHED),
        (20, "logs", LOGS),
        (30, "killed", KILLED),
        (60, "deaf", &deaf::script("/deaf", STOPS)),
        (10, "after-stops", AFTER_STOPS),
        (10, "foreground", FOREGROUND),
        (20, "waiting", WAITING),
        (20, "ends", ENDS),
    ];
    let all = |scenario: Scenario, scripts: &[(u32, &str, &str)]| {
        let add = |it: Scenario, (limit, name, script): &(u32, &str, &str)| {
            it.script(*limit, name, script)
        };
        scripts.iter().fold(scenario, add)
    };
    let page = |scenario: Scenario, (i, shown): (usize, &Shown)| {
        let before = "mkdir -p /tmp/page; cd /tmp/page; ln -sfn /hello hello.box";
        scenario.script(10, &format!("page-{i}"), &format!("{before}; {}", shown.command))
    };
    let commands = commands(PAGE);
    let (removes, others) = commands.split_last().unwrap();
    let begun = Scenario::default().script(10, "verify", "for box in /hello /wide /talker /writer /held /deaf /sleeper; do boxlaunch verify $box; done");
    // The page's last command removes its box `hello`, which the scripts use before.
    let with_page = all(others.iter().enumerate().fold(begun, page), &scripts);
    all(page(with_page, (others.len(), removes)), &later).start(&host)
});

#[track_caller]
fn stdout(name: &str) -> &'static str {
    let step = &STEPS[name];
    assert_eq!(step.status, 0, "{step:?}");
    println!("{}\n{}", step.stdout, step.stderr);
    &step.stdout
}

fn a_box_goes_on_by_itself_under_its_name() {
    assert_eq!(stdout("page-0"), "hello\n", "the name, and nothing else");
    let mut lines = stdout("life").lines();
    let list: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_fits("ps", &list);
    let record: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_fits("record", &record);
    assert_eq!(list["boxes"][0], record);
    assert_eq!((&record["name"], &record["state"]), (&"hello".into(), &"running".into()));
    let removed = format!("page-{}", commands(PAGE).len() - 1);
    assert_eq!(stdout(&removed), "hello\n");
}

fn a_command_in_a_running_box_is_as_one_of_run() {
    let step = &STEPS["exec"];
    assert_eq!(step.status, 5, "{step:?}");
    let report = step.json();
    assert_fits("exec", &report);
    assert_eq!((&report["stdout"], &report["stderr"]), (&"out\n".into(), &"err\n".into()));
    assert_eq!(stdout("input"), "in\n1\n/tmp\n65534\n");
}

fn entering_a_box_takes_no_time() {
    let taken: Vec<u32> = stdout("enter").lines().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(taken.len(), 10);
    taken.iter().for_each(|ms| ENTER.check((*ms).into()));
}

fn boxes_run_side_by_side() {
    assert_eq!(stdout("side-by-side"), "held\nheld\nmany\nheld\nmany\n");
}

fn a_command_that_nobody_reads_holds_nobody_up() {
    let lines: Vec<&str> = stdout("parallel").lines().map(str::trim).collect();
    assert_eq!(lines[0], "64 150000", "{lines:?}");
}

fn a_signal_is_passed_on_and_a_second_one_ends_the_command() {
    let lines = "got it\nstatus 7\nstatus 143\nstatus 137\n0\n";
    assert_eq!(STEPS["signals"].stdout, lines, "{:?}", STEPS["signals"]);
}

fn a_detached_command_outlives_its_caller() {
    let lines = "status 0\nwritten\nstatus 0\nstatus 127\n1\nstatus 7\nTIME count\n";
    assert_eq!(stdout("detached"), lines);
}

fn what_the_agent_wrote_can_be_read_at_any_time() {
    let lines: Vec<&str> = stdout("logs").lines().collect();
    let [stopped, same, first, problem, attached, recent, json, name] = lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(stopped, r#"{"names":["talker"]}"#);
    assert_eq!((same, first, problem, name), ("same", "first", "problem", "talker"));
    let entry: Value = serde_json::from_str(json).unwrap();
    assert_fits("logs", &entry);
    assert_eq!(entry["stream"], "stdout");
    assert!(entry["text"].as_str().unwrap().starts_with("first\n"), "{entry}");
    let [attached, recent] = [attached, recent].map(|count| count.parse::<u32>().unwrap());
    assert!(attached >= 8, "{attached}");
    assert!((3..9).contains(&recent), "{recent}");
}

fn nothing_is_left_of_what_is_killed() {
    let text = stdout("killed");
    let list: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let boxes = list["boxes"].as_array().unwrap();
    assert_eq!(boxes.len(), 6);
    for record in boxes {
        assert_eq!(record["state"], "ended");
        assert!(record["error"].is_string(), "{record}");
    }
}

fn a_deaf_agent_is_killed_in_time_and_a_run_of_a_command_has_no_status_of_the_agent() {
    let stops = deaf::stops(stdout("deaf"));
    assert_eq!(stops.iter().filter(|stop| stop.is_good()).count(), STOPS as usize, "{stops:?}");
    assert_eq!(stdout("after-stops"), "127\n1\n", "nothing is left of them, and one has stopped");
}

fn nothing_that_the_agent_writes_in_the_foreground_is_lost() {
    assert_eq!(stdout("foreground"), "end\n130\n");
}

fn who_waits_for_a_box_does_not_end_it_and_one_that_starts_can_be_stopped() {
    let expected = "143\nwaiting\n0\n143\nearly\n143\nearly\n";
    assert_eq!(stdout("waiting"), expected);
}

fn statuses_and_signals_are_those_of_the_command() {
    assert_eq!(
        stdout("statuses"),
        "129\n130\n134\n137\n139\n141\n142\n143\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n\
         1 1 0 -1\n"
    );
}

fn orphans_are_reaped() {
    let lines: Vec<&str> = stdout("orphans").lines().map(str::trim).collect();
    let left: u32 = lines[0].parse().unwrap();
    assert!(left < 8, "{lines:?}");
}

fn a_component_without_its_first_process_ends_and_the_box_does_not() {
    let expected = "137\n137\n126\nheld\nmany\n{\"status\":\"HEALTHY\"}\nheld\nmany\nheld\nmany\n";
    assert_eq!(stdout("held"), expected);
}

fn mistakes_have_their_codes() {
    assert_eq!(stdout("mistakes"), "name-taken\nname-not-found\n1\n");
}

fn a_person_gets_a_shell() {
    let shown = stdout("shell").replace('\r', "");
    assert!(shown.contains("\n/tmp\nterminal\n"), "{shown}");
    assert!(shown.ends_with("status 6\n"), "{shown}");
}

fn a_program_can_use_the_whole_screen_and_its_input_ends() {
    let shown = stdout("screen").replace('\r', "");
    let (vi, rest) = shown.split_once("status 0\n").unwrap();
    // vi moves the cursor to the last of 20 lines.
    assert!(vi.contains("\u{1b}[20;1H"), "{vi:?}");
    assert!(rest.starts_with("hello\n"), "{rest:?}");
    assert!(rest.ends_with("typed\ntyped\nstatus 0\n"), "{rest:?}");
}

fn a_box_ends_with_its_agent_or_when_it_is_asked_to() {
    let expected =
        "ends\n143\nends ended with 143\n1\nnot-running\nends\n1\nfirst\nhi\nfront\n143\nfront\n";
    assert_eq!(stdout("ends"), expected);
}

fn the_page_shows_what_happens() {
    let page = commands(PAGE);
    assert!(page.len() > 8);
    for (i, shown) in page.iter().enumerate() {
        assert_shown(shown, stdout(&format!("page-{i}")));
    }
}

tests![
    a_box_goes_on_by_itself_under_its_name,
    a_command_in_a_running_box_is_as_one_of_run,
    boxes_run_side_by_side,
    a_command_that_nobody_reads_holds_nobody_up,
    a_signal_is_passed_on_and_a_second_one_ends_the_command,
    a_detached_command_outlives_its_caller,
    what_the_agent_wrote_can_be_read_at_any_time,
    nothing_is_left_of_what_is_killed,
    a_deaf_agent_is_killed_in_time_and_a_run_of_a_command_has_no_status_of_the_agent,
    nothing_that_the_agent_writes_in_the_foreground_is_lost,
    who_waits_for_a_box_does_not_end_it_and_one_that_starts_can_be_stopped,
    statuses_and_signals_are_those_of_the_command,
    orphans_are_reaped,
    a_component_without_its_first_process_ends_and_the_box_does_not,
    mistakes_have_their_codes,
    a_person_gets_a_shell,
    a_program_can_use_the_whole_screen_and_its_input_ends,
    a_box_ends_with_its_agent_or_when_it_is_asked_to,
    the_page_shows_what_happens
];

tests![MEASURED: entering_a_box_takes_no_time];
