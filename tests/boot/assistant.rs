//! examples/assistant: an agent repairs a project with the help of a model, or reports why it cannot. `tests/show/assistant.rs` has the
//! tests of the agent that need no box.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::assistant::link_images;
use testbed::debian::DebianImages;
use testbed::{VirtualHost, program};
use testkit::images::{Compression, Config, Image, Layer, pack};

use crate::page::{self, assert_page};
use crate::scenario::{Scenario, Step, bake, tools};

const PAGE: &str = include_str!("../../examples/assistant/README.md");
/// Files of the example's skill.
const RULES: &str = "skills/house-rules/SKILL.md";
const ENTRY: &str = "skills/house-rules/tools/changelog_entry.sh";
/// Another agent for the same task, in an image without Python. It repairs nothing, and says that it is done.
const STRANGER: &str = r#"#!/bin/sh
set -e
cd /a3s/workspace
key=$(env | grep -c secret-key || true)
task=$(sed 's/.*"description":"\([^"]*\)".*/\1/' /task/spec.json)
tests=$(/a3s/bin/box-exec -w "$PWD" node test.js | tail -n 1)
echo "{\"ok\": true, \"task\": \"$task\", \"key\": $key, \"tests\": \"$tests\", \"skills\": \"$(ls /a3s/skills)\"}" >/task/result.json
"#;
/// Prepares the directory of the page's commands: the example's files, the box, a running model, and its key.
const BEFORE_PAGE: &str = "ifconfig lo 127.0.0.1 up
cp -r /example/. .; ln -s /assistant assistant.box; export MODEL_KEY=secret-key SSL_CERT_FILE=/ca.pem
echo $MODEL_KEY >key; assistant-model 127.0.0.1:4180 key >model.log & until grep -qs ready model.log; do sleep 0.1; done";
/// `work NAME BOX [OPTION]` runs a box as the box NAME in the new directory `/tmp/NAME`, with a model that is started with the option.
/// Prints four parts: the box's output, the result, the model's log, and the changes of the project. `rules` is the mounted skill.
pub(crate) const WORK: &str = r#"
ifconfig lo 127.0.0.1 up; export SSL_CERT_FILE=/ca.pem; rules=/example/skills/house-rules
work() {
    mkdir -p /tmp/$1/project; cd /tmp/$1; echo secret-key >key; cp key given; prepare; cp -r /example/project/. project; fill
    assistant-model 127.0.0.1:4180 key $3 >model.log & model=$!
    until grep -qs ready model.log; do sleep 0.1; done
    while_it_runs & boxlaunch run --rm --name $1 --result result.json --share project=project --secret MODEL_KEY=file:given \
        --skill house-rules=$rules --network-local 127.0.0.1:4180 /$2 >log 2>&1; echo "exit $?" >>log
    kill $model 2>/dev/null; grep -v 'verified\|jail lacks\|is ready' log | sed 's/succeeded after .*/succeeded/'; rm -f project/filler; echo --; cat result.json; echo; echo --; sed 's/^[0-9]* //' model.log; echo --; diff -ruN /example/project project | grep '^[-+]'; ls -A project
}
prepare() { :; }
fill() { :; }
while_it_runs() { :; }
"#;
/// After the page's commands: prints three parts: the result of the first run, the model's log of both runs, and the changes of the
/// project.
const AFTER_PAGE: &str = r#"cd /tmp/page; cat result.json; echo; echo --; sed 's/^[0-9]* //' model.log; echo --
diff -ruN /example/project work | grep '^[-+]' | sed 's,^+++ work/,+++ project/,'; ls -A work"#;
const WRONG_KEY: &str = "prepare() { echo another-key >given; }; work wrong assistant";
/// The mounted skill has rules and no tools. While the model thinks, a skill with a tool is loaded, and later unloaded. Then the model is
/// killed.
const KILLED: &str = r#"prepare() {
    cp -r $rules /tmp/changes; sed -i 's/^name: house-rules/name: changes/' /tmp/changes/SKILL.md
    cp -r $rules /tmp/rules; rules=/tmp/rules; sed -i '/^system_prompt/d; /^tools:/,/^---/{/^---/!d}' $rules/SKILL.md
}
await() { until grep -qs "$1" model.log; do sleep 0.1; done; }
while_it_runs() {
    await 'seen the tests fail'; boxlaunch skills killed load /tmp/changes >/dev/null; touch answer
    await 'is offered the tool'; touch answer
    await 'takes the right one'; boxlaunch skills killed unload changes >/dev/null; touch answer
    await 'seen the tests pass'; kill -9 $model
}
work killed assistant --stall"#;
const FULL: &str = "prepare() { mount -t tmpfs -o size=64k tmpfs project; }; fill() { cat /dev/zero >project/filler 2>/dev/null; }
work full assistant";

/// The model's log of a successful repair by an agent that offers it no tool of a skill.
pub(crate) const ASKED: &str = "\
ready
asks for the files
proposes a repair
has seen the tests fail, and proposes another repair
was refused a place, and takes the right one
has seen the tests pass
";
/// The changes of the project after a successful repair, and the names of its files.
pub(crate) const REPAIRED: &str = r#"--- /dev/null
+++ project/CHANGES.md
+- slug: only the first space of a title became a hyphen, and other signs stayed.
--- /example/project/slug.js
+++ project/slug.js
-exports.slug = (title) => title.toLowerCase().replace(" ", "-");
+exports.slug = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
CHANGES.md
slug.js
test.js
"#;

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let dir = example();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("my-agent.tar"), strange_agent(&at("strange"))).unwrap();
    let mut host = host();
    for (name, text) in [
        ("assistant", boxfile("", "")),
        (
            "stranger",
            boxfile(
                "image \"oci:images/python\"",
                page::blocks(PAGE, "kdl").last().unwrap().trim(),
            ),
        ),
    ] {
        fs::write(at("Boxfile"), text).unwrap();
        bake(&at("Boxfile"), &tools.programs.box_init, &at(name));
        host = host.disk(at(name), format!("/{name}"));
    }
    let script = |scenario: Scenario, (name, text): (&str, &str)| {
        scenario.script(90, name, &format!("{WORK}\n{text}"))
    };
    [
        ("wrong-key", WRONG_KEY),
        ("killed", KILLED),
        ("full", FULL),
        ("stranger", "work stranger stranger"),
    ]
    .into_iter()
    .fold(Scenario::default(), script)
    .script(60, "page", &page::script(PAGE, BEFORE_PAGE))
    .script(5, "after-page", AFTER_PAGE)
    .start(&host)
});

/// Returns a directory with the files that the example's Boxfile names. The tests write their Boxfiles to it.
pub(crate) fn example() -> TempDir {
    let tools = tools();
    let example = tools.workspace.path("examples/assistant");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    link_images(&tools.workspace, &at("images"), &mut |line| println!("{line}")).unwrap();
    for folder in ["tools", "prompts"] {
        fs::create_dir_all(at("skills/house-rules").join(folder)).unwrap();
    }
    for name in ["agent.py", RULES, "skills/house-rules/prompts/system.md", ENTRY] {
        fs::copy(example.join(name), at(name)).unwrap();
    }
    dir
}

/// Returns the example's Boxfile with `to` in place of the first `from`.
pub(crate) fn boxfile(from: &str, to: &str) -> String {
    let path = tools().workspace.path("examples/assistant/Boxfile");
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    text.replacen(from, to, 1)
}

/// Returns a virtual host with the model and the example's files, which [`WORK`] needs. The boxes are not included.
pub(crate) fn host() -> VirtualHost {
    let tools = tools();
    let example = tools.workspace.path("examples/assistant");
    let host = tools.host.clone().memory(1600);
    host.file(&tools.programs.assistant_model, "/bin/assistant-model")
        .file(test_server::roots(), "/ca.pem")
        .file(example.join("project"), "/example/project")
        .file(example.join("skills"), "/example/skills")
}

/// Returns an archive of an image with busybox and the agent [`STRANGER`].
fn strange_agent(folder: &Path) -> Vec<u8> {
    let busybox = fs::read(program::find("busybox").unwrap()).unwrap();
    let layer = Layer::new().dir("/bin", 0o755).file("/bin/busybox", 0o755, busybox);
    let layer = ["sh", "env", "grep", "sed", "tail", "ls", "cat"]
        .into_iter()
        .fold(layer, |layer, name| layer.symlink(&format!("/bin/{name}"), "busybox"));
    let config = Config {
        entrypoint: vec!["/bin/strange-agent".to_owned()],
        env: vec!["PATH=/bin".to_owned()],
        ..Config::default()
    };
    let layer = layer.file("/bin/strange-agent", 0o755, STRANGER).to_tar();
    Image::new(config)
        .with(layer)
        .write_layout(folder, DebianImages::TAG, Compression::Gzip)
        .unwrap();
    pack(folder).unwrap().bytes().to_vec()
}

/// Returns the four parts of a step's output: the box's output, the result, the model's log, and the changes of the project.
fn parts(name: &str) -> [&'static str; 4] {
    let parts: Vec<_> = STEPS[name].stdout.split("--\n").collect();
    parts.try_into().unwrap_or_else(|_| panic!("{:?}", STEPS[name]))
}

/// Returns the output of the page's first run, which is the page's second command.
fn repair() -> &'static str {
    let page = &STEPS["page"];
    page.stdout.split("----\n").nth(1).unwrap_or_else(|| panic!("{page:?}"))
}

fn result(name: &str) -> Value {
    serde_json::from_str(parts(name)[1]).unwrap_or_else(|_| panic!("{:?}", STEPS[name]))
}

/// Checks that a run has failed with `error` in its result, and that the project is unchanged.
fn assert_failed(name: &str, error: &str) {
    let [printed, _, _, project] = parts(name);
    let expected = json!({ "ok": false, "error": error, "changed": [] });
    assert_eq!(result(name), expected, "{:?}", STEPS[name]);
    assert!(printed.contains(&format!("failed: {error}\n")), "{printed}");
    assert!(printed.ends_with("exit 1\n"), "{printed}");
    assert_eq!(project, "slug.js\ntest.js\n");
}

fn the_agent_repairs_the_project() {
    let after: Vec<_> = STEPS["after-page"].stdout.split("--\n").collect();
    let [result, model, project] = after[..] else { panic!("{:?}", STEPS["after-page"]) };
    insta::assert_snapshot!([repair(), result].join("--\n"), @r#"
    task slug-1: The test of slug.js fails. Make it pass.
    skill house-rules loaded
    step 1: read_file slug.js: 128 characters
    step 2: read_file test.js: 551 characters
    step 3: write_file slug.js: written
    step 4: run_tests: 3 passed, 1 failed
    step 5: write_file slug.js: written
    step 6: run_tests: 4 passed, 0 failed
    step 7: changelog_entry: 81 characters
    step 8: write_file ../CHANGES.md: error: ../CHANGES.md is outside of the project
    step 9: write_file CHANGES.md: written
    step 10: run_tests: 4 passed, 0 failed
    done
    --
    {"ok": true, "summary": "Only the first space of a title became a hyphen.", "changed": ["slug.js", "CHANGES.md"]}
    "#);
    // The last line is about the second run, whose conversation continues that of the first.
    insta::assert_snapshot!(model, @"
    ready
    asks for the files
    proposes a repair
    has seen the tests fail, and proposes another repair
    has a line for the changes, and writes it
    was refused a place, and takes the right one
    has seen the tests pass
    remembers its repair
    ");
    assert_eq!(project, REPAIRED);
}

fn the_recording_shows_what_happens() {
    let recording = include_str!("../../docs/assistant.svg");
    let lines: Vec<_> = repair().lines().filter(|it| it.starts_with("step ")).collect();
    assert_eq!(lines.len(), 10);
    for line in lines {
        assert!(
            recording.contains(line),
            "`cargo xtask demo assistant` makes the recording, to be copied to docs: {line}"
        );
    }
}

fn the_page_shows_what_happens() {
    assert_page(PAGE, &STEPS["page"]);
}

fn a_wrong_key_is_the_reason_of_a_failure() {
    assert_failed("wrong-key", "asking the model failed with the status 401: the key is not valid");
}

fn a_skill_is_activated_while_the_agent_works_and_a_model_that_dies_is_the_reason_of_a_failure() {
    println!("{}", STEPS["killed"].stderr);
    insta::assert_snapshot!(STEPS["killed"].stdout, @r#"
    boxlaunch: /tmp/killed/project is shared at /a3s/workspace, read-write
    boxlaunch: /tmp/rules is shared at /a3s/skills/house-rules, read-only
    boxlaunch: the box reaches https://127.0.0.1:4180/v1 with the secret MODEL_KEY
    task slug-1: The test of slug.js fails. Make it pass.
    skill house-rules loaded
    step 1: read_file slug.js: 128 characters
    step 2: read_file test.js: 551 characters
    step 3: write_file slug.js: written
    step 4: run_tests: 3 passed, 1 failed
    step 5: write_file slug.js: written
    step 6: run_tests: 4 passed, 0 failed
    step 7: write_file ../CHANGES.md: error: ../CHANGES.md is outside of the project
    skill changes loaded
    step 8: changelog_entry: 81 characters
    step 9: write_file CHANGES.md: written
    skill changes unloaded
    failed: asking the model failed with the status 502: The box cannot use the service model: the server disconnected.
    boxlaunch: the task has failed: the agent ended with the status 1
    exit 1
    --
    {"ok": false, "error": "asking the model failed with the status 502: The box cannot use the service model: the server disconnected.", "changed": ["slug.js", "CHANGES.md"]}
    --
    ready
    asks for the files
    proposes a repair
    has seen the tests fail, and proposes another repair
    is offered the tool of a skill, and uses it
    was refused a place, and takes the right one
    has seen the tests pass
    --
    --- /dev/null
    +++ project/CHANGES.md
    +- slug: only the first space of a title became a hyphen, and other signs stayed.
    --- /example/project/slug.js
    +++ project/slug.js
    -exports.slug = (title) => title.toLowerCase().replace(" ", "-");
    +exports.slug = (title) => title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    CHANGES.md
    slug.js
    test.js
    "#);
}

fn a_full_disk_is_the_reason_of_a_failure() {
    assert_failed("full", "slug.js cannot be written: No space left on device");
}

/// The Boxfile differs from the example's only in the line that names the agent's image. This agent's result says that it is done.
fn the_agent_of_somebody_else_gets_the_same_task_and_does_not_decide_that_it_is_done() {
    insta::assert_snapshot!(STEPS["stranger"].stdout, @r#"
    boxlaunch: /tmp/stranger/project is shared at /a3s/workspace, read-write
    boxlaunch: /example/skills/house-rules is shared at /a3s/skills/house-rules, read-only
    boxlaunch: the box reaches https://127.0.0.1:4180/v1 with the secret MODEL_KEY
    boxlaunch: verifying: node test.js
    boxlaunch: the end of the verification's output:
    A day in the hills: a-day in the hills instead of a-day-in-the-hills
    What's new? (Part 2): what's-new? (part 2) instead of what-s-new-part-2
    2 passed, 2 failed
    boxlaunch: the task has failed: the verification `node test.js` ended with the status 1
    exit 1
    --
    {"ok": true, "task": "The test of slug.js fails. Make it pass.", "key": 0, "tests": "2 passed, 2 failed", "skills": "house-rules"}

    --
    ready
    --
    slug.js
    test.js
    "#);
}

tests![
    the_agent_repairs_the_project,
    the_recording_shows_what_happens,
    the_page_shows_what_happens,
    a_wrong_key_is_the_reason_of_a_failure,
    a_skill_is_activated_while_the_agent_works_and_a_model_that_dies_is_the_reason_of_a_failure,
    a_full_disk_is_the_reason_of_a_failure,
    the_agent_of_somebody_else_gets_the_same_task_and_does_not_decide_that_it_is_done
];
