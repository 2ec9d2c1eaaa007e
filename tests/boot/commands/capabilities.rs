//! Capabilities that a Boxfile adds and drops: the sets in `/proc/self/status`, and which calls succeed.

use super::RAN;
use crate::scenario::Scenario;

/// What the business component of the box `calls` declares. Its agent drops all.
pub(super) const OF_BUSINESS: &str = r#"capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN""#;
/// Prints the capability sets, then runs four commands that each need a capability, such as `NET_RAW` for `ping`.
const TRY: &str = "grep ^Cap /proc/self/status; touch /tmp/$$; chmod 0 /tmp/$$
try() { \"$@\" >/dev/null 2>&1 && echo $1 || echo no $1; }
try ping -c 1 127.0.0.1; try chroot / true; try chown 1 /tmp/$$; try cat /tmp/$$";

pub(super) fn add_to(scenario: Scenario) -> Scenario {
    let command = |options: &str| format!("boxlaunch exec {options} calls -- sh -c '{TRY}'");
    scenario
        .step("business", &command(""))
        .step("agent", &command("--in agent"))
        .step("nobody-else", &command("--user nobody"))
        .step("tracing", "boxlaunch exec calls -- cat /proc/sys/kernel/yama/ptrace_scope")
}

/// Returns the output of [`TRY`] for a process with the capabilities `set` and the bounding set `bound`. `done` has a line
/// for each of the four commands, such as `no chown`.
fn expected(set: u64, bound: u64, done: &[&str]) -> String {
    let sets = [("Inh", 0), ("Prm", set), ("Eff", set), ("Bnd", bound), ("Amb", 0)];
    let sets = sets.map(|(name, set)| format!("Cap{name}:\t{set:016x}\n")).concat();
    sets + &done.join("\n") + "\n"
}

fn a_component_has_what_is_added_and_not_what_is_dropped() {
    let steps = &RAN.0;
    // The default set without CHOWN (0), with NET_RAW (13) and SYS_CHROOT (18).
    let business = 0x4FA | 1 << 13 | 1 << 18;
    let done = ["ping", "chroot", "no chown", "cat"];
    assert_eq!(steps["business"].stdout, expected(business, business, &done));
    let none = ["no ping", "no chroot", "no chown", "no cat"];
    assert_eq!(steps["agent"].stdout, expected(0, 0, &none), "{:?}", steps["agent"]);
    assert_eq!(steps["tracing"].stdout, "1\n", "a process traces what it has started");
    let nobody = &steps["nobody-else"];
    assert_eq!(nobody.stdout, expected(0, business, &none), "only root has any: {nobody:?}");
}

tests![a_component_has_what_is_added_and_not_what_is_dropped];
