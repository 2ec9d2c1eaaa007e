//! The agent of examples/assistant: its tests in Python, which need no box. `tests/boot/assistant.rs` has the others.

use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::{Workspace, program};

/// Fails if the agent does not understand the skill of a directory.
const READ_SKILL: &str = "import agent, pathlib, sys
skill = agent.read_skill(pathlib.Path(sys.argv[1]))
assert (skill.problem, len(skill.tools)) == ('', 1), skill";

/// Runs Python in the directory of the agent, and returns its standard error.
fn python(arguments: &[&str]) -> String {
    packages(&[Package::Python], &mut |line| println!("{line}")).unwrap();
    let mut python = Command::new("python3");
    python.arg("-B").args(arguments);
    python.current_dir(Workspace::find().path("examples/assistant"));
    let output = program::finish(&mut python).unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn the_agent_activates_skills_and_continues_its_conversation() {
    let text = python(&["-m", "unittest", "test_agent"]);
    assert!(text.ends_with("\nOK\n"), "{text}");
}

#[test]
fn the_agent_understands_the_skill_of_the_smallest_example() {
    let skill = Workspace::find().path("examples/hello/skills/greet");
    python(&["-c", READ_SKILL, &skill.to_string_lossy()]);
}
