//! Valid files in each of the three schemas.

use super::{complete, manifest};
use crate::skill_md::SkillManifest;

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
  - name: counter
    bin: bin/count
  - name: other
    backend: {type: binary, path: /usr/bin/jq}
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
name: greet
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
    let requires: Vec<&str> = skill.requires.iter().map(|tool| tool.value).collect();
    assert_eq!(requires, ["bash", "read_file", "write_file"]);
    let files = skill.files.iter().map(|file| {
        (file.path.as_str(), &FIRST[file.span.offset..file.span.end()], file.executable)
    });
    assert_eq!(
        files.collect::<Vec<_>>(),
        [
            ("prompts/system.md", "prompts/system.md", false),
            ("tools/process_order.py", "./tools//process_order.py", true),
        ]
    );
}

#[test]
fn the_second_schema() {
    let files = manifest(SECOND).files;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["bin/jq", "bin/count"], "neither downloads nor programs of the image");
    assert!(files.iter().all(|file| file.executable));
}

#[test]
fn the_third_schema() {
    let skill = manifest(THIRD);
    assert_eq!((skill.requires, skill.files), (Vec::new(), Vec::new()));
}

#[test]
fn an_unread_key_may_have_any_value() {
    for value in ["", "7", ".inf", "[1, {2: yes}]", "!!str 7", "{~: ~}", "99999999999999999999999"]
    {
        for key in ["lane", "kind", "allowed-tools", "metadata", "tools: [{parameters"] {
            let end = if key.contains('{') { "}]" } else { "" };
            manifest(&complete(&format!("{key}: {value}{end}")));
        }
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_read() {
    let source = "\u{feff}---\r\nname: greet\r\ndescription: é\r\nrequires:\r\n- bash\r\n---\r\nx";
    let SkillManifest { name, requires, .. } = manifest(source);
    assert_eq!(&source[name.offset..name.end()], "greet");
    let span = requires[0].span;
    assert_eq!(&source[span.offset..span.end()], "bash");
}
