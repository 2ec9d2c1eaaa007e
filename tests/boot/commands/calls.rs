//! box-exec: the agent runs commands in the business component.

use std::fs;
use std::path::Path;

use testbed::VirtualHost;

use super::{RAN, capabilities};
use crate::scenario::{Scenario, bake, hello_checkout, tools};

/// An agent that only waits, in an image with a shell, and has no capability.
const AGENT: &str = r#"image "oci:images/business"
    capabilities drop="ALL"
    entrypoint "/bin/sh" "-c" "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done""#;
/// Prints the command's host name, variables, directory, user and input, writes to standard error, and exits with 7.
const SAY: &str = r#"hostname; echo "$A $HOME"; pwd; id -u; cat; echo problem >&2; exit 7"#;

/// Returns the shell line that runs `script` in the agent's component of the box `calls`.
fn agent(script: &str) -> String {
    let quoted = script.replace('\'', r"'\''");
    format!("boxlaunch exec -i -e PATH=/a3s/bin:/bin calls --in agent -- sh -c '{quoted}'")
}

pub(super) fn add(dir: &Path, scenario: Scenario, host: VirtualHost) -> (Scenario, VirtualHost) {
    let business = format!("business {{\n    {}", capabilities::OF_BUSINESS);
    let text = hello_checkout(dir)
        .replace("image \"oci:images/agent\" ", &format!("{AGENT} "))
        .replace("business {", &business)
        .replace("health \"http\" path=\"/health\"", "health \"none\"")
        .replace("pids=32", "pids=200");
    let (boxfile, bundle) = (dir.join("Boxfile"), dir.join("calls.box"));
    fs::write(&boxfile, text).unwrap();
    bake(&boxfile, &tools().programs.box_init, &bundle);
    let step = |steps: Scenario, name: &str, script: &str| steps.script(30, name, &agent(script));
    let steps = scenario.step("run", "boxlaunch run -d --name calls /calls");
    let say =
        format!("echo in | box-exec -i -e A=1 -w /tmp -u nobody sh -c '{SAY}'; echo status $?");
    let steps = [
        ("say", say.as_str()),
        ("plain", "echo in | box-exec cat; box-exec hostname; box-exec pwd"),
        ("statuses", "for i in 0 1 2 125 126 127 128 200 255; do box-exec sh -c \"exit $i\"; echo $?; done; \
            box-exec /none; echo $?; box-exec -w /none true; echo $?; box-exec -u none true; echo $?; \
            box-exec sh -c 'kill -9 $$'; echo $?; box-exec sh -c 'kill -USR1 $$'; echo $?"),
        ("usage", "box-exec; echo $?; box-exec --help | head -n 1; box-exec -x; echo $?"),
        ("both-ways", "head -c 3000000 /dev/urandom >/tmp/sent; box-exec -i cat </tmp/sent >/tmp/got; echo $?; cmp /tmp/sent /tmp/got && echo same"),
        ("timeout", "box-exec --timeout 1 sleep 1000; echo $?"),
        ("slowly", "box-exec sh -c 'yes | head -c 1000000' | { sleep 1; wc -c; }"),
        ("closed", "box-exec yes | head -n 1; sleep 0.2; box-exec sh -c 'ps | grep -c \"[y]es\"'"),
        ("killed", "box-exec sleep 999 & sleep 0.5; kill -9 $!; sleep 0.2; box-exec sh -c 'ps | grep -c \"[s]leep 999\"'"),
        ("asked", "box-exec sh -c 'trap \"echo asked; exit 9\" TERM; while :; do sleep 0.1; done' & sleep 0.5; kill $!; wait $!; echo $?"),
        ("hundred", "i=0; while [ $i -lt 100 ]; do box-exec echo $i; i=$((i + 1)); done | tail -n 1"),
        ("many", "for i in $(seq 80); do box-exec sh -c \"sleep 1; echo done\" & done; wait"),
        ("file", "ls -l /a3s/bin/box-exec | cut -c1-10; ls -l /a3s/run/box-exec.sock | cut -c1-10; echo x 2>/dev/null >/a3s/bin/box-exec || echo read-only"),
    ]
    .iter()
    .fold(steps, |steps, (name, script)| step(steps, name, script));
    let steps = capabilities::add_to(steps)
        .script(
            10,
            "others",
            "boxlaunch exec -u nobody --in agent calls -- /a3s/bin/box-exec true; echo $?; \
            boxlaunch exec calls -- ls /a3s",
        )
        .script(10, "stop", "boxlaunch stop calls; boxlaunch wait calls");
    (steps, host.file(bundle, "/calls"))
}

#[track_caller]
fn shows(name: &str, expected: &str) {
    let step = &RAN.0[name];
    println!("{}\n{}", step.stdout, step.stderr);
    assert_eq!(step.stdout, expected, "{step:?}");
}

fn a_command_of_the_agent_runs_in_business() {
    shows("say", "business-host\n1 /\n/tmp\n65534\nin\nstatus 7\n");
    assert_eq!(RAN.0["say"].stderr, "problem\n", "the streams are apart");
    shows("plain", "business-host\n/workspace/app\n");
}

fn its_status_is_that_of_the_command() {
    let expected = "0\n1\n2\n125\n126\n127\n128\n200\n255\n127\n126\n126\n137\n138\n";
    shows("statuses", expected);
    let usage = "125\nusage: box-exec [-i] [-w DIR] [-e NAME=VALUE]… [-u USER[:GROUP]] [--timeout SECONDS] [--] COMMAND…\n125\n";
    shows("usage", usage);
}

fn more_than_the_windows_goes_both_ways() {
    shows("both-ways", "0\nsame\n");
    shows("slowly", "1000000\n");
}

fn a_command_ends_with_its_caller_or_its_time() {
    shows("timeout", "124\n");
    shows("closed", "y\n0\n");
    shows("killed", "0\n");
    shows("asked", "asked\n9\n");
}

fn many_commands_run_one_after_the_other_and_at_once() {
    shows("hundred", "99\n");
    shows("many", &"done\n".repeat(80));
}

fn only_the_agents_user_can_ask() {
    shows("file", "-rwxr-xr-x\nsrw-------\nread-only\n");
    shows("others", "125\nskills\n");
    shows("stop", "calls\n0\n");
}

tests![
    a_command_of_the_agent_runs_in_business,
    its_status_is_that_of_the_command,
    more_than_the_windows_goes_both_ways,
    a_command_ends_with_its_caller_or_its_time,
    many_commands_run_one_after_the_other_and_at_once,
    only_the_agents_user_can_ask
];
