//! Keys that are unknown, missing or given twice, and values of a wrong type or form.

use insta::assert_snapshot;

use super::{errors, warnings};
use crate::skill_md::{MAX_SKILL_MD, parse};

#[test]
fn names() {
    assert_snapshot!(errors("name: hello"), @r"
    error: the skill's name `hello` differs from its directory's, `greet`
      --> SKILL.md:2:7
       |
     2 | name: hello
       |       ^^^^^ not the directory's name
       |
       = help: write `name: greet`, or rename the directory
    ");
    assert_snapshot!(errors("name: My Skill"), @r#"
    error: `My Skill` is not a valid name
      --> SKILL.md:2:7
       |
     2 | name: My Skill
       |       ^^^^^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 63: "my-agent"; write `name: my-skill`
    "#);
    assert_snapshot!(errors("name: 7"), @r#"
    error: `name` takes a text, not the number `7`
      --> SKILL.md:2:7
       |
     2 | name: 7
       |       ^ expected a text
       |
       = help: put it in quotes: "7"
    "#);
    assert_snapshot!(errors("name:"), @r"
    error: `name` has no value
      --> SKILL.md:2:1
       |
     2 | name:
       | ^^^^ nothing behind the `:`
       |
       = help: write a value, or leave the key out
    ");
    assert_snapshot!(errors("name: greet\nauthor: a\nname: greet"), @r"
    error: `name` is given twice
      --> SKILL.md:4:1
       |
     2 | name: greet
       | ---- given first
    ...
     4 | name: greet
       | ^^^^ given again
       |
       = help: remove one of them
    ");
}

#[test]
fn texts_and_words() {
    assert_snapshot!(errors("version: 1.0"), @r#"
    error: `version` takes a text, not the number `1.0`
      --> SKILL.md:2:10
       |
     2 | version: 1.0
       |          ^^^ expected a text
       |
       = help: put it in quotes: "1.0"
    "#);
    assert_snapshot!(errors("author: true"), @r#"
    error: `author` takes a text, not the truth value `true`
      --> SKILL.md:2:9
       |
     2 | author: true
       |         ^^^^ expected a text
       |
       = help: put it in quotes: "true"
    "#);
    assert_snapshot!(errors("author: [a]"), @r"
    error: `author` takes a text, not a list
      --> SKILL.md:2:9
       |
     2 | author: [a]
       |         ^^^ expected a text
       |
       = help: put a text that begins with a bracket or brace in quotes
    ");
    assert_snapshot!(errors("author: ''"), @r"
    error: the text of `author` is empty
      --> SKILL.md:2:9
       |
     2 | author: ''
       |         ^^ nothing between the quotes
       |
       = help: write a text, or leave the key out
    ");
    assert_snapshot!(errors("author: \"a\\0b\""), @r#"
    error: the text of `author` contains a NUL character
      --> SKILL.md:2:9
       |
     2 | author: "a\0b"
       |         ^^^^^^ no program can receive this
       |
       = help: remove the `\0`
    "#);
    assert_snapshot!(errors("kind: personna"), @r"
    error: `personna` is no `kind`
      --> SKILL.md:2:7
       |
     2 | kind: personna
       |       ^^^^^^^^ not a known `kind`
       |
       = help: did you mean `persona`?
    ");
    assert_snapshot!(errors("kind: plugin"), @r"
    error: `plugin` is no `kind`
      --> SKILL.md:2:7
       |
     2 | kind: plugin
       |       ^^^^^^ not a known `kind`
       |
       = help: write one of instruction, persona, tool
    ");
    assert_snapshot!(errors("disable-model-invocation: yes"), @r"
    error: `disable-model-invocation` takes `true` or `false`, not the text `yes`
      --> SKILL.md:2:27
       |
     2 | disable-model-invocation: yes
       |                           ^^^ expected `true` or `false`
       |
       = help: write `disable-model-invocation: true` or `disable-model-invocation: false`
    ");
    assert_snapshot!(errors("tags: people, words"), @r"
    error: `tags` takes a list, not the text `people, words`
      --> SKILL.md:2:7
       |
     2 | tags: people, words
       |       ^^^^^^^^^^^^^ expected a list
       |
       = help: write `tags: [people, words]`
    ");
}

#[test]
fn paths() {
    assert_snapshot!(errors("system_prompt: /etc/prompt.md"), @r"
    error: `system_prompt` must name a file inside of the skill's directory
      --> SKILL.md:2:16
       |
     2 | system_prompt: /etc/prompt.md
       |                ^^^^^^^^^^^^^^ an absolute path
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(errors("system_prompt: prompts/../../other.md"), @r"
    error: `system_prompt` must name a file inside of the skill's directory
      --> SKILL.md:2:16
       |
     2 | system_prompt: prompts/../../other.md
       |                ^^^^^^^^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(errors("system_prompt: ./"), @r"
    error: `system_prompt` must name a file inside of the skill's directory
      --> SKILL.md:2:16
       |
     2 | system_prompt: ./
       |                ^^ the directory itself
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
}

#[test]
fn built_in_tools() {
    assert_snapshot!(errors("requires: [bash, raed_file, teleport]"), @r#"
    error: `raed_file` is not a built-in tool
      --> SKILL.md:2:18
       |
     2 | requires: [bash, raed_file, teleport]
       |                  ^^^^^^^^^ no agent has this
       |
       = help: did you mean "read_file"?

    error: `teleport` is not a built-in tool
      --> SKILL.md:2:29
       |
     2 | requires: [bash, raed_file, teleport]
       |                             ^^^^^^^^ no agent has this
       |
       = help: the tools are ask_user, bash, edit_file, git_commit, git_diff, git_status, glob, grep, read_file, web_fetch, web_search, write_file
    "#);
    assert_snapshot!(errors("requires: bash"), @r"
    error: `requires` takes a list, not the text `bash`
      --> SKILL.md:2:11
       |
     2 | requires: bash
       |           ^^^^ expected a list
       |
       = help: write `requires: [bash]`
    ");
    assert_snapshot!(errors("allowed-tools: Bash(gh:*"), @r"
    error: `Bash(gh:*` is not a permission
      --> SKILL.md:2:16
       |
     2 | allowed-tools: Bash(gh:*
       |                ^^^^^^^^^ in this text
       |
       = help: write a tool's name, with a pattern in parentheses or without: `Bash(gh:*), read`
    ");
    assert_snapshot!(errors("allowed-tools: read, (x)"), @r"
    error: `(x)` is not a permission
      --> SKILL.md:2:16
       |
     2 | allowed-tools: read, (x)
       |                ^^^^^^^^^ in this text
       |
       = help: write a tool's name, with a pattern in parentheses or without: `Bash(gh:*), read`
    ");
    assert_snapshot!(errors("allowed-tools: 5"), @r#"
    error: `allowed-tools` takes a text, not the number `5`
      --> SKILL.md:2:16
       |
     2 | allowed-tools: 5
       |                ^ expected a text
       |
       = help: put it in quotes: "5"
    "#);
}

#[test]
fn unknown_keys_are_warnings() {
    assert_snapshot!(warnings("name: greet\nauthr: Somebody\nmodel: x"), @r"
    warning: the frontmatter has no key `authr`
      --> SKILL.md:3:1
       |
     3 | authr: Somebody
       | ^^^^^ nothing reads this
       |
       = help: did you mean `author`?

    warning: the frontmatter has no key `model`
      --> SKILL.md:4:1
       |
     4 | model: x
       | ^^^^^ nothing reads this
       |
       = help: the keys here are name, description, version, author, tags, kind, lane, system_prompt, requires, tools, allowed-tools, disable-model-invocation, license, compatibility, metadata
    ");
    assert_snapshot!(
        warnings("tools:\n  - name: a\n    script: b\n    timeout: 5\n    parameters:\n      - {name: x, type: string, requird: true}"),
        @r"
    warning: a tool has no key `timeout`
      --> SKILL.md:5:5
       |
     5 |     timeout: 5
       |     ^^^^^^^ nothing reads this
       |
       = help: the keys here are name, description, script, backend, bin, url, parameters

    warning: a parameter has no key `requird`
      --> SKILL.md:7:33
       |
     7 |       - {name: x, type: string, requird: true}
       |                                 ^^^^^^^ nothing reads this
       |
       = help: did you mean `required`?
    "
    );
}

#[test]
fn all_errors_come_at_once_and_in_order() {
    let source = "---\nname: x\nversion: 2\nkind: x\nrequires: [x]\ntools: [{name: a}]\n---\n";
    let errors = parse(source, "greet").manifest.unwrap_err();
    let lines = errors.iter().map(|error| {
        crate::Sources::single(crate::Source::new("", source)).location(error.span()).0
    });
    assert_eq!(lines.collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
}

#[test]
fn more_than_a_mebibyte_is_not_read() {
    let text = |length: usize| format!("---\n---\n{}", "x".repeat(length - 8));
    assert!(parse(&text(MAX_SKILL_MD), "greet").manifest.is_ok());
    let errors = parse(&text(MAX_SKILL_MD + 1), "greet").manifest.unwrap_err();
    assert_eq!(errors.to_string(), "the file has 1048577 bytes, which is more than 1048576");
}
