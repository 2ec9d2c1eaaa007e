//! examples/agents/codex: OpenAI's Codex as the agent in the Boxfile of examples/assistant. It runs in the virtual host of known_agents.rs,
//! which makes Codex's image.

use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::program;

use crate::assistant::{self, ASKED, REPAIRED, WORK};
use crate::known_agents;
use crate::page;
use crate::scenario::{bake, tools};

const PAGE: &str = include_str!("../../examples/agents/codex/README.md");

/// Adds the script of the example to the image in the directory `codex`, with the commands of the page, and builds the assistant's box with
/// this image.
pub(crate) fn make_box(codex: &Path, output: &Path) {
    let commands = page::blocks(PAGE, "bash").join("\n");
    program::run(Command::new("sh").args(["-euxc", &commands]).current_dir(codex)).unwrap();
    let line = page::blocks(PAGE, "kdl").concat();
    let line = line.trim().replace("../agents/codex", &codex.to_string_lossy());
    let dir = assistant::example();
    let file = dir.path().join("Boxfile");
    fs::write(&file, assistant::boxfile("image \"oci:images/python\"", &line)).unwrap();
    bake(&file, &tools().programs.box_init, output);
}

/// Returns the script of the step `success`.
pub(crate) fn script() -> String {
    format!("{WORK}\nwork success codex-task")
}

fn codex_repairs_the_project_after_a_change_of_one_line() {
    let step = &known_agents::STEPS["success"];
    // Split from the end: Codex's output, which comes first, also contains lines `--`.
    let parts: Vec<_> = step.stdout.rsplitn(4, "\n--\n").collect();
    let [project, model, result, printed] = parts[..] else { panic!("{step:?}") };
    println!("{printed}");
    assert!(printed.contains("OpenAI Codex v0.64.0"), "{printed}");
    assert_eq!(result, "{\"ok\": true}\n");
    assert_eq!((model, project), (ASKED.trim_end(), REPAIRED));
}

tests![codex_repairs_the_project_after_a_change_of_one_line];
