//! Tests of `skill` and `skills`, and of the SKILL.md files and the tools that they declare.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::checkout::{BOXFILE, Checkout, WHOLE};

/// Makes a checkout whose SKILL.md has this text.
fn with_definition(text: &str) -> Checkout {
    let checkout = Checkout::new();
    checkout.write("skills/greet/SKILL.md", text);
    checkout
}

/// Returns the errors of a build for a SKILL.md with this text. Asserts that a check has the same.
fn refused(text: &str) -> String {
    let checkout = with_definition(text);
    let output = checkout.refused();
    assert_eq!(checkout.fails(&["check"]), output);
    output
}

#[test]
fn a_directory_of_skills_is_united_with_single_ones() {
    let checkout = Checkout::new();
    for name in ["data-agent", "order-agent"] {
        let text = format!("---\nname: {name}\ndescription: Has data.\n---\n");
        checkout.write(&format!("more/{name}/SKILL.md"), text);
    }
    checkout.write("more/notes.md", "not a skill");
    checkout.write("more/empty/README.md", "not a skill either");
    checkout.write("Boxfile", format!("{BOXFILE}skills dir=\"more\" mode=\"mount\"\n"));
    let plan = checkout.built_plan();
    assert_eq!(
        plan["skills"],
        json!([
            { "name": "data-agent", "mode": "mounted" },
            { "name": "greet", "description": "Greets." },
            { "name": "order-agent", "mode": "mounted" },
        ])
    );
    assert!(checkout.read("Boxfile.lock").contains("source = \"more/data-agent\""));
}

#[test]
fn two_skills_of_one_name() {
    let checkout = Checkout::new();
    checkout.write("more/greet/SKILL.md", "---\nname: greet\ndescription: Greets.\n---\n");
    checkout.write("Boxfile", format!("{BOXFILE}skills dir=\"more\"\n"));
    let output = checkout.fails(&["build"]);
    assert_eq!(checkout.fails(&["check"]), output);
    insta::assert_snapshot!(output, @r#"
    error: two skills have the name `greet`: skills/greet and more/greet
       --> Boxfile:13:12
        |
     11 | skill "greet" path="skills/greet"
        |                    -------------- and named here
    ...
     13 | skills dir="more"
        |            ^^^^^^ named here
        |
        = help: rename one of them
    "#);
}

#[test]
fn a_directory_that_has_no_skill() {
    let checkout = Checkout::new();
    checkout.write("more/notes.md", "not a skill");
    checkout.write("Boxfile", format!("{BOXFILE}skills dir=\"more\"\n"));
    insta::assert_snapshot!(checkout.fails(&["check"]), @r#"
    error: the skills in more cannot be read: more has no directory with a SKILL.md in it
       --> Boxfile:13:12
        |
     13 | skills dir="more"
        |            ^^^^^^ named here
        |
        = help: a skill is a directory of the checkout with a file SKILL.md in it: docs/skills.md
    "#);
    checkout.write("more/Order Agent/SKILL.md", "---\nname: order\n---\n");
    insta::assert_snapshot!(checkout.fails(&["check"]), @r#"
    error: the skills in more cannot be read: the directory more/Order Agent cannot name a skill: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"
       --> Boxfile:13:12
        |
     13 | skills dir="more"
        |            ^^^^^^ named here
        |
        = help: rename it
    "#);
}

/// The error points to a line of the SKILL.md.
#[test]
fn a_definition_that_is_wrong() {
    insta::assert_snapshot!(refused("---\nname: 1.0\ndescription: x\n---\n"), @r#"
    error: `name` must be a string, not `1.0`
      --> skills/greet/SKILL.md:2:7
       |
     2 | name: 1.0
       |       ^^^ expected a string
       |
       = help: put it in quotes: "1.0"
    "#);
    insta::assert_snapshot!(refused("Greets.\n"), @r"
    error: the file does not begin with the line `---`
      --> skills/greet/SKILL.md:1:1
       |
     1 | Greets.
       | ^^^^^^^ not `---`
       |
       = help: begin the file with the lines `---`, `name: …`, `description: …` and `---`
    ");
    insta::assert_snapshot!(refused("---\nname: other\ndescription: x\n---\n"), @r"
    error: the skill's name `other` differs from its directory's, `greet`
      --> skills/greet/SKILL.md:2:7
       |
     2 | name: other
       |       ^^^^^ not the directory's name
       |
       = help: write `name: greet`, or rename the directory
    ");
}

#[test]
fn a_script_that_is_missing() {
    let tools = "tools:\n  - name: greet\n    description: Greets.\n    script: tools/greet.sh\n";
    let wrong = tools.replace("greet.sh", "gret.sh");
    let output = refused(&format!("---\nname: greet\ndescription: x\n{wrong}---\n"));
    insta::assert_snapshot!(output, @r"
    error: the skill has no file `tools/gret.sh`
      --> skills/greet/SKILL.md:7:13
       |
     7 |     script: tools/gret.sh
       |             ^^^^^^^^^^^^^ named here
       |
       = help: add it to the skill's directory, or correct the path, which is relative to it
    ");
    let checkout = with_definition(&format!("---\nname: greet\ndescription: x\n{tools}---\n"));
    let script = checkout.path("skills/greet/tools/greet.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let plain = checkout.built(&[])["box"].clone();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(checkout.built(&[])["box"], plain, "a tool's script is executable in the box");
}

#[test]
fn a_prompt_that_is_missing() {
    let text = "---\nname: greet\ndescription: x\nsystem_prompt: prompts/system.md\n---\n";
    insta::assert_snapshot!(refused(text), @r"
    error: the skill has no file `prompts/system.md`
      --> skills/greet/SKILL.md:4:16
       |
     4 | system_prompt: prompts/system.md
       |                ^^^^^^^^^^^^^^^^^ named here
       |
       = help: add it to the skill's directory, or correct the path, which is relative to it
    ");
    let checkout = with_definition(text);
    checkout.write("skills/greet/prompts/system.md", "Be brief.\n");
    checkout.built(WHOLE);
    let listed = checkout.result(&["ls", "test.box", "/a3s/skills/greet/prompts"]);
    assert_eq!(listed, "/a3s/skills/greet/prompts\n/a3s/skills/greet/prompts/system.md\n");
}

#[test]
fn an_unknown_key_is_worth_a_look() {
    let checkout = with_definition("---\nname: greet\ndescription: x\nlicence: MIT\n---\n");
    let notes = checkout.notes(&["check"]);
    insta::assert_snapshot!(notes, @r"
    warning: the frontmatter has no key `licence`
      --> skills/greet/SKILL.md:4:1
       |
     4 | licence: MIT
       | ^^^^^^^ nothing reads this
       |
       = help: did you mean `license`?
    Boxfile: ok
    ");
    let build = checkout.notes(&["build"]);
    assert!(build.starts_with(notes.split("Boxfile: ok").next().unwrap()), "{build}");
    let warning = &checkout.run(&["check", "--json"]).json()["warnings"][0];
    assert_eq!(warning["severity"], "warning");
    let place = &warning["labels"][0];
    assert_eq!((&place["file"], &place["line"]), (&json!("skills/greet/SKILL.md"), &json!(4)));
}

#[test]
fn a_tool_that_the_agent_may_not_see() {
    let checkout = with_definition("---\nname: greet\ndescription: x\nrequires: [bash]\n---\n");
    checkout.built(&[]);
    checkout.edit("Boxfile", "    health \"tcp\"\n", "    health \"tcp\"\n    tools \"grep\"\n");
    insta::assert_snapshot!(checkout.fails(&["check"]), @r#"
    error: the skill requires `bash`, which the agent may not see
      --> skills/greet/SKILL.md:4:12
       |
     4 | requires: [bash]
       |            ^^^^ required here
       |
       = help: add "bash" to the agent's `tools`, or remove it here
    "#);
    checkout.edit("Boxfile", "tools \"grep\"", "tools \"grep\" \"bash\"");
    assert_eq!(checkout.built_plan()["tools"], json!(["bash", "grep"]));
}
