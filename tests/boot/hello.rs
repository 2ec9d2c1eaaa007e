//! The box of examples/hello: readiness, isolation, exit statuses, limits and the budget.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use box_contract::manifest::KERNEL_TYPE;
use serde_json::Value;
use testbed::hello::BUDGET_MS;
use testbed::promises::{
    CAPABILITIES, HELLO_INIT, HELLO_JAIL, HELLO_KERNEL, HELLO_OVER_FLOOR, HELLO_READY, HELLO_START,
    HELLO_VMM, STOPPED_AFTER,
};

use crate::scenario::{Scenario, Step, assert_ready, bake, blob, hello_checkout, manifest, tools};
use crate::schema::assert_fits;

/// Prints the component's host name, directories, processes and skill, then asks the agent for its health.
const LOOK: &str = "hostname; ls -d /workspace /agent; cat /proc/1/comm; ls /proc | grep -c '^[0-9]'; \
    cat /a3s/skills/greet/SKILL.md | head -n 2; wget -qO- http://127.0.0.1:4088/health";
/// Starts more processes than the business component may have, then asks the agent for its health.
const TOO_MANY: &str = "sh -c 'n=0; while [ $n -lt 64 ]; do sleep 2 & n=$((n+1)); echo $n; done'; \
    echo status $?; sleep 3; wget -qO- http://127.0.0.1:4088/health";
/// Uses more memory than the business component may have, then asks the agent for its health.
const TOO_MUCH: &str = "dd if=/dev/zero of=/dev/null bs=100M count=1; \
    echo status $?; wget -qO- http://127.0.0.1:4088/health";
/// The reason of a failed health check, which asks the agent for a missing page.
const SICK: &str = "GET /sick is answered with 404";
/// Mounts a file system at `/root`, which exists in the component and on the virtual host.
const MOUNT: &str = "grep -w tmpfs /proc/filesystems; ls -d /root && mount -t tmpfs mounted /root; \
    grep mounted /proc/mounts";
/// Tries to get out of the component, and to change its limits.
const ESCAPE: &str = "mknod /tmp/vda b 254 0; head -c 1 /tmp/vda; \
    echo 1 >/sys/fs/cgroup/pids.max; echo 1 >/sys/block/vda/queue/read_ahead_kb; mkdir /sys/made; hostname stolen; hostname; ls /proc/1/root/roots /roots; \
    chroot / true && echo chrooted; unshare -Ur true && echo unshared; \
    grep -E '^(NoNewPrivs|Cap)' /proc/self/status";
/// Replaces `/dev/null` by a link to the memory of the component's first process.
const SWAP: &str = "rm /dev/null && ln -s /proc/1/mem /dev/null; readlink /dev/null; \
    head -c 1 /proc/1/mem; wget -qO- http://127.0.0.1:4088/health";

/// The results, and the report of `boxlaunch verify` about the box, made by the first test that uses them. If this start fails, the
/// other tests fail at once.
static STARTED: LazyLock<(BTreeMap<String, Step>, Value)> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let boxfile = hello_checkout(dir.path());
    let budget = format!("{BUDGET_MS}ms");
    let write_with = |name: &str, text: &str, init: &Path| {
        fs::write(dir.path().join(name), text).unwrap();
        let bundle = dir.path().join(format!("{name}.box"));
        bake(&dir.path().join(name), init, &bundle);
        bundle
    };
    let write = |name: &str, text: &str| write_with(name, text, &tools.programs.box_init);
    let late = write_with("late", &boxfile, &tools.programs.late_init);
    let hello = write("hello", &boxfile);
    let strict = write("strict", &boxfile.replace(&budget, "1ms"));
    let sick = write("sick", &boxfile.replace("path=\"/health\"", "path=\"/sick\""));
    let kernel = blob(&hello, manifest(&hello).blob(KERNEL_TYPE).unwrap());
    let host =
        tools.host.clone().file(&hello, "/hello").file(&strict, "/strict").file(&sick, "/sick");
    let host = host.file(kernel, "/kernel").file(&late, "/late");
    let mut verify = Command::new(&tools.programs.boxlaunch);
    verify.args(["verify", "--json"]).arg(&hello).env("BOXLAUNCH_STATE", dir.path().join("state"));
    let verify = verify.output().unwrap();
    assert!(verify.status.success(), "{verify:?}");
    let verified = serde_json::from_slice(&verify.stdout).unwrap();
    let steps = Scenario::default()
        .run("first", "/hello", "exit 7")
        .step("doctor", "boxlaunch doctor --json")
        .step("floor", "boxlaunch floor /kernel 1 256")
        .run_all(
            15,
            "inside",
            "run --json /hello",
            &[
                ("look", LOOK),
                ("mount", MOUNT),
                ("escape", ESCAPE),
                ("too-many", TOO_MANY),
                ("too-much", TOO_MUCH),
                ("swap", SWAP),
            ],
        )
        .step("mount-on-host", &format!("sh -c '{MOUNT}; umount /root'"))
        .step("sick", "boxlaunch run --budget off --startup-timeout 2 /sick -- echo ran")
        .run("never", "/sick", "echo ran")
        .run("over-budget", "/strict", "echo ran")
        .step("reported", "boxlaunch run --budget report /strict -- echo ran")
        .step("late", "boxlaunch run -q --budget off /late -- sh -c 'echo ran; kill -9 $$'")
        .start(&host);
    (steps, verified)
});

fn step(name: &str) -> &'static Step {
    &STARTED.0[name]
}

/// Returns the result of one of the commands of the step `inside`.
fn inside(name: &str) -> Step {
    let step = step("inside");
    step.parts().remove(name).unwrap_or_else(|| panic!("no {name}: {step:?}"))
}

/// Returns the report of a run, which must have ended with `status`.
fn report(name: &str, status: i32) -> Value {
    let step = step(name);
    assert_eq!(step.status, status, "{step:?}");
    let report = step.json();
    assert_fits("run", &report);
    report
}

fn init_starts_without_standard_streams() {
    let step = step("late");
    assert_eq!((step.status, step.stdout.as_str()), (128 + 9, "ran\n"), "{step:?}");
}

fn the_agent_becomes_ready_and_a_command_sees_its_root_and_host_name() {
    let report = report("inside", 0);
    assert_ready(&report);
    assert_eq!(report["verified"], "receipt", "the box was verified before");
    let look = inside("look");
    assert_eq!(look.status, 0, "{look:?}");
    let lines: Vec<_> = look.stdout.lines().collect();
    assert_eq!(lines[0], "business-host");
    assert_eq!(lines[1], "/workspace", "its own root, and nothing of the agent's");
    assert!(!look.stdout.contains("/agent\n"));
    assert_eq!(lines[2], "box-holder", "its first process is its own");
    let processes: u32 = lines[3].parse().unwrap();
    assert!(processes <= 5, "it sees {processes} processes");
    assert_eq!(lines[4..6], ["---", "name: greet"]);
    assert!(lines[6].contains("HEALTHY"), "the agent is reached over loopback: {lines:?}");
}

fn a_test_guest_finds_that_kvm_works() {
    let (first, again) = (report("first", 7), step("doctor"));
    assert_eq!((again.status, again.stderr.as_str()), (0, ""), "{again:?}");
    let doctor = again.json();
    assert_fits("doctor", &doctor);
    let kvm = doctor["rows"].as_array().unwrap().iter().find(|row| row["name"] == "kvm").unwrap();
    assert_eq!((&doctor["boots"], &kvm["state"]), (&"kvm".into(), &"ok".into()), "{doctor}");
    // The first run started a test guest before the box. Its result is kept, so later runs start none.
    let vmm = |report: &Value| report["phases_ms"]["vmm"].as_f64().unwrap();
    let (first, later) = (vmm(&first), vmm(&report("inside", 0)));
    println!("vmm {first:.2} ms with a test guest before it, {later:.2} ms without");
    assert!((first - later).abs() < 10.0, "the test guest is no part of a start: {first}, {later}");
}

fn exit_statuses_arrive() {
    assert_eq!(report("first", 7)["command"]["status"], 7);
    assert_eq!(step("late").status, 128 + 9, "{:?}", step("late"));
}

fn the_process_limit_stops_a_component_but_not_the_agent() {
    let Step { stdout, .. } = inside("too-many");
    let started = stdout.lines().filter(|line| line.parse::<u32>().is_ok()).count();
    assert!((8..32).contains(&started), "{started} processes were started");
    assert!(stdout.contains("status 2"), "the shell could not fork: {stdout}");
    assert!(stdout.contains("HEALTHY"), "{stdout}");
}

fn the_memory_limit_stops_a_component_but_not_the_agent() {
    let Step { stdout, .. } = inside("too-much");
    assert!(stdout.contains("status 137") && stdout.contains("HEALTHY"), "{stdout}");
    assert_eq!(report("inside", 0)["command"]["oom_killed"], true);
}

fn an_agent_that_fails_its_health_check_is_never_ready() {
    let step = step("sick");
    assert_eq!((step.status, step.stdout.as_str()), (1, ""), "{step:?}");
    let reason = "error: the agent was not ready after 2 s; its health check: port 4088: ";
    assert!(step.stderr.contains(&(reason.to_owned() + SICK)), "{step:?}");
}

fn assert_cannot_mount() {
    let permitted = step("mount-on-host");
    assert!(permitted.stdout.contains("\nmounted /root tmpfs "), "{permitted:?}");
    let refused = inside("mount");
    assert_eq!(refused.stdout, "nodev\ttmpfs\n/root\n", "the same can be mounted: {refused:?}");
    // busybox prints this text only for EPERM.
    assert_eq!(refused.stderr, "mount: permission denied (are you root?)\n", "{refused:?}");
}

fn a_component_cannot_mount_or_leave() {
    assert_cannot_mount();
    let escape = inside("escape");
    let lines: Vec<_> = escape.stdout.lines().collect();
    assert_eq!(lines[0], "business-host", "{escape:?}");
    assert!(!escape.stdout.contains("chrooted"), "{escape:?}");
    assert!(!escape.stdout.contains("unshared"), "{escape:?}");
    assert!(escape.stdout.contains("NoNewPrivs:\t1"), "{escape:?}");
    let none = format!("{:016x}", 0);
    let kept = "00000000000004fb";
    CAPABILITIES.check(f64::from(u64::from_str_radix(kept, 16).unwrap().count_ones()));
    let sets = [("Inh", &*none), ("Prm", kept), ("Eff", kept), ("Bnd", kept), ("Amb", &*none)];
    for (set, expected) in sets {
        let line = format!("Cap{set}:\t{expected}");
        assert!(lines.contains(&line.as_str()), "{line} is missing: {escape:?}");
    }
    let errors = &escape.stderr;
    let settings = "/sys/block/vda/queue/read_ahead_kb: Read-only file system";
    let made = "'/sys/made': Read-only file system";
    for refused in ["mknod:", "pids.max", settings, made, "hostname:", "/roots"] {
        assert!(errors.contains(refused), "{refused} was not refused: {errors}");
    }
    // EPERM is from the seccomp filter. The kernel would return ENOSPC, because it allows no user namespaces.
    assert!(errors.contains("unshare(0x10000000): Operation not permitted"), "{errors}");
}

fn a_swapped_null_device_does_no_harm() {
    let swap = inside("swap");
    assert_eq!(swap.status, 0, "{swap:?}");
    let lines: Vec<_> = swap.stdout.lines().collect();
    assert_eq!(lines[0], "/proc/1/mem", "{swap:?}");
    assert!(lines[1].contains("HEALTHY"), "nothing was read, and the agent continues: {swap:?}");
    assert!(swap.stderr.contains("/proc/1/mem: Permission denied"), "{swap:?}");
}

fn the_start_is_near_the_floor() {
    let floor = step("floor").json()["ready_ms"].as_f64().unwrap();
    let phases = &report("inside", 0)["phases_ms"];
    let total = phases["total"].as_f64().unwrap();
    println!("floor {floor:.1} ms, hello {total:.1} ms, ratio {:.3}: {phases}", total / floor);
    let parts = ["vmm", "jail", "kernel", "init", "ready"];
    let sum: f64 = parts.iter().map(|part| phases[part].as_f64().unwrap()).sum();
    assert!((sum - total).abs() < 0.001, "the phases are the whole: {phases}");
    HELLO_OVER_FLOOR.check(total / floor);
}

fn the_phases_keep_what_is_promised() {
    let phases = &report("inside", 0)["phases_ms"];
    let promised = [
        ("total", HELLO_START),
        ("vmm", HELLO_VMM),
        ("jail", HELLO_JAIL),
        ("kernel", HELLO_KERNEL),
        ("init", HELLO_INIT),
        ("ready", HELLO_READY),
    ];
    for (phase, promise) in promised {
        promise.check(phases[phase].as_f64().unwrap());
    }
}

fn an_impossible_budget_stops_the_box_with_a_table() {
    let (step, reported) = (step("over-budget"), step("reported"));
    assert_eq!(step.status, 4, "{step:?}");
    assert!(!step.stdout.contains("ran"), "the command must not run: {step:?}");
    assert_eq!(step.json()["errors"][0]["code"], "over-budget");
    assert!(step.stderr.contains("total") && step.stderr.contains("1 ms"), "{step:?}");
    assert_eq!((reported.status, reported.stdout.as_str()), (0, "ran\n"), "{reported:?}");
    assert!(reported.stderr.contains("over by"), "{reported:?}");
}

fn the_first_start_of_a_box_is_within_its_budget_and_reports_the_hashing() {
    let report = report("first", 7);
    assert_eq!((&report["verified"], &report["within_budget"]), (&"hashed".into(), &true.into()));
    let verify = report["verify_ms"].as_f64().unwrap();
    let vmm = report["phases_ms"]["vmm"].as_f64().unwrap();
    assert!(verify > 0.0 && vmm < verify, "the hashing is no part of a phase: {report}");
    assert_eq!(report["budget"]["total"].as_f64(), Some(f64::from(BUDGET_MS)));
    let total = report["phases_ms"]["total"].as_f64().unwrap();
    println!("ready after {total:.1} ms, the first time");
    assert!(total <= f64::from(BUDGET_MS), "{report}");
}

fn an_agent_that_never_gets_ready_is_stopped_when_the_budget_is_used_up() {
    let report = report("never", 4);
    let total = report["phases_ms"]["total"].as_f64().unwrap();
    assert!(total >= f64::from(BUDGET_MS), "{report}");
    println!("stopped {:.1} ms after the budget's total", total - f64::from(BUDGET_MS));
    STOPPED_AFTER.check(total - f64::from(BUDGET_MS));
    assert_eq!(report["phases_ms"]["ready"], Value::Null);
    assert_eq!(report["errors"][0]["code"], "over-budget");
    let message = report["errors"][0]["message"].as_str().unwrap();
    let reason = message.strip_prefix("the box's budget was exceeded before the agent was ready; ");
    assert_eq!(reason, Some(format!("its health check: port 4088: {SICK}").as_str()), "{message}");
    let row = step("never").stderr.lines().find(|line| line.starts_with("ready ")).unwrap();
    assert!(row.ends_with("not reached"), "{row}");
}

fn verifying_names_every_blob() {
    let report = &STARTED.1;
    assert_eq!(report["ok"], true, "{report}");
    let blobs = report["blobs"].as_array().unwrap();
    let names: Vec<_> = blobs.iter().map(|blob| blob["name"].as_str().unwrap()).collect();
    println!("{names:?}");
    let mut kinds = names.clone();
    kinds.dedup();
    assert_eq!(kinds, ["config", "metadata", "segment", "init", "kernel", "listing"]);
    for blob in blobs {
        let digest: Result<box_digest::Digest, _> = blob["digest"].as_str().unwrap().parse();
        assert!(digest.is_ok() && blob["ok"] == true, "{blob}");
    }
}

tests![
    init_starts_without_standard_streams,
    the_agent_becomes_ready_and_a_command_sees_its_root_and_host_name,
    a_test_guest_finds_that_kvm_works,
    exit_statuses_arrive,
    the_process_limit_stops_a_component_but_not_the_agent,
    the_memory_limit_stops_a_component_but_not_the_agent,
    an_agent_that_fails_its_health_check_is_never_ready,
    a_component_cannot_mount_or_leave,
    a_swapped_null_device_does_no_harm,
    an_impossible_budget_stops_the_box_with_a_table,
    the_first_start_of_a_box_is_within_its_budget_and_reports_the_hashing,
    an_agent_that_never_gets_ready_is_stopped_when_the_budget_is_used_up,
    verifying_names_every_blob
];

tests![MEASURED: the_start_is_near_the_floor, the_phases_keep_what_is_promised];
