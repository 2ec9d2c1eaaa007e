//! Missing and malformed frontmatter.

use insta::assert_snapshot;

use super::{complete, errors, file_errors, manifest};

#[test]
fn fences() {
    assert_snapshot!(file_errors("# Greet\n"), @"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 | # Greet
       | ^^^^^^^ not `---`
       |
       = help: begin the file with the lines `---`, `name: …`, `description: …` and `---`
    ");
    assert_snapshot!(file_errors(""), @"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 |
       | ^ not `---`
       |
       = help: begin the file with the lines `---`, `name: …`, `description: …` and `---`
    ");
    assert_snapshot!(file_errors("\u{feff}---\nname: greet\n"), @"
    error: the frontmatter has no end
      --> SKILL.md:1:2
       |
     1 | �---
       |  ^^^ begins here
       |
       = help: write `---` on a line of its own after the last key
    ");
    assert_snapshot!(file_errors("--- \nname: greet\n---\n"), @"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^^ with whitespace
       |
       = help: write `---` and nothing else on the first line
    ");
    assert_snapshot!(file_errors("---\nname: greet\n# Body\n"), @"
    error: the frontmatter has no end
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
       |
       = help: write `---` on a line of its own after the last key
    ");
    assert_snapshot!(file_errors("---\nname: greet\n---  \n# Body\n"), @"
    error: the frontmatter has no end
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
    ...
     3 | ---
       | ----- this line has whitespace
       |
       = help: write `---` and nothing else on the line that ends it
    ");
}

#[test]
fn mappings() {
    assert_snapshot!(errors("description: Use it when: always"), @"
    error: a `:` followed by a space is not allowed here
      --> SKILL.md:2:25
       |
     2 | description: Use it when: always
       |                         ^ this would begin a second value
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it like its neighbours
    ");
    assert_snapshot!(errors("name: greet\n  version: 1.0.0"), @"
    error: a `:` followed by a space is not allowed here
      --> SKILL.md:3:10
       |
     3 |   version: 1.0.0
       |          ^ this would begin a second value
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it like its neighbours
    ");
    assert_snapshot!(errors("name: greet\n- bash"), @"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:3:3
       |
     3 | - bash
       |   ^ not a further key or item
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("name: greet\nversion"), @"
    error: a key has no `:`
      --> SKILL.md:3:1
       |
     3 | version
       | ^ expected `key: value`
       |
       = help: write `key: value`; indent the further lines of a long string
    ");
    assert_snapshot!(errors("tools:\n  - name: a\n   script: b"), @"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:4:4
       |
     4 |    script: b
       |    ^ not a further key or item
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("requires: - bash"), @"
    error: a list cannot begin here
      --> SKILL.md:2:11
       |
     2 | requires: - bash
       |           ^ the first item
       |
       = help: begin the list on a line of its own
    ");
    assert_snapshot!(errors("tools:\n\t- name: a"), @"
    error: a tab cannot indent a line
      --> SKILL.md:3:2
       |
     3 |     - name: a
       |     ^ a tab indents this or the line below
       |
       = help: indent with spaces
    ");
    assert_snapshot!(errors("- name: greet"), @"
    error: the frontmatter must be a mapping, not a list
      --> SKILL.md:2:1
       |
     2 | - name: greet
       | ^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
    assert_snapshot!(errors("just text"), @"
    error: the frontmatter must be a mapping, not `just text`
      --> SKILL.md:2:1
       |
     2 | just text
       | ^^^^^^^^^ expected a mapping
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
    assert_snapshot!(errors("name: a\n...\nname: b"), @"
    error: the frontmatter is more than one document
      --> SKILL.md:4:1
       |
     4 | name: b
       | ^ the second begins here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("name: a\n--- b"), @"
    error: the frontmatter is more than one document
      --> SKILL.md:3:5
       |
     3 | --- b
       |     ^ the second begins here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("  name: a\nversion: b"), @"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:3:1
       |
     3 | version: b
       | ^ not a further key or item
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
}

#[test]
fn quotes_and_brackets() {
    assert_snapshot!(errors("author: 'Somebody\nname: greet"), @"
    error: a quote is not closed
      --> SKILL.md:2:9
       |
     2 | author: 'Somebody
       |         ^ opened here
       |
       = help: close it; a string that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'Somebody"), @"
    error: a quote is not closed
      --> SKILL.md:2:9
       |
     2 | author: 'Somebody
       |         ^ opened here
       |
       = help: close it; a string that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'somebody's'"), @"
    error: text follows a closing quote
      --> SKILL.md:2:19
       |
     2 | author: 'somebody's'
       |                   ^ from here on
       |
       = help: put the whole value between the quotes; a string that contains a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: \"a\\qb\""), @r#"
    error: a string in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "a\qb"
       |         ^ in this text
       |
       = help: write `\\` for a backslash, `\u` and 4 digits for a character, or use single quotes, where nothing is special
    "#);
    assert_snapshot!(errors("author: \"\\xZZ\""), @r#"
    error: a string in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\xZZ"
       |         ^ in this text
       |
       = help: write `\\` for a backslash, `\u` and 4 digits for a character, or use single quotes, where nothing is special
    "#);
    assert_snapshot!(errors("author: \"\\ud800\""), @r#"
    error: a string in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\ud800"
       |         ^ in this text
       |
       = help: write `\\` for a backslash, `\u` and 4 digits for a character, or use single quotes, where nothing is special
    "#);
    assert_snapshot!(errors("author: |x\n  a"), @"
    error: the frontmatter cannot be read: while scanning a block scalar, did not find expected comment or line break
      --> SKILL.md:2:9
       |
     2 | author: |x
       |         ^ here
       |
       = help: put a string with special characters in quotes, and indent with spaces
    ");
    assert_snapshot!(errors("author: |\n\ta"), @"
    error: a tab cannot indent a line
      --> SKILL.md:2:9
       |
     2 | author: |
       |         ^ a tab indents this or the line below
       |
       = help: indent with spaces
    ");
    assert_snapshot!(errors("author: @somebody"), @"
    error: a value cannot begin with this character
      --> SKILL.md:2:9
       |
     2 | author: @somebody
       |         ^ reserved in YAML
       |
       = help: put the value in quotes
    ");
    assert_snapshot!(errors("requires: [bash, read\nname: greet"), @"
    error: a bracket is not closed
      --> SKILL.md:3:5
       |
     3 | name: greet
       |     ^ not closed until here
       |
       = help: close a list with `]` and a mapping with `}`; put a string that contains brackets in quotes
    ");
    assert_snapshot!(errors("requires: {a: bash"), @"
    error: a bracket is not closed
      --> SKILL.md:2:11
       |
     2 | requires: {a: bash
       |           ^ opened here
       |
       = help: close a list with `]` and a mapping with `}`; put a string that contains brackets in quotes
    ");
    assert_snapshot!(errors("requires: [bash"), @"
    error: a bracket is not closed
      --> SKILL.md:2:11
       |
     2 | requires: [bash
       |           ^ opened here
       |
       = help: close a list with `]` and a mapping with `}`; put a string that contains brackets in quotes
    ");
    assert_snapshot!(errors("name: {a: b]"), @"
    error: a bracket is not closed
      --> SKILL.md:2:7
       |
     2 | name: {a: b]
       |       ^ opened here
       |
       = help: close a list with `]` and a mapping with `}`; put a string that contains brackets in quotes
    ");
    assert_snapshot!(errors("requires: [bash]]"), @"
    error: a bracket is closed that was not opened
      --> SKILL.md:2:17
       |
     2 | requires: [bash]]
       |                 ^ closed here
       |
       = help: remove it, or put a string that contains brackets in quotes
    ");
    assert_snapshot!(errors("author: a\0b"), @"
    error: the frontmatter contains a NUL character
      --> SKILL.md:2:10
       |
     2 | author: a�b
       |          ^ here
       |
       = help: remove it
    ");
}

#[test]
fn unsupported_yaml() {
    assert_snapshot!(errors("name: &n greet"), @"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:10
       |
     2 | name: &n greet
       |          ^^^^^ here
       |
       = help: write the value out; put a string that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("author: &n [1]\nname: *n"), @"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:12
       |
     2 | author: &n [1]
       |            ^ here
       |
       = help: write the value out; put a string that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("author: *nobody"), @"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:9
       |
     2 | author: *nobody
       |         ^ here
       |
       = help: write the value out; put a string that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("<<: {a: b}"), @"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:1
       |
     2 | <<: {a: b}
       | ^^ here
       |
       = help: write the value out; put a string that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("metadata: {a: 1, a: 2}"), @"
    error: `a` is given twice
      --> SKILL.md:2:18
       |
     2 | metadata: {a: 1, a: 2}
       |                  ^ given again
       |
       = help: remove one of them
    ");
    assert_snapshot!(errors("tools:\n  - name: a\n    script: a\n    script: b"), @"
    error: `script` is given twice
      --> SKILL.md:5:5
       |
     4 |     script: a
       |     ------ given first
     5 |     script: b
       |     ^^^^^^ given again
       |
       = help: remove one of them
    ");
    assert_snapshot!(errors(&format!("metadata: {}1{}", "[".repeat(17), "]".repeat(17))), @"
    error: collections are nested more than 16 deep
      --> SKILL.md:2:26
       |
     2 | metadata: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]
       |                          ^ too deep
       |
       = help: put data that is nested this deep into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata: {}", "[".repeat(1000))), @"
    error: collections are nested more than 16 deep
      --> SKILL.md:2:266
       |
     2 | …[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…
       |                                          ^ too deep
       |
       = help: put data that is nested this deep into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata:\n  {}a", "- ".repeat(20))), @"
    error: collections are nested more than 16 deep
      --> SKILL.md:3:33
       |
     3 |   - - - - - - - - - - - - - - - - - - - - a
       |                                 ^ too deep
       |
       = help: put data that is nested this deep into a file of the skill
    ");
}

#[test]
fn tags() {
    for tagged in ["!!str greet", "!!binary Z3JlZXQ=", "! greet"] {
        manifest(&complete(&format!("name: {tagged}")));
    }
    assert_snapshot!(errors("name: !custom greet"), @"
    error: tags other than YAML's own are not supported
      --> SKILL.md:2:15
       |
     2 | name: !custom greet
       |               ^^^^^ here
       |
       = help: leave the tag out; put a string that begins with `!` in quotes
    ");
    assert_snapshot!(errors("metadata: {a: !<tag:example.org,2000:x> [1]}"), @"
    error: tags other than YAML's own are not supported
      --> SKILL.md:2:41
       |
     2 | metadata: {a: !<tag:example.org,2000:x> [1]}
       |                                         ^ here
       |
       = help: leave the tag out; put a string that begins with `!` in quotes
    ");
    assert_snapshot!(errors("name: !!int 1"), @r#"
    error: `name` must be a string, not `1`
      --> SKILL.md:2:13
       |
     2 | name: !!int 1
       |             ^ expected a string
       |
       = help: put it in quotes: "1"
    "#);
    assert_snapshot!(errors("name: !!binary Z3J"), @"
    error: the value of `!!binary` is not base64
      --> SKILL.md:2:16
       |
     2 | name: !!binary Z3J
       |                ^^^ not base64
       |
       = help: leave the tag out, and write the text itself
    ");
}
