//! Files that are right, in each of the three schemas (A3S-12 to A3S-18, A3S-28; X-7, X-8).

use super::manifest;
use crate::skill_md::{Backend, ParameterType, Program, SkillKind};

const FIRST: &str = "---
name: greet
description: Handles orders --- all of them
version: 1.0.0
author: Somebody
tools:
  - name: process_order
    description: Processes one order.
    script: ./tools//process_order.py
    parameters:
      - name: order_id
        type: string
        required: true
      - name: options
        type: object
        required: false
system_prompt: prompts/system.md
requires:
  - bash
  - read_file
  - write
---
# Orders
";

const SECOND: &str = r#"---
name: greet
description: >-
  Talks to
  an interface.
version: "1.0"
lane: skill
tools:
  - name: fetched
    backend:
      type: binary
      url: https://example.org/jq
      sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
      args_template: "${filter}"
  - name: local
    backend: {type: binary, path: bin/jq}
  - name: image
    bin: /usr/bin/jq
  - name: ask
    backend:
      type: http
      url: https://example.org/api
      method: GET
      headers:
        Authorization: "Bearer ${env:API_KEY}"
  - name: count
    backend:
      type: script
      interpreter: python3
      interpreter_args: [-I]
      script: |
        # --- not the end
        ---
        print(1)
    parameters:
      type: object
      properties:
        data: {type: string, description: What to count.}
        mode: {type: [string, "null"]}
        any: {}
      required:
        - data
---
"#;

const THIRD: &str = "---
description: Reads issues.
kind: persona
tags: [github, issues]
allowed-tools: Bash(gh issue view:*), read(*), Task, mcp__git__log
disable-model-invocation: true
license: Apache-2.0
metadata:
  anything: [1, 2]
---
# Body
---
";

#[test]
fn the_first_schema() {
    let skill = manifest(FIRST);
    assert_eq!(skill.name.value, "greet");
    assert_eq!(skill.description.as_deref(), Some("Handles orders --- all of them"));
    assert_eq!(skill.version.as_deref(), Some("1.0.0"));
    assert_eq!(skill.author.as_deref(), Some("Somebody"));
    assert_eq!(skill.kind, SkillKind::Instruction);
    let requires: Vec<&str> = skill.requires.iter().map(|tool| tool.value).collect();
    assert_eq!(requires, ["bash", "read_file", "write_file"]);
    let parameters = &skill.tools[0].parameters;
    assert_eq!((parameters[0].name.as_str(), parameters[0].required), ("order_id", true));
    assert_eq!(parameters[1].kind, Some(ParameterType::Object));
    assert!(!parameters[1].required);
    assert_eq!(&FIRST[skill.body_offset..], "# Orders\n");
    assert_eq!(skill.allowed_tools, None);
}

#[test]
fn the_files_of_a_skill_have_their_places() {
    let skill = manifest(FIRST);
    let files = skill.files();
    let places: Vec<_> = files
        .iter()
        .map(|file| (file.path, &FIRST[file.span.offset..file.span.end()], file.executable))
        .collect();
    assert_eq!(
        places,
        [
            ("prompts/system.md", "prompts/system.md", false),
            ("tools/process_order.py", "./tools//process_order.py", true),
        ]
    );
    let second = manifest(SECOND);
    let paths: Vec<&str> = second.files().iter().map(|file| file.path).collect();
    assert_eq!(paths, ["bin/jq"], "neither a download nor a program of the image");
}

#[test]
fn the_second_schema() {
    let skill = manifest(SECOND);
    assert_eq!(skill.description.as_deref(), Some("Talks to an interface."));
    assert_eq!(skill.lane.as_deref(), Some("skill"));
    let [fetched, _, image, ask, count] = skill.tools.as_slice() else { panic!("five tools") };
    let Backend::Binary { program: Program::Download { url, sha256 }, args_template } =
        &fetched.backend
    else {
        panic!("a download")
    };
    assert_eq!(
        (url.value.as_str(), sha256.0[0], sha256.0[31]),
        ("https://example.org/jq", 1, 0xef)
    );
    assert_eq!(args_template.as_deref(), Some("${filter}"));
    assert!(matches!(&image.backend, Backend::Binary { program: Program::Image(path), .. }
        if path.value == "/usr/bin/jq"));
    let Backend::Http { method, headers, timeout_ms, .. } = &ask.backend else {
        panic!("a request")
    };
    assert_eq!((method.as_str(), *timeout_ms), ("GET", 30_000));
    assert_eq!(headers["Authorization"], "Bearer ${env:API_KEY}");
    let Backend::Inline { script, interpreter_args, .. } = &count.backend else {
        panic!("a script")
    };
    assert_eq!(script, "# --- not the end\n---\nprint(1)\n");
    assert_eq!(interpreter_args, &["-I"]);
}

#[test]
fn a_json_schema_gives_the_parameters() {
    let skill = manifest(SECOND);
    let parameters = &skill.tools[4].parameters;
    let shown: Vec<_> =
        parameters.iter().map(|one| (one.name.as_str(), one.kind, one.required)).collect();
    assert_eq!(
        shown,
        [("data", Some(ParameterType::String), true), ("mode", None, false), ("any", None, false)]
    );
    assert_eq!(parameters[0].description.as_deref(), Some("What to count."));
}

#[test]
fn the_third_schema() {
    let skill = manifest(THIRD);
    assert_eq!(skill.name.value, "greet", "the directory's name");
    assert_eq!(skill.kind, SkillKind::Persona);
    assert_eq!(skill.tags, ["github", "issues"]);
    assert!(skill.disable_model_invocation);
    assert_eq!(&THIRD[skill.body_offset..], "# Body\n---\n");
    let allowed = skill.allowed_tools.unwrap();
    let shown: Vec<_> =
        allowed.iter().map(|one| (one.tool.as_str(), one.pattern.as_deref())).collect();
    assert_eq!(
        shown,
        [
            ("bash", Some("gh issue view:*")),
            ("read_file", None),
            ("Task", None),
            ("mcp__git__log", None)
        ]
    );
}

#[test]
fn allowed_tools_may_be_a_list_or_parted_by_blanks() {
    let tools = |value: &str| {
        let skill = manifest(&format!("---\nallowed-tools: {value}\n---\n"));
        let allowed = skill.allowed_tools.unwrap();
        allowed.into_iter().map(|one| (one.tool, one.pattern)).collect::<Vec<_>>()
    };
    let expected =
        [("read_file".to_owned(), None), ("bash".to_owned(), Some("uv run (a, b):*".to_owned()))];
    assert_eq!(tools("[Read, \"Bash(uv run (a, b):*)\"]"), expected);
    assert_eq!(tools("Read Bash(uv run (a, b):*)"), expected);
    assert_eq!(tools("[]"), []);
}

#[test]
fn an_empty_frontmatter_and_windows_line_ends_are_read() {
    assert_eq!(manifest("---\n---\n").name.value, "greet");
    let source = "---\r\nname: greet\r\ndescription: é\r\nrequires:\r\n- bash\r\n---\r\nx";
    let skill = manifest(source);
    assert_eq!(skill.description.as_deref(), Some("é"));
    let span = skill.requires[0].span;
    assert_eq!(&source[span.offset..span.end()], "bash");
    assert_eq!(&source[skill.body_offset..], "x");
}
