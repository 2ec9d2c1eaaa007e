//! Tools with errors.

use insta::assert_snapshot;

use super::{errors, tool_errors};

#[test]
fn tools() {
    assert_snapshot!(errors("tools:\n  - tools/greet.sh"), @r"
    error: a tool is a mapping, not a text
      --> SKILL.md:3:5
       |
     3 |   - tools/greet.sh
       |     ^^^^^^^^^^^^^^ expected `name: …`
       |
       = help: write `- name: greet` and below it `script: tools/greet.sh`
    ");
    assert_snapshot!(errors("tools:\n  - script: a.sh"), @r"
    error: a tool has no `name`
      --> SKILL.md:3:5
       |
     3 |   - script: a.sh
       |     ^^^^^^^^^^^^ without `name`
       |
       = help: write `- name: hello`
    ");
    assert_snapshot!(errors("tools: {name: a}"), @r"
    error: `tools` takes a list, not a mapping
      --> SKILL.md:2:8
       |
     2 | tools: {name: a}
       |        ^^^^^^^^^ expected a list
       |
       = help: begin each item with `- ` on a line of its own
    ");
    assert_snapshot!(errors("tools:\n  - {name: a, script: a}\n  - {name: a, script: b}"), @r"
    error: two tools have the name `a`
      --> SKILL.md:4:12
       |
     3 |   - {name: a, script: a}
       |            - the first
     4 |   - {name: a, script: b}
       |            ^ the second
       |
       = help: give one of them another name
    ");
    assert_snapshot!(errors("tools:\n  - {name: a b, script: a}"), @r"
    error: `a b` is not a valid name
      --> SKILL.md:3:12
       |
     3 |   - {name: a b, script: a}
       |            ^^^ not a name
       |
       = help: such a name has 1 to 64 letters, digits, `_`, `-`
    ");
}

#[test]
fn what_a_tool_runs() {
    assert_snapshot!(tool_errors("    description: x"), @r"
    error: a tool has nothing to run
      --> SKILL.md:4:5
       |
     4 |   - name: hello
       |     ^^^^^^^^^^^ this tool
       |
       = help: write `script: tools/hello.sh` with a file of the skill
    ");
    assert_snapshot!(tool_errors("    script: a.sh\n    bin: b"), @r"
    error: a tool has both `script` and `bin`
      --> SKILL.md:6:5
       |
     5 |     script: a.sh
       |     ------ the other
     6 |     bin: b
       |     ^^^ the one
       |
       = help: keep what the tool is to run, and remove the other
    ");
    assert_snapshot!(tool_errors("    script: ../a.sh"), @r"
    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:5:13
       |
     5 |     script: ../a.sh
       |             ^^^^^^^ `..` leads out of it
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    script: |\n      echo 1\n      echo 2"), @r"
    error: `script` must name a file inside of the skill's directory
      --> SKILL.md:6:7
       |
     6 |       echo 1
       |       ^^^^^^ this is text, not a path
       |
       = help: put the file there and name it from there, as in `tools/hello.sh`
    ");
    assert_snapshot!(tool_errors("    url: https://example.org/jq"), @r"
    error: a program that is downloaded needs a checksum
      --> SKILL.md:5:10
       |
     5 |     url: https://example.org/jq
       |          ^^^^^^^^^^^^^^^^^^^^^^ may serve another program tomorrow
       |
       = help: write `sha256:` with the file's 64 digits beside `url`, or put the file into the skill and write `path: bin/NAME`
    ");
    assert_snapshot!(tool_errors("    url: https://example.org/jq\n    sha256: abc"), @r"
    error: a sha256 has 64 hexadecimal digits, in lower case
      --> SKILL.md:6:13
       |
     6 |     sha256: abc
       |             ^^^ 3 characters
       |
       = help: the output of `sha256sum` begins with them
    ");
    assert_snapshot!(tool_errors("    backend: {type: binary, url: \"http://a b\"}"), @r#"
    error: `http://a b` is not a URL
      --> SKILL.md:5:34
       |
     5 |     backend: {type: binary, url: "http://a b"}
       |                                  ^^^^^^^^^^^^ not a URL
       |
       = help: write `url: https://…`, without blanks

    error: a program that is downloaded needs a checksum
      --> SKILL.md:5:34
       |
     5 |     backend: {type: binary, url: "http://a b"}
       |                                  ^^^^^^^^^^^^ may serve another program tomorrow
       |
       = help: write `sha256:` with the file's 64 digits beside `url`, or put the file into the skill and write `path: bin/NAME`
    "#);
    assert_snapshot!(tool_errors("    backend: {type: binary}"), @r"
    error: a program is not named
      --> SKILL.md:5:14
       |
     5 |     backend: {type: binary}
       |              ^^^^^^^^^^^^^^ no `path`
       |
       = help: write `path: bin/NAME` with a file of the skill
    ");
    assert_snapshot!(tool_errors("    backend: {type: binary, path: a, url: \"https://b\"}"), @r#"
    error: a tool has both `path` and `url`
      --> SKILL.md:5:38
       |
     5 |     backend: {type: binary, path: a, url: "https://b"}
       |                             ---- the other
       |                                      ^^^ the one
       |
       = help: keep what the tool is to run, and remove the other
    "#);
    assert_snapshot!(tool_errors("    backend: {path: a}"), @r"
    error: a backend has no `type`
      --> SKILL.md:5:14
       |
     5 |     backend: {path: a}
       |              ^^^^^^^^^ without `type`
       |
       = help: write `type: binary`, `http` or `script`
    ");
    assert_snapshot!(tool_errors("    backend: {type: builtin}"), @r"
    error: `builtin` is no `type`
      --> SKILL.md:5:21
       |
     5 |     backend: {type: builtin}
       |                     ^^^^^^^ not a known `type`
       |
       = help: write one of binary, http, script
    ");
    assert_snapshot!(tool_errors("    backend: {type: script, script: ls}"), @r"
    error: a backend has no `interpreter`
      --> SKILL.md:5:14
       |
     5 |     backend: {type: script, script: ls}
       |              ^^^^^^^^^^^^^^^^^^^^^^^^^^ without `interpreter`
       |
       = help: write `interpreter: bash`
    ");
    assert_snapshot!(
        tool_errors("    backend: {type: http, url: ftp, method: get, timeout_ms: 0}"),
        @r"
    error: `ftp` is not a URL
      --> SKILL.md:5:32
       |
     5 |     backend: {type: http, url: ftp, method: get, timeout_ms: 0}
       |                                ^^^ not a URL
       |
       = help: write `url: https://…`, without blanks

    error: `get` is no `method`
      --> SKILL.md:5:45
       |
     5 |     backend: {type: http, url: ftp, method: get, timeout_ms: 0}
       |                                             ^^^ not a known `method`
       |
       = help: write one of GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS

    error: `timeout_ms` is out of range
      --> SKILL.md:5:62
       |
     5 |     backend: {type: http, url: ftp, method: get, timeout_ms: 0}
       |                                                              ^ must be a whole number from 1 to 3600000
       |
       = help: write it in digits, without quotes
    "
    );
}

#[test]
fn parameters() {
    assert_snapshot!(tool_errors("    script: a\n    parameters: none"), @r"
    error: `parameters` takes a list or a JSON Schema, not the text `none`
      --> SKILL.md:6:17
       |
     6 |     parameters: none
       |                 ^^^^ expected a list or a JSON Schema
       |
       = help: write `- name: …`, `type: …` below `parameters:`
    ");
    assert_snapshot!(tool_errors("    script: a\n    parameters:\n      - type: text\n        required: 1"), @r"
    error: a parameter has no `name`
      --> SKILL.md:7:9
       |
     7 |       - type: text
       |         ^^^^^^^^^^ without `name`
       |
       = help: write `- name: who`

    error: `text` is no `type`
      --> SKILL.md:7:15
       |
     7 |       - type: text
       |               ^^^^ not a known `type`
       |
       = help: write one of string, number, integer, boolean, object, array, null

    error: `required` takes `true` or `false`, not the number `1`
      --> SKILL.md:8:19
       |
     8 |         required: 1
       |                   ^ expected `true` or `false`
       |
       = help: write `required: true` or `required: false`
    ");
    assert_snapshot!(tool_errors("    script: a\n    parameters: {type: string}"), @r"
    error: the parameters of a tool are an object, not `string`
      --> SKILL.md:6:24
       |
     6 |     parameters: {type: string}
       |                        ^^^^^^ expected `object`
       |
       = help: write `type: object`, and the parameters below `properties:`
    ");
    assert_snapshot!(
        tool_errors("    script: a\n    parameters:\n      type: object\n      properties:\n        a b: {type: x}\n        c: string\n        d: {type: x}"),
        @r"
    error: `a b` is not a valid name
      --> SKILL.md:9:9
       |
     9 |         a b: {type: x}
       |         ^^^ not a name
       |
       = help: such a name has 1 to 64 letters, digits, `_`, `-`, `.`

    error: a property is not a mapping
       --> SKILL.md:10:12
        |
     10 |         c: string
        |            ^^^^^^ has no keys
        |
        = help: write its keys and their values as `key: value`, each on a line of its own

    error: `x` is no `type`
       --> SKILL.md:11:19
        |
     11 |         d: {type: x}
        |                   ^ not a known `type`
        |
        = help: write one of string, number, integer, boolean, object, array, null
    "
    );
}
