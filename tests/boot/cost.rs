//! What a run costs beside the phases of its start: a further CPU, the end, and the memory of an idle box.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use testkit::promises::{FURTHER_CPU, IDLE_MEMORY, RUN_END};

use crate::scenario::{Scenario, Step, bake, hello_checkout, tools};

/// Starts a box of one CPU and one of two in turn, and prints the whole start of each, in ms.
const CPUS: &str = r#"
for round in 1 2 3; do
    for box in one two; do
        total=$(boxlaunch run --json --until-ready /$box | tr ',{}' '\n' | sed -n 's/^ *"total": *//p' | tail -n 1) || exit 1
        echo $box $total
    done
done
"#;

/// Prints the microseconds from the last output of a command in the box to the end of the launcher.
const END: &str = r#"
micros() { echo ${1%.*}${1#*.}; }
for round in 1 2 3; do
    boxlaunch run /one -- echo written | {
        read word
        written=$EPOCHREALTIME
        cat
        ended=$EPOCHREALTIME
        echo end $(($(micros $ended) - $(micros $written)))
    }
done
"#;

/// Prints what the two processes of an idle box have in memory, in KiB, and what of it is the files and the memory
/// of programs in the guest.
const IDLE: &str = r#"
boxlaunch run /one >/tmp/log 2>&1 &
run=$!
trap "kill $run" TERM
# What the start has freed goes back to the host a few seconds later.
sleep 20
for process in $run $(cat /proc/$run/task/*/children); do
    name=$(tr ' ' _ </proc/$process/comm)
    sed -n "s/^Pss: *\([0-9]*\) kB/$name \1/p" /proc/$process/smaps_rollup
done
kill $run
wait $run
[ $? = 143 ]
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let boxfile = hello_checkout(dir.path());
    let box_with = |name: &str, cpus: &str| {
        let (declaration, bundle) = (dir.path().join(name), dir.path().join(format!("{name}.box")));
        fs::write(&declaration, boxfile.replace("cpus=1", cpus)).unwrap();
        bake(&declaration, &tools.programs.box_init, &bundle);
        bundle
    };
    let (one, two) = (box_with("one", "cpus=1"), box_with("two", "cpus=2"));
    Scenario::default()
        .step("verify", "boxlaunch verify /one")
        .step("verify-two", "boxlaunch verify /two")
        .script(20, "cpus", CPUS)
        .script(20, "end", END)
        .script(60, "idle", IDLE)
        .start(&tools.host.clone().disk(one, "/one").disk(two, "/two"))
});

/// Returns the numbers that a script has printed after a word.
fn numbers(script: &str, word: &str) -> Vec<f64> {
    let step = &STEPS[script];
    assert_eq!(step.status, 0, "{step:?}");
    let lines = step.stdout.lines().filter_map(|line| line.strip_prefix(word));
    let mut numbers: Vec<f64> = lines.map(|line| line.trim().parse().unwrap()).collect();
    numbers.sort_by(f64::total_cmp);
    println!("{word}: {numbers:?}");
    numbers
}

fn median(script: &str, word: &str) -> f64 {
    let numbers = numbers(script, word);
    assert_eq!(numbers.len(), 3);
    numbers[1]
}

#[test]
fn a_second_cpu_hardly_delays_the_start() {
    FURTHER_CPU.check(median("cpus", "two") - median("cpus", "one"));
}

#[test]
fn a_run_ends_soon_after_its_command() {
    RUN_END.check(median("end", "end") / 1000.0);
}

#[test]
fn an_idle_box_takes_little_memory() {
    let processes = ["boxlaunch", "libkrun_VM"].map(|name| numbers("idle", name));
    let kib: f64 = processes.concat().iter().sum();
    IDLE_MEMORY.check(kib / 1024.0);
}
