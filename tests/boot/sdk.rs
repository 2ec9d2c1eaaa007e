//! The packages for Python and for TypeScript on a host with Python and Node.js: the tests of `sdk/python/tests/live.py` and
//! `sdk/typescript/tests/live.ts`, the blocks of docs/sdk.md, and the examples.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use testbed::debian::DebianImages;
use testbed::prerequisites::{typescript, with_python};

use crate::agent_interface::echo_boxfile;
use crate::page::blocks;
use crate::scenario::{Scenario, Step, UNHURRIED, bake, sleeping, tools};

const PAGE: &str = include_str!("../../docs/sdk.md");
const TASKS: &str = include_str!("../../docs/tasks.md");
/// The image of the page's box, instead of which the test takes an image of this host.
const IMAGE: &str = "docker.io/library/python:3.12-slim";
/// The classes of the tests in Python, which share one start of the virtual host.
const CLASSES: [&str; 4] = ["Page", "Lifecycle", "Work", "Examples"];
/// The tests in TypeScript, and the name of their step in the same start.
const TYPESCRIPT: &str = include_str!("../../sdk/typescript/tests/live.ts");
const NODE: &str = "TypeScript";

/// The policy of a box that asks, and a skill that it gets from the host.
const ASKING: &str = r#"skill "hot" path="hot" mode="mount"
sandbox "default" fallback="warn" ask-timeout="60s" {
    ask "echo *"
}
"#;

/// Returns the Boxfile of a box with two components: a shell, and Node for the project of examples/assistant.
fn workshop(images: &DebianImages) -> String {
    let (python, node) = (images.agent.display(), images.business.display());
    format!(
        "box \"workshop\"\nagent {{\n    image \"oci:{python}\"\n    entrypoint \"sleep\" \"infinity\"\n    health \"none\"\n    \
         limits memory=\"128MiB\"\n}}\nbusiness {{\n    image \"oci:{node}\"\n    limits memory=\"256MiB\"\n}}\n\
         vm cpus=1 memory=\"512MiB\"\n"
    )
}

static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let tools = tools();
    let say = &mut |line: &str| println!("{line}");
    let images = DebianImages::make(&tools.workspace, say).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    testbed::hello::write_images(&tools.programs.hello_agent, &at("images")).unwrap();
    fs::write(at("agent.sh"), blocks(TASKS, "sh").join("\n") + "\n").unwrap();
    fs::copy(&tools.programs.example_agent, at("echo")).unwrap();
    fs::create_dir(at("hot")).unwrap();
    fs::write(at("hot/SKILL.md"), "---\nname: hot\ndescription: Is replaced.\n---\n").unwrap();
    let page = blocks(PAGE, "kdl").join("\n");
    assert!(page.contains(IMAGE), "{page}");
    let sandbox = page.replace(IMAGE, &format!("oci:{}", images.agent.display()));
    let counter = blocks(TASKS, "kdl").join("\n") + "\nvm cpus=1 memory=\"384MiB\"\n";
    let typescript = typescript(&tools.workspace, say).unwrap();
    typescript.compile(&tools.workspace, &at("typescript")).unwrap();
    let host = with_python(tools.host.clone().memory(3072), say).unwrap();
    let mut host = typescript.with_node(host, say).unwrap();
    for (name, text) in [
        ("sandbox", sandbox),
        ("plain", sleeping("plain") + "secret \"KEY\"\n"),
        ("asking", sleeping("asking").replace("32MiB", "64MiB") + ASKING),
        ("counter", counter),
        ("echo", echo_boxfile()),
        ("workshop", workshop(&images)),
    ] {
        let (boxfile, bundle) = (at(&format!("{name}.kdl")), at(&format!("{name}.box")));
        fs::write(&boxfile, text).unwrap();
        bake(&boxfile, &tools.programs.box_init, &bundle);
        host = host.disk(bundle, format!("/boxes/{name}"));
    }
    let host = host
        .file(tools.workspace.path("sdk/python"), "/sdk/python")
        .file(at("typescript"), "/sdk/typescript")
        .file(tools.workspace.path("docs/sdk.md"), "/sdk.md")
        .file(tools.workspace.path("examples/assistant/project"), "/example/project")
        .file(&tools.programs.assistant_model, "/bin/assistant-model")
        .file(test_server::roots(), "/ca.pem");
    let script = |scenario: Scenario, class: &str| {
        let run = format!(
            "ifconfig lo 127.0.0.1 up; cd /sdk/python; export PYTHONPYCACHEPREFIX=/tmp/compiled\n\
             python3 -m unittest -v tests.live.{class}"
        );
        scenario.script(UNHURRIED, class, &run)
    };
    let node = "ifconfig lo 127.0.0.1 up; cd /sdk/typescript; export PATH=$PATH:/node\n\
                node --test-reporter=tap dist/tests/live.js";
    let scenario = CLASSES.into_iter().fold(Scenario::default(), script);
    scenario.script(UNHURRIED, NODE, node).start(&host)
});

/// Checks that all tests of a class have passed.
#[track_caller]
fn assert_passed(class: &str) {
    let step = &STEPS[class];
    assert_eq!(step.status, 0, "{}\n{}", step.stdout, step.stderr);
    assert!(step.stderr.ends_with("\nOK\n"), "{}", step.stderr);
}

fn the_page_shows_what_happens() {
    assert_passed("Page");
}

fn boxes_end_with_what_has_started_them() {
    assert_passed("Lifecycle");
}

fn a_program_works_in_boxes() {
    assert_passed("Work");
}

fn the_examples_work() {
    assert_passed("Examples");
}

fn a_program_in_typescript_works_in_boxes() {
    let step = &STEPS[NODE];
    let passed = format!("\n# pass {}\n", TYPESCRIPT.matches("\ntest(").count());
    assert!(step.status == 0 && step.stdout.contains(&passed), "{}\n{}", step.stdout, step.stderr);
}

tests![
    the_page_shows_what_happens,
    boxes_end_with_what_has_started_them,
    a_program_works_in_boxes,
    the_examples_work,
    a_program_in_typescript_works_in_boxes
];
