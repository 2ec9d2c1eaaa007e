//! Boxes with `sandbox`: a command succeeds in none of 87 attempts to leave its policy, does what the policy allows, and
//! starts hardly later.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use testbed::promises::{POLICY_ATTEMPTS, POLICY_COST};
use testkit::images::{Compression, Config, Image, Layer};

use crate::scenario::{Scenario, Step, bake, tools};

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
    deny-read "/secret" "/key" "/work/a/b/hidden"
    deny-write "/work/.git/hooks" "/work/kept/file"
}
"#;

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

/// Returns an image with the hostile program, and with what the policy protects.
fn image(program: &Path) -> Image {
    let layer = Layer::new()
        .dir("/tmp", 0o1777)
        .dir("/empty", 0o755)
        .dir("/etc", 0o755)
        .dir("/usr", 0o755)
        .dir("/var", 0o755)
        .file("/etc/passwd", 0o644, "root:x:0:0::/root:/bin/sh\n")
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
        .step(
            "run",
            "boxlaunch run -d --name fenced /fenced && boxlaunch run -d --name plain /plain",
        )
        .step("stay", "boxlaunch exec fenced /red-team stay")
        .step("business", "boxlaunch exec fenced /red-team leave")
        .step("called", "boxlaunch exec --in agent fenced /a3s/bin/box-exec /red-team leave")
        .step("agent", "boxlaunch exec --in agent fenced /red-team leave")
        .step("unfenced", "boxlaunch exec plain /red-team leave")
        .step("json", "boxlaunch exec --json fenced /red-team nothing")
        .script(30, "cost", COST)
        .script(30, "skill", SKILL)
        .script(10, "copy", COPY)
        .step("stop", "boxlaunch stop fenced plain")
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

#[test]
#[ignore = "needs the lean kernel"]
fn a_command_does_not_leave_its_policy() {
    assert_all_refused("business");
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_command_of_the_agent_does_not_leave_its_policy() {
    assert_all_refused("called");
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_command_in_the_agents_component_does_not_leave_its_policy() {
    assert_all_refused("agent");
}

/// Shows that the policy refuses the attempts, and not the component alone.
#[test]
#[ignore = "needs the lean kernel"]
fn without_a_policy_many_attempts_succeed() {
    let succeeded = lines("unfenced").iter().filter(|line| line.ends_with("succeeded")).count();
    assert!(succeeded > 30, "{succeeded}");
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_command_does_what_its_policy_allows() {
    let lines = lines("stay");
    assert_eq!(lines.len(), 12);
    assert!(lines.iter().all(|line| line.ends_with("\tdone")));
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_policy_hardly_delays_a_command() {
    let median = |name: &str| {
        let of = lines("cost").into_iter().filter_map(|line| line.strip_prefix(name));
        let mut times: Vec<f64> = of.map(|it| it.trim().parse().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times[2]
    };
    POLICY_COST.check((median("fenced") - median("plain")) / 1000.0);
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_skill_that_is_loaded_later_appears_to_a_command() {
    assert_eq!(lines("skill"), ["it is there"]);
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_copy_is_under_the_policy_too() {
    let step = &STEPS["copy"];
    assert_eq!(step.stdout, "0\n1\n", "{step:?}");
    assert!(step.stderr.contains("Read-only file system"), "{step:?}");
}

#[test]
#[ignore = "needs the lean kernel"]
fn a_denied_path_that_a_command_could_replace_is_refused_by_name() {
    let step = &STEPS["link"];
    assert_ne!(step.status, 0);
    assert!(
        step.stderr.contains("/work/link") && step.stderr.contains("symbolic link"),
        "{step:?}"
    );
}
