//! examples/agents/codex: OpenAI's Codex as the agent in the Boxfile of examples/assistant.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::program;

use crate::assistant::{self, ASKED, REPAIRED, WORK};
use crate::known_agents;
use crate::page;
use crate::scenario::{Scenario, bake, tools};

const PAGE: &str = include_str!("../../examples/agents/codex/README.md");

/// Makes Codex's image in `dir`, with the commands of the page.
fn make_image(dir: &Path) {
    known_agents::make_image("codex", "oci:images/python", dir);
    let example = tools().workspace.path("examples/agents/codex");
    fs::copy(example.join("run-task"), dir.join("run-task")).unwrap();
    let commands = page::blocks(PAGE, "bash").join("\n");
    program::run(Command::new("sh").args(["-euxc", &commands]).current_dir(dir)).unwrap();
}

#[test]
#[ignore = "fetches a package of 120 MB with npm"]
fn codex_repairs_the_project_after_a_change_of_one_line() {
    let dir = assistant::example();
    let at = |name: &str| dir.path().join(name);
    make_image(dir.path());
    let line = page::blocks(PAGE, "kdl").concat();
    let line = line.trim().replace("../agents/codex/", "");
    fs::write(at("Boxfile"), assistant::boxfile("image \"oci:images/python\"", &line)).unwrap();
    bake(&at("Boxfile"), &tools().programs.box_init, &at("codex.box"));
    let host = assistant::host().disk(at("codex.box"), "/codex");
    let script = format!("{WORK}\nwork success codex");
    let steps = Scenario::default().script(300, "success", &script).start(&host);
    // Split from the end: Codex's output, which comes first, also contains lines `--`.
    let parts: Vec<_> = steps["success"].stdout.rsplitn(4, "\n--\n").collect();
    let [project, model, result, printed] = parts[..] else { panic!("{steps:?}") };
    println!("{printed}");
    assert!(printed.contains("OpenAI Codex v0.64.0"), "{printed}");
    assert_eq!(result, "{\"ok\": true}\n");
    assert_eq!((model, project), (ASKED.trim_end(), REPAIRED));
}
