//! Capabilities that a Boxfile adds and drops: the sets in `/proc/self/status`, and which calls succeed.

use std::collections::BTreeMap;
use std::fs;

use crate::scenario::{Scenario, Step, bake, tools};

const BOXFILE: &str = r#"box "capable"
agent {
    image "oci:images/business"
    entrypoint "/bin/sleep" "1000"
    health "none"
    capabilities drop="ALL"
    limits memory="64MiB" pids=32
}
business {
    image "oci:images/business"
    capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN"
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;
/// Prints the capability sets, then runs four commands that each need a capability, such as `NET_RAW` for `ping`.
const TRY: &str = "grep ^Cap /proc/self/status; touch /tmp/file; chmod 0 /tmp/file
try() { \"$@\" >/dev/null 2>&1 && echo $1 || echo no $1; }
try ping -c 1 127.0.0.1; try chroot / true; try chown 1 /tmp/file; try cat /tmp/file";

fn start() -> BTreeMap<String, Step> {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("capable.box"));
    testbed::hello::write_images(&tools.programs.hello_agent, &dir.path().join("images")).unwrap();
    fs::write(&boxfile, BOXFILE).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let command = |arguments: &str| format!("boxlaunch run {arguments} /capable -- sh -c '{TRY}'");
    Scenario::default()
        .step("business", &command(""))
        .step("agent", &command("--in agent"))
        .step("nobody", &command("--user nobody"))
        .step("tracing", "boxlaunch run -q /capable -- cat /proc/sys/kernel/yama/ptrace_scope")
        .start(&tools.host.clone().file(&bundle, "/capable"))
}

/// Returns the output of [`TRY`] for a process with the capabilities `set` and the bounding set `bound`. `done` has a line
/// for each of the four commands, such as `no chown`.
fn expected(set: u64, bound: u64, done: &[&str]) -> String {
    let sets = [("Inh", 0), ("Prm", set), ("Eff", set), ("Bnd", bound), ("Amb", 0)];
    let sets = sets.map(|(name, set)| format!("Cap{name}:\t{set:016x}\n")).concat();
    sets + &done.join("\n") + "\n"
}

fn a_component_has_what_is_added_and_not_what_is_dropped() {
    let steps = start();
    // The default set without CHOWN (0), with NET_RAW (13) and SYS_CHROOT (18).
    let business = 0x4FA | 1 << 13 | 1 << 18;
    let done = ["ping", "chroot", "no chown", "cat"];
    assert_eq!(steps["business"].stdout, expected(business, business, &done));
    let none = ["no ping", "no chroot", "no chown", "no cat"];
    assert_eq!(steps["agent"].stdout, expected(0, 0, &none), "{:?}", steps["agent"]);
    assert_eq!(steps["tracing"].stdout, "1\n", "a process traces what it has started");
    let nobody = &steps["nobody"];
    assert_eq!(nobody.stdout, expected(0, business, &none), "only root has any: {nobody:?}");
}

tests![a_component_has_what_is_added_and_not_what_is_dropped];
