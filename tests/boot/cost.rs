//! Costs of a run, beside the phases of its start in tests/boot/hello.rs: a second CPU, the end of the run, and the memory of an
//! idle box.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use testbed::promises::{FURTHER_CPU, IDLE_MEMORY, RUN_END};

use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};

/// Prints the microseconds from the last output of a command in the box to the end of `boxlaunch run`, for three runs.
const END: &str = r#"
micros() { echo ${1%.*}${1#*.}; }
for round in 1 2 3; do
    boxlaunch run /one -- echo written | {
        read word
        written=$EPOCHREALTIME
        cat
        ended=$EPOCHREALTIME
        [ "$word" = written ] && echo end $(($(micros $ended) - $(micros $written)))
    } || exit 1
done
"#;

/// Prints the memory (PSS) of the two processes of an idle box, in KiB, and the memory of each of its components, in bytes.
const IDLE: &str = r#"
boxlaunch run --name idle /one >/tmp/log 2>&1 &
run=$!
trap "kill $run" TERM
# What the start has freed goes back to the host a few seconds later. A box that is not ready within its budget
# has ended by then.
sleep 20
for process in $run $(cat /proc/$run/task/*/children); do
    name=$(tr ' ' _ </proc/$process/comm)
    sed -n "s/^Pss: *\([0-9]*\) kB/$name \1/p" /proc/$process/smaps_rollup
done
boxlaunch stats --json idle | sed 's/.*"components":\[\([^]]*\)\].*/\1/' | tr '{' '\n' | sed -n 's/.*"memory_bytes":\([0-9]*\),.*/workload \1/p'
kill $run
wait $run
[ $? = 143 ]
"#;

/// The number of starts of each box, and of runs in [`END`]. The median is checked.
const ROUNDS: usize = 3;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let boxfile = hello_checkout(dir.path());
    assert!(boxfile.contains("cpus=1"));
    let box_with = |name: &str, cpus: &str| {
        let (declaration, bundle) = (dir.path().join(name), dir.path().join(format!("{name}.box")));
        fs::write(&declaration, boxfile.replace("cpus=1", cpus)).unwrap();
        bake(&declaration, &tools.programs.box_init, &bundle);
        bundle
    };
    let (one, two) = (box_with("one", "cpus=1"), box_with("two", "cpus=2"));
    let scenario = Scenario::default()
        .step("verify", "boxlaunch verify /one")
        .step("verify-two", "boxlaunch verify /two");
    let start = |scenario: Scenario, round: usize| {
        let run = |bundle| format!("boxlaunch run --json --until-ready {bundle}");
        let scenario = scenario.step(&format!("one-{round}"), &run("/one"));
        scenario.step(&format!("two-{round}"), &run("/two"))
    };
    (0..ROUNDS)
        .fold(scenario, start)
        .script(20, "end", END)
        .script(60, "idle", IDLE)
        .start(&tools.host.clone().disk(one, "/one").disk(two, "/two"))
});

/// Returns the numbers on the lines of a script's output that begin with `word`.
fn numbers(script: &str, word: &str) -> Vec<f64> {
    let step = &STEPS[script];
    assert_eq!(step.status, 0, "{step:?}");
    let lines = step.stdout.lines().filter_map(|line| line.strip_prefix(word));
    let numbers: Vec<f64> = lines.map(|line| line.trim().parse().unwrap()).collect();
    println!("{word}: {numbers:?}");
    numbers
}

fn median(mut numbers: Vec<f64>) -> f64 {
    assert_eq!(numbers.len(), ROUNDS);
    numbers.sort_by(f64::total_cmp);
    numbers[ROUNDS / 2]
}

/// Returns the time of each start of a box until its agent was ready, in ms.
fn starts(bundle: &str) -> Vec<f64> {
    let start = |round| {
        let step = &STEPS[&format!("{bundle}-{round}")];
        assert_eq!(step.status, 0, "{step:?}");
        step.json()["phases_ms"]["total"].as_f64().unwrap()
    };
    let starts: Vec<f64> = (0..ROUNDS).map(start).collect();
    println!("{bundle}: {starts:?}");
    starts
}

fn a_second_cpu_hardly_delays_the_start() {
    FURTHER_CPU.check(median(starts("two")) - median(starts("one")));
}

fn a_run_ends_soon_after_its_command() {
    RUN_END.check(median(numbers("end", "end")) / 1000.0);
}

fn an_idle_box_takes_little_memory() {
    let processes = ["boxlaunch", "libkrun_VM"].map(|name| numbers("idle", name));
    assert!(processes.iter().all(|it| it.len() == 1), "{processes:?}");
    let kib: f64 = processes.concat().iter().sum();
    let workload: f64 = numbers("idle", "workload").iter().sum();
    assert!(workload > 0.0, "{:?}", STEPS["idle"]);
    IDLE_MEMORY.check(kib / 1024.0 - workload / f64::from(1 << 20));
}

tests![
    a_second_cpu_hardly_delays_the_start,
    a_run_ends_soon_after_its_command,
    an_idle_box_takes_little_memory
];
