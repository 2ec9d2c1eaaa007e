//! Frontmatter that is missing or malformed.

use insta::assert_snapshot;

use super::{errors, file_errors, manifest};

#[test]
fn fences() {
    assert_snapshot!(file_errors("# Greet\n"), @r"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 | # Greet
       | ^^^^^^^ not `---`
       |
       = help: begin the file with the lines `---`, `name: …`, `description: …` and `---`
    ");
    assert_snapshot!(file_errors(""), @r"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 |
       | ^ not `---`
       |
       = help: begin the file with the lines `---`, `name: …`, `description: …` and `---`
    ");
    assert_snapshot!(file_errors("\u{feff}---\nname: greet\n---\n"), @r"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 | �---
       | ^^^^ a byte order mark precedes it
       |
       = help: save the file as UTF-8 without one
    ");
    assert_snapshot!(file_errors("--- \nname: greet\n---\n"), @r"
    error: the file does not begin with the line `---`
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^^ with blanks
       |
       = help: write `---` and nothing else on the first line
    ");
    assert_snapshot!(file_errors("---\nname: greet\n# Body\n"), @r"
    error: the frontmatter has no end
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
       |
       = help: write `---` on a line of its own after the last key
    ");
    assert_snapshot!(file_errors("---\nname: greet\n---  \n# Body\n"), @r"
    error: the frontmatter has no end
      --> SKILL.md:1:1
       |
     1 | ---
       | ^^^ begins here
    ...
     3 | ---
       | ----- this line has blanks
       |
       = help: write `---` and nothing else on the line that ends it
    ");
}

#[test]
fn mappings() {
    assert_snapshot!(errors("description: Use it when: always"), @r"
    error: a `:` followed by a blank is not allowed here
      --> SKILL.md:2:25
       |
     2 | description: Use it when: always
       |                         ^ here
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours
    ");
    assert_snapshot!(errors("name: greet\n  version: 1.0.0"), @r"
    error: a `:` followed by a blank is not allowed here
      --> SKILL.md:3:10
       |
     3 |   version: 1.0.0
       |          ^ here
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours
    ");
    assert_snapshot!(errors("name: greet\n- bash"), @r"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:3:3
       |
     3 | - bash
       |   ^ here
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("name: greet\nversion"), @r"
    error: a key has no `:`
      --> SKILL.md:3:1
       |
     3 | version
       | ^ here
       |
       = help: write `key: value`; indent the further lines of a long text
    ");
    assert_snapshot!(errors("tools:\n  - name: a\n   script: b"), @r"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:4:4
       |
     4 |    script: b
       |    ^ here
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("requires: - bash"), @"
    error: the frontmatter cannot be read: block sequence entries are not allowed in this context
      --> SKILL.md:2:11
       |
     2 | requires: - bash
       |           ^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
    assert_snapshot!(errors("tools:\n\t- name: a"), @"
    error: the frontmatter cannot be read: tabs disallowed within this context (block indentation)
      --> SKILL.md:3:2
       |
     3 |     - name: a
       |     ^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
    assert_snapshot!(errors("- name: greet"), @r"
    error: a mapping is expected here
      --> SKILL.md:2:1
       |
     2 | - name: greet
       | ^ here
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
    assert_snapshot!(errors("just text"), @r"
    error: a mapping is expected here
      --> SKILL.md:2:1
       |
     2 | just text
       | ^^^^^^^^^ here
       |
       = help: write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`
    ");
    assert_snapshot!(errors("name: a\n...\nname: b"), @r"
    error: the frontmatter is more than one document
      --> SKILL.md:4:1
       |
     4 | name: b
       | ^ here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("name: a\n--- b"), @r"
    error: the frontmatter is more than one document
      --> SKILL.md:3:5
       |
     3 | --- b
       |     ^ here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("  name: a\nversion: b"), @r"
    error: this line does not continue the mapping or list above it
      --> SKILL.md:3:1
       |
     3 | version: b
       | ^ here
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
}

#[test]
fn quotes_and_brackets() {
    assert_snapshot!(errors("author: 'Somebody\nname: greet"), @r"
    error: a quote is not closed, or text follows the closing one
      --> SKILL.md:3:1
       |
     3 | name: greet
       | ^ here
       |
       = help: put the whole value between quotes; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'Somebody"), @r"
    error: a quote is not closed, or text follows the closing one
      --> SKILL.md:3:1
       |
     3 | ---
       | ^ here
       |
       = help: put the whole value between quotes; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'somebody's'"), @r"
    error: a quote is not closed, or text follows the closing one
      --> SKILL.md:2:19
       |
     2 | author: 'somebody's'
       |                   ^ here
       |
       = help: put the whole value between quotes; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: \"a\\qb\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "a\qb"
       |         ^ here
       |
       = help: write `\\` for a backslash, `\u` and 4 digits for a character, or use single quotes, where nothing is special
    "#);
    assert_snapshot!(errors("author: \"\\xZZ\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\xZZ"
       |         ^ here
       |
       = help: write `\\` for a backslash, `\u` and 4 digits for a character, or use single quotes, where nothing is special
    "#);
    assert_snapshot!(errors("author: \"\\ud800\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\ud800"
       |         ^ here
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
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
    assert_snapshot!(errors("author: |\n\ta"), @"
    error: the frontmatter cannot be read: a block scalar content cannot start with a tab
      --> SKILL.md:2:9
       |
     2 | author: |
       |         ^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
    assert_snapshot!(errors("author: @somebody"), @"
    error: the frontmatter cannot be read: unexpected character: `@'
      --> SKILL.md:2:9
       |
     2 | author: @somebody
       |         ^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
    assert_snapshot!(errors("requires: [bash, read\nname: greet"), @r"
    error: a bracket is not closed here, or was not opened
      --> SKILL.md:3:5
       |
     3 | name: greet
       |     ^ here
       |
       = help: close a list with `]` and a mapping with `}`; put a text that contains brackets in quotes
    ");
    assert_snapshot!(errors("requires: {a: bash"), @r"
    error: a list is expected here
      --> SKILL.md:2:11
       |
     2 | requires: {a: bash
       |           ^ here
       |
       = help: write it as `[bash, read]`, or begin each item with `- ` on a line of its own
    ");
    assert_snapshot!(errors("requires: [bash"), @r"
    error: a bracket is not closed here, or was not opened
      --> SKILL.md:2:11
       |
     2 | requires: [bash
       |           ^ here
       |
       = help: close a list with `]` and a mapping with `}`; put a text that contains brackets in quotes
    ");
    assert_snapshot!(errors("name: {a: b]"), @r"
    error: a text is expected here, not a list or a mapping
      --> SKILL.md:2:7
       |
     2 | name: {a: b]
       |       ^ here
       |
       = help: put a text that begins with a bracket or brace in quotes
    ");
    assert_snapshot!(errors("requires: [bash]]"), @r"
    error: a bracket is not closed here, or was not opened
      --> SKILL.md:2:17
       |
     2 | requires: [bash]]
       |                 ^ here
       |
       = help: close a list with `]` and a mapping with `}`; put a text that contains brackets in quotes
    ");
    assert_snapshot!(errors("author: a\0b"), @r"
    error: the frontmatter cannot be read: unexpected character: `\u{0}'
      --> SKILL.md:2:10
       |
     2 | author: a�b
       |          ^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
}

#[test]
fn what_is_not_supported() {
    assert_snapshot!(errors("name: &n greet"), @r"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:10
       |
     2 | name: &n greet
       |          ^^^^^ here
       |
       = help: write the value out; put a text that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("author: &n [1]\nname: *n"), @r"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:12
       |
     2 | author: &n [1]
       |            ^ here
       |
       = help: write the value out; put a text that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("author: *nobody"), @r"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:9
       |
     2 | author: *nobody
       |         ^ here
       |
       = help: write the value out; put a text that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("<<: {a: b}"), @r"
    error: anchors, aliases and merge keys are not supported
      --> SKILL.md:2:1
       |
     2 | <<: {a: b}
       | ^^ here
       |
       = help: write the value out; put a text that begins with `&` or `*` in quotes
    ");
    assert_snapshot!(errors("metadata: {a: 1, a: 2}"), @r"
    error: `a` is given twice
      --> SKILL.md:2:18
       |
     2 | metadata: {a: 1, a: 2}
       |                  ^ given again
       |
       = help: remove one of them
    ");
    assert_snapshot!(errors("tools:\n  - name: a\n    script: a\n    script: b"), @r"
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
    assert_snapshot!(errors(&format!("metadata: {}1{}", "[".repeat(17), "]".repeat(17))), @r"
    error: collections are nested more than 16 deep
      --> SKILL.md:2:26
       |
     2 | metadata: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]
       |                          ^ here
       |
       = help: put data of this depth into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata: {}", "[".repeat(1000))), @r"
    error: collections are nested more than 16 deep
      --> SKILL.md:2:266
       |
     2 | …[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…
       |                                          ^ here
       |
       = help: put data of this depth into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata:\n  {}a", "- ".repeat(20))), @r"
    error: collections are nested more than 16 deep
      --> SKILL.md:3:33
       |
     3 |   - - - - - - - - - - - - - - - - - - - - a
       |                                 ^ here
       |
       = help: put data of this depth into a file of the skill
    ");
}

#[test]
fn tags() {
    for tagged in ["!!str greet", "!!binary Z3JlZXQ=", "! greet"] {
        manifest(&format!("---\nname: {tagged}\n---\n"));
    }
    assert_snapshot!(errors("name: !custom greet"), @"
    error: tags other than YAML's own are not supported
      --> SKILL.md:2:15
       |
     2 | name: !custom greet
       |               ^^^^^ here
       |
       = help: leave the tag out; put a text that begins with `!` in quotes
    ");
    assert_snapshot!(errors("metadata: {a: !<tag:example.org,2000:x> [1]}"), @"
    error: tags other than YAML's own are not supported
      --> SKILL.md:2:41
       |
     2 | metadata: {a: !<tag:example.org,2000:x> [1]}
       |                                         ^ here
       |
       = help: leave the tag out; put a text that begins with `!` in quotes
    ");
    assert_snapshot!(errors("name: !!int 1"), @r#"
    error: a text is expected here, not `1`
      --> SKILL.md:2:13
       |
     2 | name: !!int 1
       |             ^ a number or a truth value
       |
       = help: put it in quotes: "1"
    "#);
    assert_snapshot!(errors("name: !!binary Z3J"), @"
    error: the frontmatter cannot be read: invalid !!binary base64 at line 2, column 16
      --> SKILL.md:2:16
       |
     2 | name: !!binary Z3J
       |                ^^^ here
       |
       = help: put a text with special characters in quotes, begin a list on a line of its own, and indent with spaces
    ");
}
