//! The description, version and author of a skill.

use insta::assert_snapshot;

use super::{complete, errors, manifest, warnings};

#[test]
fn texts_are_recorded_as_one_line() {
    let lines = "description: |\n  Greets\n\n  a\tvisitor.\nversion: 1.0\nauthor: ' Å  B '";
    let about = manifest(&complete(lines));
    assert_eq!(about.description, "Greets a visitor.");
    assert_eq!(about.version.as_deref(), Some("1.0"), "as it is written, not the number");
    assert_eq!(about.author.as_deref(), Some("Å B"));
    let about = manifest(&complete("version:\n"));
    assert_eq!((about.version, about.author), (None, None));
}

#[test]
fn a_text_has_no_control_characters() {
    assert_snapshot!(errors("name: greet\ndescription: \"a\\e[2Jb\"\nversion: \"1\\a\"\nauthor: \"\\x9b\""), @r#"
    error: the description has a control character
      --> SKILL.md:3:14
       |
     3 | description: "a\e[2Jb"
       |              ^^^^^^^^^ this is more than text
       |
       = help: remove it: on a terminal, it could hide what is there

    error: `version` has a control character
      --> SKILL.md:4:10
       |
     4 | version: "1\a"
       |          ^^^^^ this is more than text
       |
       = help: remove it: on a terminal, it could hide what is there

    error: `author` has a control character
      --> SKILL.md:5:9
       |
     5 | author: "\x9b"
       |         ^^^^^^ this is more than text
       |
       = help: remove it: on a terminal, it could hide what is there
    "#);
}

#[test]
fn other_values_are_for_agents_alone() {
    let long = format!("version: {}\nauthor: {{name: me}}", "1".repeat(65));
    assert_snapshot!(warnings(&long), @"
    warning: `version` has 65 characters, which is more than 64
      --> SKILL.md:2:10
       |
     2 | version: 11111111111111111111111111111111111111111111111111111111111111111
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the box does not record this
       |
       = help: shorten it

    warning: `author` is not a text
      --> SKILL.md:3:9
       |
     3 | author: {name: me}
       |         ^ the box does not record this
       |
       = help: write one, of at most 256 characters
    ");
    assert_snapshot!(warnings("version: ''\nauthor: [me]"), @"
    warning: `version` is empty
      --> SKILL.md:2:10
       |
     2 | version: ''
       |          ^^ the box does not record this
       |
       = help: write it, or leave the key out

    warning: `author` is not a text
      --> SKILL.md:3:9
       |
     3 | author: [me]
       |         ^ the box does not record this
       |
       = help: write one, of at most 256 characters
    ");
    let fits = complete(&format!("version: {}\nauthor: {}", "1".repeat(64), "é".repeat(256)));
    assert_eq!(manifest(&fits).author.unwrap().chars().count(), 256);
}
