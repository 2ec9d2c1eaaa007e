//! A command in a box: its environment, directory, user, streams, terminal and time limit. `boxlaunch run` and `boxlaunch exec` send
//! a command to the box in the same way, so most commands run in one box that goes on. The modules below use the same start of the
//! virtual host.

pub(crate) mod calls;
pub(crate) mod capabilities;

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use testbed::VirtualHost;
use testbed::prerequisites::{Package, packages, with_program};

use crate::scenario::{Ran, Scenario, bake, hello_checkout, together, tools};
use crate::schema::assert_fits;

/// Prints what the options set: variables, directory, user and input.
const SAY: &str = r#"echo "$A|$B|$HOME|$GIVEN|$NOT_GIVEN"; pwd; id -u; id -g; cat; tty"#;
/// Copies 3 MiB into a box and out again, many times the size of the flow-control windows of both directions.
const COPY: &str = "head -c 3145728 /dev/urandom >/tmp/sent; \
    boxlaunch exec -i hello -- cat </tmp/sent >/tmp/got; echo $?; cmp /tmp/sent /tmp/got && echo same";
/// Reads no output of a command for 3 s. Backpressure stops only this command: the agent still answers.
const SLOW_READER: &str = "boxlaunch exec hello -- sh -c 'yes | head -c 2000000' | {
    sleep 3; curl --silent --max-time 2 --unix-socket /tmp/a http://localhost/health; wc -c; }";
/// Like [`SLOW_READER`], with 600 short lines, each of which is sent as a separate frame.
const LINES: &str = "boxlaunch exec hello -- \
        sh -c 'i=0; while [ $i -lt 600 ]; do printf \"%512d\\n\" $i; i=$((i + 1)); done' | {
    sleep 6; curl --silent --max-time 2 --unix-socket /tmp/a http://localhost/health; tail -n 1; }";
/// Reads one line of an endless output after 3 s, like [`SLOW_READER`], and prints how many ms the run takes.
const ENOUGH: &str =
    "start=$EPOCHREALTIME; boxlaunch run --agent-socket /tmp/b /hello -- yes 2>/dev/null | {
    sleep 3; curl --silent --max-time 2 --unix-socket /tmp/b http://localhost/health; head -n 1; }
    end=$EPOCHREALTIME; echo $(((${end%.*}${end#*.} - ${start%.*}${start#*.}) / 1000))";
/// A command of another user opens its standard streams by name, such as `/dev/stdin`.
const STREAMS: &str = "printf 'in\n' | boxlaunch exec -i -u nobody hello -- \
    sh -c 'cat /dev/stdin; echo out >/dev/stdout; echo err >/dev/stderr' 2>&1 | sort";
/// A command that exits before it has read its whole input.
const SHORT: &str = "yes | boxlaunch exec -i hello -- head -n 2; echo $?";
/// Runs longer than its time limit, as does another process of its group.
const ENDLESS: &str = "sleep 1000 & echo started; sleep 1000; echo never";

/// Ends commands that have started programs in other process groups and sessions: at the time limit, with SIGTERM and SIGINT, and by a
/// kill of `boxlaunch`. What a command has left that ended by itself stays. Then reaches a server at ::1, and prints limits.
const TREES: &str = r#"
left() { boxlaunch exec hello -- sh -c 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\0" " " | grep -o "sleep [7][0-9]" | sort | tr "\n" ","'; echo; }
try() { "$@"; echo "status $?"; left; }
try boxlaunch exec --timeout 1 hello -- sh -c 'setsid sleep 71 & (set -m; sleep 72 & sleep 73)'
try timeout -s TERM 1 boxlaunch exec hello -- sh -c 'sleep 74; echo no'
try timeout -s INT 1 boxlaunch exec hello -- sh -c 'sleep 75; echo no'
try timeout -s KILL 1 boxlaunch exec hello -- sh -c 'setsid sleep 76 & sleep 77'
try boxlaunch exec hello -- sh -c 'setsid sleep 78 >/dev/null 2>&1 & echo leaves it'
boxlaunch exec hello -- sh -c 'echo six >/tmp/index.html; httpd -p [::1]:8001 -h /tmp'; curl -s --max-time 5 http://127.0.0.1:8105/
boxlaunch exec hello -- cat /proc/sys/fs/inotify/max_user_watches /proc/sys/fs/inotify/max_user_instances /proc/sys/vm/max_map_count
"#;
/// Stops a box with an idle shell in a terminal, which ignores SIGTERM, and prints how many seconds the stop takes.
const IDLE: &str = r#"sleep 20 | script -qec "boxlaunch exec -it hello -- sh" /dev/null >/dev/null & sleep 2
start=$EPOCHREALTIME; boxlaunch stop hello; end=$EPOCHREALTIME
echo $(((${end%.*}${end#*.} - ${start%.*}${start#*.}) / 1000000)); boxlaunch rm hello"#;

/// Stops runs with a command: one that says something before it ends, and one that ignores the signal until the grace is over.
const WORDS: &str = r#"
timeout -s INT 9 boxlaunch run -q /hello -- sh -c 'trap "echo last words; exit 3" INT; while :; do sleep 0.2; done'; echo "status $?"
timeout -s TERM 9 boxlaunch run -q --grace 1 /hello -- sh -c 'trap "echo not yet" TERM; while :; do sleep 0.2; done'; echo "status $?""#;

/// Runs a shell in a terminal that script(1) makes. Types commands and Ctrl-C, and changes the terminal's size after 3 s.
const TERMINAL: &str = r#"
cat >/tmp/box <<'END'
stty rows 33 cols 99
{ sleep 3; stty rows 44 cols 55 </dev/tty; } &
boxlaunch run -it -u nobody -w /tmp /hello -- sh
echo "status $?, $(stty -a | grep -c ' icanon')"
END
{
    sleep 2; printf 'tty; stty size; id -u; test -w /dev/tty && echo writable; echo $TERM\n'
    sleep 2; printf 'stty size; trap "echo caught" INT; sleep 1000\n'
    sleep 1; printf '\003'
    sleep 1; printf 'echo $((6 * 7))\n'
    sleep 1; printf 'exit 5\n'
    sleep 3
} | script -qec "sh /tmp/box" /dev/null
"#;
/// Passes 1.9 MiB of arguments in pieces of 100 KiB, and compares them by a checksum.
const LONG: &str = r#"piece=$(head -c 102400 /dev/zero | tr '\0' x); set --
while [ $# -lt 19 ]; do set -- "$@" "$piece$#"; done
boxlaunch exec hello -- sh -c 'echo $#; printf %s "$@" | wc -c; printf %s "$@" | sha256sum' sh "$@"
printf %s "$@" | sha256sum"#;
/// Passes a variable of 130 KiB, which is longer than what Linux passes to a program. Only a file can contain it.
const TOO_LONG: &str = r#"{ printf A=; head -c 133120 /dev/zero | tr '\0' x; echo; } >/tmp/long.env
boxlaunch exec --json --env-file /tmp/long.env hello -- true"#;
/// Passes an argument, a variable and a directory that are not UTF-8.
const BYTES: &str = r#"boxlaunch exec --json -e "B=$(printf '\376')" hello -- \
    sh -c 'mkdir "/tmp/$1" && cd "/tmp/$1" && printf %s "$1$B" && pwd | tail -c 2' sh "$(printf '\377')""#;

/// The results of this module and those below it.
static RAN: LazyLock<Ran> = LazyLock::new(|| together(&[add, calls::add]));

fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    let (boxfile, hello) = (dir.join("Boxfile"), dir.join("hello.box"));
    fs::write(&boxfile, hello_checkout(dir)).unwrap();
    bake(&boxfile, &tools().programs.box_init, &hello);
    // script(1) needs no installation: its package, bsdutils, is essential in Debian.
    packages(&[Package::Curl], &mut |line| println!("{line}")).unwrap();
    let host = ["script", "curl"].iter().fold(host, |host, name| {
        let path = format!("/usr/bin/{name}");
        with_program(host, Path::new(&path), &path).unwrap()
    });
    let said = format!(
        "echo B=file >/tmp/b.env; printf in | GIVEN=here boxlaunch run --json -i -u nobody --env-file /tmp/b.env \
         -e A=1 -e A=2 -e GIVEN -e NOT_GIVEN -w /tmp --timeout 2 /hello -- sh -c '{SAY}; {ENDLESS}'"
    );
    let exec = |options: &str| format!("boxlaunch exec --json {options}");
    let scenario = scenario
        .script(9, "said", &said)
        .step("nobody", "boxlaunch run --json --user none /hello -- true")
        .script(9, "start", "ifconfig lo 127.0.0.1 up; boxlaunch run -q -d --name hello -p 8105:8001/business --agent-socket /tmp/a /hello")
        .step("number", &exec("-u 4242:7 hello -- id"))
        .step("nowhere", &exec("--workdir /none hello -- true"))
        .script(20, "copy", COPY)
        .script(20, "slow", SLOW_READER)
        .script(20, "short", SHORT)
        .script(20, "lines", LINES)
        .script(20, "streams", STREAMS)
        .script(20, "long", LONG)
        .script(20, "too-long", TOO_LONG)
        .script(20, "bytes", BYTES)
        .script(40, "trees", TREES)
        .script(20, "idle", IDLE)
        .script(40, "words", WORDS)
        .script(20, "enough", ENOUGH)
        .script(20, "terminal", TERMINAL);
    (scenario, host.file(hello, "/hello"))
}

/// Returns the report of a command in the box that goes on, which must have ended with `status`.
#[track_caller]
fn command(name: &str, status: i32) -> Value {
    let step = &RAN.0[name];
    assert_eq!(step.status, status, "{step:?}");
    let report = step.json();
    assert_fits("exec", &report);
    report
}

/// Returns the command's part of the report of a run, which must have ended with `status`.
#[track_caller]
fn run(name: &str, status: i32) -> Value {
    let step = &RAN.0[name];
    assert_eq!(step.status, status, "{step:?}");
    let report = step.json();
    assert_fits("run", &report);
    report["command"].clone()
}

#[track_caller]
fn stdout(name: &str) -> &'static str {
    let step = &RAN.0[name];
    assert_eq!(step.status, 0, "{step:?}");
    &step.stdout
}

fn environment_directory_user_and_input_are_as_asked_for() {
    let output = run("said", 124);
    assert_eq!(output["stdout"], "2|file|/|here|\n/tmp\n65534\n65534\ninnot a tty\nstarted\n");
    let numbers = command("number", 0);
    assert_eq!(numbers["stdout"], "uid=4242 gid=7\n");
}

fn what_cannot_be_is_said_by_name() {
    let nobody = run("nobody", 126);
    assert_eq!(nobody["stderr"], "find the user: /etc/passwd has no \"none\"\n");
    let nowhere = command("nowhere", 126);
    let reason = "enter the working directory /none: ENOENT: No such file or directory\n";
    assert_eq!(nowhere["stderr"], reason);
}

fn a_command_and_its_group_are_killed_when_its_time_is_up() {
    let late = run("said", 124);
    assert_eq!((&late["status"], &late["timed_out"]), (&137.into(), &true.into()));
    let taken = late["duration_ms"].as_f64().unwrap();
    assert!((2000.0..2200.0).contains(&taken), "{taken}");
}

fn a_command_ends_with_all_that_it_has_started() {
    insta::assert_snapshot!(stdout("trees"), @"
    status 124

    status 143

    status 130

    status 137

    leaves it
    status 0
    sleep 78,
    six
    524288
    1024
    1048576
    ");
    assert_eq!(stdout("idle"), "hello\n0\nhello\n");
}

fn a_signal_to_a_run_goes_to_its_command_first() {
    assert_eq!(stdout("words"), "last words\nstatus 3\nnot yet\nstatus 143\n");
}

fn more_than_the_windows_goes_in_and_comes_out() {
    assert_eq!(stdout("copy"), "0\nsame\n");
}

fn a_reader_who_waits_loses_nothing() {
    assert_eq!(stdout("slow"), "{\"status\":\"HEALTHY\"}2000000\n");
    let lines: Vec<&str> = stdout("lines").split_whitespace().collect();
    assert_eq!(lines, ["{\"status\":\"HEALTHY\"}", "599"]);
}

fn a_reader_who_has_enough_ends_the_run_at_once() {
    let (line, taken) = stdout("enough").trim().split_once('\n').unwrap();
    assert_eq!(line, "{\"status\":\"HEALTHY\"}y");
    let taken: u32 = taken.parse().unwrap();
    assert!(taken < 4500, "{taken} ms, and SIGTERM is enough");
}

fn another_user_may_open_the_streams_by_name() {
    assert_eq!(stdout("streams"), "err\nin\nout\n");
}

fn a_command_may_end_before_its_input() {
    assert_eq!(stdout("short"), "y\ny\n0\n");
}

fn a_command_has_a_terminal_with_its_keys_and_its_size() {
    let shown = stdout("terminal").replace('\r', "");
    println!("{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    let after = |line: &str, count| {
        let start = lines.iter().position(|it| it.contains(line)).unwrap() + 1;
        lines[start..start + count].to_vec()
    };
    let first = after("tty; stty size; id -u", 5);
    assert_eq!(first, ["/dev/pts/0", "33 99", "65534", "writable", "xterm-256color"]);
    assert_eq!(after("sleep 1000", 1), ["44 55"], "it was resized");
    assert!(lines.iter().any(|it| it.contains("caught")), "Ctrl-C went to the program");
    assert_eq!(after("echo $((6 * 7))", 1), ["42"]);
    assert!(shown.ends_with("status 5, 1\n"), "the terminal is as it was before");
}

fn arguments_are_as_long_as_linux_can_pass_on() {
    let lines: Vec<&str> = stdout("long").lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (4, "19", "1945628"));
    assert_eq!(lines[2], lines[3]);
    let error = "true: its variable A has 133122 bytes, and Linux takes at most 131071\n";
    assert_eq!(command("too-long", 126)["stderr"], error);
}

fn a_command_need_not_be_utf_8() {
    let command = command("bytes", 0);
    assert_eq!(command["stdout_base64"], "//7/Cg==");
    assert_eq!(command["argv"].as_array().unwrap().last(), Some(&"\u{fffd}".into()));
    assert_eq!(command["argv_base64"].as_array().unwrap().last(), Some(&"/w==".into()));
}

tests![
    environment_directory_user_and_input_are_as_asked_for,
    what_cannot_be_is_said_by_name,
    a_command_and_its_group_are_killed_when_its_time_is_up,
    a_command_ends_with_all_that_it_has_started,
    a_signal_to_a_run_goes_to_its_command_first,
    more_than_the_windows_goes_in_and_comes_out,
    a_reader_who_waits_loses_nothing,
    a_reader_who_has_enough_ends_the_run_at_once,
    another_user_may_open_the_streams_by_name,
    a_command_may_end_before_its_input,
    a_command_has_a_terminal_with_its_keys_and_its_size,
    arguments_are_as_long_as_linux_can_pass_on,
    a_command_need_not_be_utf_8
];
