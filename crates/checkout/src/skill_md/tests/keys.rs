//! Unknown, missing and duplicate keys, and values of a wrong type or form.

use insta::assert_snapshot;

use super::{complete, errors, file_errors, shown, tool_errors, warnings};
use crate::skill_md::{MAX_SKILL_MD, parse};
use diagnostics::Diagnostic;

#[test]
fn names() {
    assert_snapshot!(errors("name: hello"), @"
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
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write `name: my-skill`
    "#);
    assert_snapshot!(errors("name: 7"), @r#"
    error: `name` must be a string, not `7`
      --> SKILL.md:2:7
       |
     2 | name: 7
       |       ^ expected a string
       |
       = help: put it in quotes: "7"
    "#);
    assert_snapshot!(errors("name:"), @"
    error: `name` has no value
      --> SKILL.md:2:5
       |
     2 | name:
       |     ^ expected a string
       |
       = help: write `name: greet`, the name of the skill's directory
    ");
    assert_snapshot!(errors("name: greet\nauthor: a\nname: greet"), @"
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
fn keys_that_every_skill_has() {
    assert_snapshot!(file_errors("---\n---\n"), @"
    error: the frontmatter has no `name`
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
       |
       = help: write `name: greet`, the name of the skill's directory

    error: the frontmatter has no `description`
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
       |
       = help: write `description: …`: what the skill does, and when an agent should use it
    ");
    assert_snapshot!(file_errors("\u{feff}---\nauthor: a\nname:\ndescription: ''\n---\n"), @"
    error: `name` has no value
      --> SKILL.md:3:5
       |
     3 | name:
       |     ^ expected a string
       |
       = help: write `name: greet`, the name of the skill's directory

    error: the description is empty
      --> SKILL.md:4:14
       |
     4 | description: ''
       |              ^^ an agent picks skills by it
       |
       = help: write what the skill does, and when an agent should use it
    ");
    let long = format!("---\nname: greet\ndescription: {}\n---\n", "é".repeat(1025));
    let errors = parse(&long, "greet").errors;
    let message = "the description has 1025 characters, which is more than 1024";
    assert_eq!(errors.iter().map(Diagnostic::message).collect::<Vec<_>>(), [message]);
    assert_eq!(parse(&long.replacen('é', "", 1), "greet").errors, []);
}

#[test]
fn a_key_that_is_given_twice_hides_nothing_else() {
    let tool = "tools:\n  - name: a\n    name: b\n    script: ../a";
    assert_snapshot!(errors(&format!("name: other\n{tool}")), @"
    error: the skill's name `other` differs from its directory's, `greet`
      --> SKILL.md:2:7
       |
     2 | name: other
       |       ^^^^^ not the directory's name
       |
       = help: write `name: greet`, or rename the directory

    error: `name` is given twice
      --> SKILL.md:5:5
       |
     4 |   - name: a
       |     ---- given first
     5 |     name: b
       |     ^^^^ given again
       |
       = help: remove one of them

    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:6:13
       |
     6 |     script: ../a
       |             ^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
}

#[test]
fn values_of_a_wrong_type() {
    assert_snapshot!(errors("system_prompt: 1.0"), @r#"
    error: `system_prompt` must be a string, not `1.0`
      --> SKILL.md:2:16
       |
     2 | system_prompt: 1.0
       |                ^^^ expected a string
       |
       = help: put it in quotes: "1.0"
    "#);
    assert_snapshot!(errors("name: true"), @r#"
    error: `name` must be a string, not `true`
      --> SKILL.md:2:7
       |
     2 | name: true
       |       ^^^^ expected a string
       |
       = help: put it in quotes: "true"
    "#);
    assert_snapshot!(errors("name: [a]"), @"
    error: `name` must be a string, not a list
      --> SKILL.md:2:7
       |
     2 | name: [a]
       |       ^ expected a string
       |
       = help: put a string that begins with a bracket or brace in quotes
    ");
    assert_snapshot!(errors("requires: bash"), @"
    error: `requires` must be a list, not `bash`
      --> SKILL.md:2:11
       |
     2 | requires: bash
       |           ^^^^ expected a list
       |
       = help: write it as `[bash, read]`, or begin each item with `- ` on a line of its own
    ");
    assert_snapshot!(errors("requires: [~]"), @"
    error: an item of `requires` must be a string, but it has no value
      --> SKILL.md:2:12
       |
     2 | requires: [~]
       |            ^ expected a string
       |
       = help: write a value, or leave it out
    ");
    assert_snapshot!(errors("requires:"), @"
    error: `requires` must be a list, but it has no value
      --> SKILL.md:2:9
       |
     2 | requires:
       |         ^ expected a list
       |
       = help: write a value, or leave it out
    ");
    assert_snapshot!(errors("tools: {name: a}"), @"
    error: `tools` must be a list, not a mapping
      --> SKILL.md:2:8
       |
     2 | tools: {name: a}
       |        ^ expected a list
       |
       = help: write it as `[bash, read]`, or begin each item with `- ` on a line of its own
    ");
    assert_snapshot!(errors("tools:\n  - tools/greet.sh"), @"
    error: a tool must be a mapping, not `tools/greet.sh`
      --> SKILL.md:3:5
       |
     3 |   - tools/greet.sh
       |     ^^^^^^^^^^^^^^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
}

#[test]
fn all_values_of_a_wrong_type_are_shown() {
    let yaml = "name: 7\nrequires: [[bash], {a: b}, 1.50, ~]\ntools:\n  - x\n  - script: [a]\n    \
                bin:\n  - backend: [a]";
    assert_snapshot!(errors(yaml), @r#"
    error: `name` must be a string, not `7`
      --> SKILL.md:2:7
       |
     2 | name: 7
       |       ^ expected a string
       |
       = help: put it in quotes: "7"

    error: an item of `requires` must be a string, not a list
      --> SKILL.md:3:12
       |
     3 | requires: [[bash], {a: b}, 1.50, ~]
       |            ^ expected a string
       |
       = help: put a string that begins with a bracket or brace in quotes

    error: an item of `requires` must be a string, not a mapping
      --> SKILL.md:3:20
       |
     3 | requires: [[bash], {a: b}, 1.50, ~]
       |                    ^ expected a string
       |
       = help: put a string that begins with a bracket or brace in quotes

    error: an item of `requires` must be a string, not `1.50`
      --> SKILL.md:3:28
       |
     3 | requires: [[bash], {a: b}, 1.50, ~]
       |                            ^^^^ expected a string
       |
       = help: put it in quotes: "1.50"

    error: an item of `requires` must be a string, but it has no value
      --> SKILL.md:3:34
       |
     3 | requires: [[bash], {a: b}, 1.50, ~]
       |                                  ^ expected a string
       |
       = help: write a value, or leave it out

    error: a tool must be a mapping, not `x`
      --> SKILL.md:5:5
       |
     5 |   - x
       |     ^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`

    error: `script` must be a string, not a list
      --> SKILL.md:6:13
       |
     6 |   - script: [a]
       |             ^ expected a string
       |
       = help: put a string that begins with a bracket or brace in quotes

    error: a tool has both `script` and `bin`
      --> SKILL.md:7:5
       |
     6 |   - script: [a]
       |     ------ the other
     7 |     bin:
       |     ^^^ one of them
       |
       = help: keep what the tool is to run, and remove the other

    error: `bin` must be a string, but it has no value
      --> SKILL.md:7:8
       |
     7 |     bin:
       |        ^ expected a string
       |
       = help: write a value, or leave it out

    error: `backend` must be a mapping, not a list
      --> SKILL.md:8:14
       |
     8 |   - backend: [a]
       |              ^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    "#);
}

#[test]
fn unknown_backends_are_warnings() {
    let tool = |lines: &str| warnings(&format!("tools:\n  - name: hello\n{lines}"));
    assert_snapshot!(tool("    backend: {path: ../a}"), @"
    warning: `backend` has no `type`
      --> SKILL.md:4:14
       |
     4 |     backend: {path: ../a}
       |              ^ the backend's keys are not read
       |
       = help: write one of binary, http, script
    ");
    assert_snapshot!(tool("    backend: {type: builtin, path: 7}"), @"
    warning: unknown `type` `builtin`
      --> SKILL.md:4:21
       |
     4 |     backend: {type: builtin, path: 7}
       |                     ^^^^^^^ the backend's keys are not read
       |
       = help: write one of binary, http, script
    ");
    assert_snapshot!(tool("    backend: {type: binray, path: a}"), @"
    warning: unknown `type` `binray`
      --> SKILL.md:4:21
       |
     4 |     backend: {type: binray, path: a}
       |                     ^^^^^^ the backend's keys are not read
       |
       = help: did you mean `binary`?
    ");
    assert_snapshot!(tool("    backend: {type: [http]}"), @"
    warning: unknown `type` `[`
      --> SKILL.md:4:21
       |
     4 |     backend: {type: [http]}
       |                     ^ the backend's keys are not read
       |
       = help: write one of binary, http, script
    ");
    assert_snapshot!(tool("    url: https://example.org/jq\n    script: a"), @"
    warning: a tool has both `script` and `url`
      --> SKILL.md:4:5
       |
     4 |     url: https://example.org/jq
       |     ^^^ one of them
     5 |     script: a
       |     ------ the other
       |
       = help: keep what the tool is to run, and remove the other
    ");
    assert_snapshot!(tool("    backend: {type: http, path: 7, url: [1]}"), @"");
}

#[test]
fn a_tool_runs_exactly_one_thing() {
    assert_snapshot!(tool_errors("    script: a.sh\n    bin: b"), @"
    error: a tool has both `script` and `bin`
      --> SKILL.md:6:5
       |
     5 |     script: a.sh
       |     ------ the other
     6 |     bin: b
       |     ^^^ one of them
       |
       = help: keep what the tool is to run, and remove the other
    ");
    assert_snapshot!(tool_errors("    script: ../a.sh"), @"
    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:5:13
       |
     5 |     script: ../a.sh
       |             ^^^^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    script: |\n      echo 1\n      echo 2"), @"
    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:6:7
       |
     6 |       echo 1
       |       ^^^^^^ this is text, not a path
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    script: ''"), @"
    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:5:13
       |
     5 |     script: ''
       |             ^^ an empty string
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    backend: bin/a"), @"
    error: `backend` must be a mapping, not `bin/a`
      --> SKILL.md:5:14
       |
     5 |     backend: bin/a
       |              ^^^^^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    backend: {type: binary, path: a/../b}"), @"
    error: `path` must name a file inside of the skill's directory
      --> SKILL.md:5:35
       |
     5 |     backend: {type: binary, path: a/../b}
       |                                   ^^^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
}

#[test]
fn paths() {
    assert_snapshot!(errors("system_prompt: /etc/prompt.md"), @"
    error: `system_prompt` must name a file inside of the skill's directory
      --> SKILL.md:2:16
       |
     2 | system_prompt: /etc/prompt.md
       |                ^^^^^^^^^^^^^^ an absolute path
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(errors("system_prompt: prompts/../../other.md"), @"
    error: `system_prompt` must name a file inside of the skill's directory
      --> SKILL.md:2:16
       |
     2 | system_prompt: prompts/../../other.md
       |                ^^^^^^^^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(errors("system_prompt: ./"), @"
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
}

#[test]
fn unknown_keys_are_warnings() {
    assert_snapshot!(warnings("name: greet\nauthr: Somebody"), @"
    warning: the frontmatter has no key `authr`
      --> SKILL.md:3:1
       |
     3 | authr: Somebody
       | ^^^^^ nothing reads this
       |
       = help: did you mean `author`?
    ");
    assert_snapshot!(
        warnings("tools:\n  - name: a\n    scirpt: b\n    parameters: {type: string}\n4: x"),
        @"
    warning: a tool has no key `scirpt`
      --> SKILL.md:4:5
       |
     4 |     scirpt: b
       |     ^^^^^^ nothing reads this
       |
       = help: did you mean `script`?

    warning: a key of the frontmatter is not a string
      --> SKILL.md:6:1
       |
     6 | 4: x
       | ^ nothing reads this
       |
       = help: the keys here are name, description, version, author, tags, kind, lane, system_prompt, requires, tools, allowed-tools, disable-model-invocation, license, compatibility, metadata
    "
    );
}

#[test]
fn all_errors_come_at_once_and_in_order() {
    let source = "---\nname: x\ndescription: ' '\nrequires: [x]\ntools: [{script: /a}]\nsystem_prompt: ..\n---\n";
    let errors = parse(source, "greet").errors;
    let lines = errors.iter().map(|error| {
        diagnostics::Sources::single(diagnostics::Source::new("", source)).location(error.span()).0
    });
    assert_eq!(lines.collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
}

#[test]
fn more_than_a_mebibyte_is_not_read() {
    let start = "---\nname: greet\ndescription: x\n---\n";
    let text = |length: usize| format!("{start}{}", "x".repeat(length - start.len()));
    assert_eq!(parse(&text(MAX_SKILL_MD), "greet").errors, []);
    let errors = parse(&text(MAX_SKILL_MD + 1), "greet").errors;
    assert_eq!(errors[0].message(), "the file has more than 1048576 bytes");
}

/// The keys of public skills for other agents.
#[test]
fn keys_of_other_agents_are_theirs() {
    let yaml = "argument-hint: '[file]'\nuser-invocable: false\ncontext: fork\nagent: Explore\nmodel: inherit\n\
                hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: ./check.sh}]\n\
                allowed-tools: Read, Grep, Bash(git add *)\nmetadata:\n  author: a\n  version: \"1.0\"\n\
                license: Apache-2.0\ntype: tool\ntriggers: [a]\ntitle: A\npaths: 'src/**'\nwhen_to_use: b\n\
                colour: red";
    let parsed = parse(&complete(yaml), "greet");
    assert_eq!((parsed.errors, parsed.warnings), (Vec::new(), Vec::new()));
    let list = complete("allowed-tools:\n  - Read\n  - Bash(git:*)");
    assert_eq!(parse(&list, "greet").errors, []);
}

#[test]
fn a_file_from_another_system_is_read() {
    let text = complete("version: 1").replace('\n', "\r\n");
    assert_eq!(parse(&format!("\u{feff}{text}"), "greet").errors, []);
    let longest = "a".repeat(64);
    let text = format!("---\nname: {longest}\ndescription: x\n---\n");
    assert_eq!(parse(&text, &longest).errors, []);
}

#[test]
fn what_an_editor_does_not_show_is_refused_and_below_worth_a_look() {
    assert_snapshot!(errors("name: greet\n# a \u{202e}comment\nversion: 1\u{200b}"), @"
    error: the invisible character U+202E is not allowed
      --> SKILL.md:3:5
       |
     3 | # a �comment
       |     ^ here
       |
       = help: remove it

    error: the invisible character U+200B is not allowed
      --> SKILL.md:4:11
       |
     4 | version: 1�
       |           ^ here
       |
       = help: remove it
    ");
    let body = format!("{}say \u{e0041}hi\nand \u{202e}bye\n", complete(""));
    let parsed = parse(&body, "greet");
    assert_eq!(parsed.errors, []);
    assert_snapshot!(shown(&parsed.warnings, &body), @"
    warning: the text has the invisible character U+E0041
      --> SKILL.md:7:5
       |
     7 | say �hi
       |     ^ an agent reads this
       |
       = help: remove it, unless agents are meant to read it
    ");
}

#[test]
fn a_merge_that_is_not_finished_is_called_so() {
    assert_snapshot!(errors("name: greet\n<<<<<<< HEAD\nversion: 1\n=======\nversion: 2\n>>>>>>> other"), @"
    error: there is an unresolved merge conflict
      --> SKILL.md:3:1
       |
     3 | <<<<<<< HEAD
       | ^^^^^^^^^^^^ left by the merge
       |
       = help: keep one side or join both, and remove the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`
    ");
}
