//! Boxes with `sandbox`: a command succeeds in none of 87 attempts to leave its policy, does what the policy allows, and
//! starts hardly later.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};
use testbed::promises::{POLICY_ATTEMPTS, POLICY_COST};
use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, Step, bake, tools};
use crate::schema::assert_fits;

const BOXFILE: &str = r#"box "fenced"
agent {
    image "oci:image"
    health "none"
    limits memory="64MiB" pids=32
}
business {
    image "oci:image"
    autostart #true
    limits memory="64MiB" pids=32
}
vm cpus=1 memory="256MiB"
"#;

/// The policy that `red-team leave` tries to leave.
const SANDBOX: &str = r#"
sandbox "ci" {
    writable "/srv"
    deny-read "/secret" "/key" "/work/a/b/hidden"
    deny-write "/work/.git/hooks" "/work/kept/file"
}
"#;

/// Returns the accounts of the component. The number of `web` is the name of another account, and has another home, of which no
/// file can have the path.
fn passwd() -> String {
    let long = "h".repeat(300);
    format!(
        "root:x:0:0::/root:/bin/sh\n1000:x:7:7::/srv:/bin/sh\nlong:x:1000:1000::/{long}:/bin/sh\n\
         web:x:1000:1000::/home/web:/bin/sh\n"
    )
}

/// Lists the credentials of a user under whom neither component runs.
const HOME: &str = "for name in plain fenced; do
    echo $name; boxlaunch exec -u web $name /red-team list /home/web; boxlaunch exec -u 1000 $name /red-team list /home/web
done";

/// Denies a path that is a link in a writable directory.
const LINKED: &str = r#"
sandbox "default" {
    deny-write "/work/link"
}
"#;

/// Prints the microseconds of five commands in each of two boxes, in turn.
const COST: &str = r#"
micros() { echo ${1%.*}${1#*.}; }
for round in 1 2 3 4 5; do
    for name in plain fenced; do
        began=$EPOCHREALTIME
        boxlaunch exec $name /red-team nothing
        echo $name $(($(micros $EPOCHREALTIME) - $(micros $began)))
    done
done
"#;

/// Loads a skill while a command runs.
const SKILL: &str = "mkdir -p /tmp/notes; printf -- '---\nname: notes\ndescription: notes\n---\nWrite.\n' >/tmp/notes/SKILL.md
boxlaunch exec fenced /red-team await /a3s/skills/notes/SKILL.md & waiting=$!
sleep 1; boxlaunch skills fenced load /tmp/notes >/dev/null; wait $waiting";

/// Copies a file to a writable directory, and to one that is not.
const COPY: &str = "echo text >/tmp/text; boxlaunch cp /tmp/text fenced:/work/copied; echo $?
boxlaunch cp /tmp/text fenced:/etc/copied; echo $?";

/// The host replaces a kept file of a writable directory while a command runs, as an editor does that saves it under a new name. The
/// command appends to the file before and after. Then another command does.
const REPLACED: &str = "mkdir /tmp/shared; echo old >/tmp/shared/.mcp.json
boxlaunch run -q -d --name held -v /tmp/shared:/shared:rw /fenced
boxlaunch exec held /red-team twice /shared/.mcp.json /shared/go >/tmp/twice & command=$!
until grep -qs . /tmp/twice; do usleep 20000; done
echo new >/tmp/shared/new; mv /tmp/shared/new /tmp/shared/.mcp.json; touch /tmp/shared/go; wait $command
cat /tmp/twice; boxlaunch exec held /red-team twice /shared/.mcp.json /shared/go
cat /tmp/shared/.mcp.json; echo; boxlaunch rm -f held";

/// Returns an image with the hostile program, and with what the policy protects.
fn image(program: &Path) -> Image {
    let layer = Layer::new()
        .dir("/tmp", 0o1777)
        .dir("/empty", 0o755)
        .dir("/etc", 0o755)
        .dir("/usr", 0o755)
        .dir("/var", 0o755)
        .dir("/srv", 0o755)
        .file("/etc/passwd", 0o644, passwd())
        .dir("/home", 0o755)
        .dir("/home/web", 0o755)
        .dir("/home/web/.ssh", 0o755)
        .file("/home/web/.ssh/id", 0o644, "key")
        .file("/key", 0o644, "key")
        .dir("/secret", 0o755)
        .file("/secret/key", 0o644, "key")
        .dir("/root", 0o700)
        .dir("/root/.ssh", 0o700)
        .file("/root/.ssh/id", 0o600, "key")
        .dir("/work", 0o755)
        .symlink("/work/link", "/etc")
        .dir("/work/a", 0o755)
        .dir("/work/a/b", 0o755)
        .file("/work/a/b/hidden", 0o644, "key")
        .dir("/work/.git", 0o755)
        .dir("/work/.git/hooks", 0o755)
        .dir("/work/.vscode", 0o755)
        .file("/work/.vscode/tasks.json", 0o644, "{}")
        .dir("/work/kept", 0o755)
        .file("/work/kept/file", 0o644, "kept")
        .file("/work/kept/other", 0o644, "other")
        .file("/red-team", 0o755, fs::read(program).unwrap());
    let entrypoint = ["/red-team", "serve"].map(str::to_owned).to_vec();
    let working_dir = "/work".to_owned();
    Image::new(Config { entrypoint, working_dir, ..Config::default() }).with(layer.to_tar())
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let image = image(&tools.programs.red_team);
    image.write_layout(&dir.path().join("image"), "latest", Compression::Gzip).unwrap();
    let mut host = tools.host.clone();
    for (name, policy) in [("plain", ""), ("fenced", SANDBOX), ("linked", LINKED)] {
        let (boxfile, bundle) = (dir.path().join(name), dir.path().join(format!("{name}.box")));
        fs::write(&boxfile, format!("{BOXFILE}{policy}").replace("fenced", name)).unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        host = host.file(bundle, format!("/{name}"));
    }
    Scenario::default()
        .anew()
        .step(
            "run",
            "boxlaunch run -d --name fenced /fenced && boxlaunch run -d --name plain /plain",
        )
        // Before a program in the other box replaces the accounts.
        .script(10, "home", HOME)
        .step("stay", "boxlaunch exec fenced /red-team stay")
        .step("business", "boxlaunch exec fenced /red-team leave")
        .step("called", "boxlaunch exec --in agent fenced /a3s/bin/box-exec /red-team leave")
        .step("agent", "boxlaunch exec --in agent fenced /red-team leave")
        .step("unfenced", "boxlaunch exec plain /red-team leave")
        .step("json", "boxlaunch exec --json fenced /red-team nothing")
        .step("forbidden", "boxlaunch exec --json fenced -- rm -rf /")
        .script(30, "cost", COST)
        .script(30, "skill", SKILL)
        .script(10, "copy", COPY)
        .step("stop", "boxlaunch stop fenced plain")
        .script(30, "replaced", REPLACED)
        .step("link", "boxlaunch run --rm /linked -- /red-team nothing")
        .start(&host)
});

fn lines(name: &str) -> Vec<&'static str> {
    let step = &STEPS[name];
    println!("{}\n{}", step.stdout, step.stderr);
    step.stdout.lines().collect()
}

fn assert_all_refused(step: &str) {
    let lines = lines(step);
    for line in &lines {
        let outcome = line.split('\t').nth(1);
        assert_eq!(outcome, Some("refused"), "{line}");
    }
    POLICY_ATTEMPTS.check(lines.len() as f64);
}

fn a_command_does_not_leave_its_policy() {
    assert_all_refused("business");
}

fn a_command_of_the_agent_does_not_leave_its_policy() {
    assert_all_refused("called");
}

fn a_command_in_the_agents_component_does_not_leave_its_policy() {
    assert_all_refused("agent");
}

/// Shows that the policy refuses the attempts, and not the component alone.
fn without_a_policy_many_attempts_succeed() {
    let succeeded = lines("unfenced").iter().filter(|line| line.ends_with("succeeded")).count();
    assert!(succeeded > 30, "{succeeded}");
}

fn a_command_does_what_its_policy_allows() {
    let lines = lines("stay");
    assert_eq!(lines.len(), 13);
    assert!(lines.iter().all(|line| line.ends_with("\tdone")));
}

/// Returns `sandbox` of the result that a step has printed.
fn sandbox(step: &str) -> Value {
    let report = STEPS[step].json();
    assert_fits("exec", &report);
    report["sandbox"].clone()
}

fn a_result_has_the_policy_in_force() {
    let expected = json!({
        "state": "whole",
        "preset": "ci",
        "writable": ["/dev/shm", "/srv", "/tmp", "/var/tmp", "/work"],
        "deny_read": ["/key", "/secret", "/work/a/b/hidden"],
        "deny_write": ["/work/.git/hooks", "/work/kept/file"],
        "network": false,
        "max_output_bytes": 10_000_000,
        "denied": [],
    });
    assert_eq!(sandbox("json"), expected);
}

fn the_result_of_a_forbidden_command_has_the_rule() {
    assert_eq!(STEPS["forbidden"].status, 126);
    let result = sandbox("forbidden");
    assert_eq!(result["state"], "not-started");
    let denied = json!([{
        "kind": "process",
        "subject": "rm -rf /",
        "rule": "recursive-delete-root",
        "reason": "forbidden: it deletes the whole file system, a home directory or a directory of the system",
    }]);
    assert_eq!(result["denied"], denied);
}

fn the_credentials_of_the_commands_user_are_hidden() {
    let [shown, id, hidden] =
        ["d0755 /home/web/.ssh", "-0644 /home/web/.ssh/id", "mount /home/web/.ssh"];
    let expected = ["plain", shown, id, shown, id, "fenced", hidden, hidden];
    assert_eq!(lines("home"), expected);
}

fn a_policy_hardly_delays_a_command() {
    let median = |name: &str| {
        let of = lines("cost").into_iter().filter_map(|line| line.strip_prefix(name));
        let mut times: Vec<f64> = of.map(|it| it.trim().parse().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times[2]
    };
    POLICY_COST.check((median("fenced") - median("plain")) / 1000.0);
}

fn a_skill_that_is_loaded_later_appears_to_a_command() {
    assert_eq!(lines("skill"), ["it is there"]);
}

fn a_copy_is_under_the_policy_too() {
    let step = &STEPS["copy"];
    assert_eq!(step.stdout, "0\n1\n", "{step:?}");
    assert!(step.stderr.contains("Read-only file system"), "{step:?}");
}

/// A limit that docs/command-policy.md describes.
fn a_kept_file_that_the_host_replaces_is_kept_again_from_the_next_command_on() {
    let lines = lines("replaced");
    let [started, appended @ .., new, added, removed] = &lines[..] else { panic!("{lines:?}") };
    let is_done: Vec<bool> = appended.iter().map(|it| *it == "done").collect();
    assert_eq!(is_done, [false, true, false, false], "{lines:?}");
    assert_eq!([*started, *new, *added, *removed], ["held", "new", "x", "held"]);
}

fn a_denied_path_that_a_command_could_replace_is_refused_by_name() {
    let step = &STEPS["link"];
    assert_ne!(step.status, 0);
    assert!(
        step.stderr.contains("/work/link") && step.stderr.contains("symbolic link"),
        "{step:?}"
    );
}

tests![
    a_command_does_not_leave_its_policy,
    a_command_of_the_agent_does_not_leave_its_policy,
    a_command_in_the_agents_component_does_not_leave_its_policy,
    without_a_policy_many_attempts_succeed,
    a_command_does_what_its_policy_allows,
    a_result_has_the_policy_in_force,
    the_result_of_a_forbidden_command_has_the_rule,
    the_credentials_of_the_commands_user_are_hidden,
    a_policy_hardly_delays_a_command,
    a_skill_that_is_loaded_later_appears_to_a_command,
    a_copy_is_under_the_policy_too,
    a_kept_file_that_the_host_replaces_is_kept_again_from_the_next_command_on,
    a_denied_path_that_a_command_could_replace_is_refused_by_name
];
