//! Frontmatter that is missing, or no YAML that is read.

use insta::assert_snapshot;

use super::{errors, file_errors};

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
       | ^^^^ a byte order mark stands in front of it
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
       = help: write `---` on a line of its own behind the last key
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
    error: a `:` followed by a blank cannot stand here
      --> SKILL.md:2:25
       |
     2 | description: Use it when: always
       |                         ^ this would begin a second value
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours
    ");
    assert_snapshot!(errors("name: greet\n  version: 1.0.0"), @r"
    error: a `:` followed by a blank cannot stand here
      --> SKILL.md:3:10
       |
     3 |   version: 1.0.0
       |          ^ this would begin a second value
       |
       = help: put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours
    ");
    assert_snapshot!(errors("name: greet\n- bash"), @r"
    error: this line does not continue what stands above it
      --> SKILL.md:3:3
       |
     3 | - bash
       |   ^ not a further key of the mapping above
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("name: greet\nversion"), @r"
    error: a key has no `:`
      --> SKILL.md:3:1
       |
     3 | version
       | ^^^^^^^ expected `key: value`
       |
       = help: write a `:` behind the key; indent the further lines of a long text
    ");
    assert_snapshot!(errors("tools:\n  - name: a\n   script: b"), @r"
    error: this line does not continue what stands above it
      --> SKILL.md:4:4
       |
     4 |    script: b
       |    ^ not a further item of the list above
       |
       = help: begin the keys of one mapping, and the `-` of one list, in the same column, with spaces
    ");
    assert_snapshot!(errors("requires: - bash"), @r"
    error: a list cannot begin here
      --> SKILL.md:2:11
       |
     2 | requires: - bash
       |           ^ the first item
       |
       = help: begin the list on a line of its own
    ");
    assert_snapshot!(errors("tools:\n\t- name: a"), @r"
    error: a tab cannot indent a line
      --> SKILL.md:3:2
       |
     3 |     - name: a
       |     ^ a tab indents this or the line below
       |
       = help: indent with spaces
    ");
    assert_snapshot!(errors("- name: greet"), @r"
    error: the frontmatter is not a mapping
      --> SKILL.md:2:1
       |
     2 | - name: greet
       | ^^^^^^^^^^^^^ has no keys
       |
       = help: write its keys and their values as `key: value`, each on a line of its own
    ");
    assert_snapshot!(errors("just text"), @r"
    error: the frontmatter is not a mapping
      --> SKILL.md:2:1
       |
     2 | just text
       | ^^^^^^^^^ has no keys
       |
       = help: write its keys and their values as `key: value`, each on a line of its own
    ");
    assert_snapshot!(errors("name: a\n...\nname: b"), @r"
    error: the frontmatter is more than one document
      --> SKILL.md:4:1
       |
     4 | name: b
       | ^ the second begins here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("name: a\n--- b"), @r"
    error: the frontmatter is more than one document
      --> SKILL.md:3:1
       |
     3 | --- b
       | ^^^ the second begins here
       |
       = help: write `---` and nothing else on the line that ends the frontmatter
    ");
    assert_snapshot!(errors("  name: a\nversion: b"), @r"
    error: the frontmatter is more than one mapping
      --> SKILL.md:3:1
       |
     3 | version: b
       | ^ the first has ended above
       |
       = help: keep one mapping, without lines that begin with `...`, `---` or `%`, and indent its keys alike
    ");
}

#[test]
fn quotes_and_brackets() {
    assert_snapshot!(errors("author: 'Somebody\nname: greet"), @r"
    error: a quote is not closed
      --> SKILL.md:2:9
       |
     2 | author: 'Somebody
       |         ^ opened here
       |
       = help: close it; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'Somebody"), @r"
    error: a quote is not closed
      --> SKILL.md:2:9
       |
     2 | author: 'Somebody
       |         ^ opened here
       |
       = help: close it; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: 'somebody's'"), @r"
    error: a quote is not closed
      --> SKILL.md:2:19
       |
     2 | author: 'somebody's'
       |                   ^ opened here
       |
       = help: close it; a text that contains an apostrophe or a quote is written in quotes of the other kind
    ");
    assert_snapshot!(errors("author: \"a\\qb\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "a\qb"
       |         ^ in this text
       |
       = help: write `\\` for a backslash, or put the text in single quotes, where none is special
    "#);
    assert_snapshot!(errors("author: \"\\xZZ\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\xZZ"
       |         ^ in this text
       |
       = help: behind `\x` stand 2, behind `\u` 4 and behind `\U` 8 hexadecimal digits of a character
    "#);
    assert_snapshot!(errors("author: \"\\ud800\""), @r#"
    error: a text in double quotes has an escape that YAML does not know
      --> SKILL.md:2:9
       |
     2 | author: "\ud800"
       |         ^ in this text
       |
       = help: behind `\x` stand 2, behind `\u` 4 and behind `\U` 8 hexadecimal digits of a character
    "#);
    assert_snapshot!(errors("author: |x\n  a"), @r"
    error: the frontmatter is not YAML: while scanning a block scalar, did not find expected comment or line break
      --> SKILL.md:2:9
       |
     2 | author: |x
       |         ^ here
       |
       = help: put texts with special characters in quotes, and indent with spaces
    ");
    assert_snapshot!(errors("author: |\n\ta"), @r"
    error: a tab cannot indent a line
      --> SKILL.md:2:9
       |
     2 | author: |
       |         ^ a tab indents this or the line below
       |
       = help: indent with spaces
    ");
    assert_snapshot!(errors("author: @somebody"), @r"
    error: a value cannot begin with this character
      --> SKILL.md:2:9
       |
     2 | author: @somebody
       |         ^ reserved in YAML
       |
       = help: put the value in quotes
    ");
    assert_snapshot!(errors("requires: [bash, read\nname: greet"), @r"
    error: a bracket is not closed
      --> SKILL.md:3:5
       |
     3 | name: greet
       |     ^ not closed until here
       |
       = help: close a list with `]` and a mapping with `}`
    ");
    assert_snapshot!(errors("requires: {a: bash"), @r"
    error: a bracket is not closed
      --> SKILL.md:3:1
       |
     3 | ---
       | ^ not closed until here
       |
       = help: close a list with `]` and a mapping with `}`
    ");
    assert_snapshot!(errors("requires: [bash"), @r"
    error: a bracket is not closed
      --> SKILL.md:3:1
       |
     3 | ---
       | ^ not closed until here
       |
       = help: close a list with `]` and a mapping with `}`
    ");
    assert_snapshot!(errors("requires: [bash]]"), @r"
    error: a bracket is closed that was not opened
      --> SKILL.md:2:17
       |
     2 | requires: [bash]]
       |                 ^ closed here
       |
       = help: remove it, or put a text that contains brackets in quotes
    ");
    assert_snapshot!(errors("author: a\0b"), @r"
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
fn what_is_not_supported() {
    assert_snapshot!(errors("name: &n greet\nauthor: *n\nversion: !!str 1\n<<: {a: b}"), @r"
    error: anchors are not supported
      --> SKILL.md:2:7
       |
     2 | name: &n greet
       |       ^^^^^^^^ has an anchor, which begins with `&`
       |
       = help: remove it; put a text that begins with `&` in quotes

    error: aliases are not supported
      --> SKILL.md:3:9
       |
     3 | author: *n
       |         ^^ `*` begins an alias
       |
       = help: write the value out; put a text that begins with `*` in quotes

    error: tags are not supported
      --> SKILL.md:4:10
       |
     4 | version: !!str 1
       |          ^^^^^^^ has a tag, which begins with `!`
       |
       = help: remove it; put a text that begins with `!` in quotes

    error: merge keys are not supported
      --> SKILL.md:5:1
       |
     5 | <<: {a: b}
       | ^^ merges another mapping
       |
       = help: write the keys out
    ");
    assert_snapshot!(errors("author: *nobody"), @r"
    error: aliases are not supported
      --> SKILL.md:2:9
       |
     2 | author: *nobody
       |         ^ `*` begins an alias
       |
       = help: write the value out; put a text that begins with `*` in quotes
    ");
    assert_snapshot!(errors("[a, b]: c"), @r"
    error: a key is a list or mapping
      --> SKILL.md:2:1
       |
     2 | [a, b]: c
       | ^^^^^^^^^ where a key is expected
       |
       = help: a key is a text; put a text with brackets or braces in quotes
    ");
    assert_snapshot!(errors(": c"), @r"
    error: a key is empty
      --> SKILL.md:2:1
       |
     2 | : c
       | ^ nothing in front of `:`
       |
       = help: write `key: value`
    ");
    assert_snapshot!(errors(&format!("metadata: {}1{}", "[".repeat(17), "]".repeat(17))), @r"
    error: collections lie more than 16 deep in one another
      --> SKILL.md:2:26
       |
     2 | metadata: [[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]
       |                          ^ too deep
       |
       = help: put data of this depth into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata: {}", "[".repeat(1000))), @r"
    error: collections lie more than 16 deep in one another
      --> SKILL.md:2:266
       |
     2 | …[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…
       |                                          ^ too deep
       |
       = help: put data of this depth into a file of the skill
    ");
    assert_snapshot!(errors(&format!("metadata:\n  {}a", "- ".repeat(20))), @r"
    error: collections lie more than 16 deep in one another
      --> SKILL.md:3:33
       |
     3 |   - - - - - - - - - - - - - - - - - - - - a
       |                                 ^ too deep
       |
       = help: put data of this depth into a file of the skill
    ");
}
