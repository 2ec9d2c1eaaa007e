//! What is not a Boxfile's grammar: syntax, and declarations that are unknown or missing.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors};

#[test]
fn an_empty_file_lacks_everything() {
    assert_snapshot!(errors(""), @r#"
    error: the file does not declare `box`
      --> Boxfile:1:1
       |
     1 |
       | ^ in this file
       |
       = help: add `box "my-agent"`

    error: the file does not declare `agent`
      --> Boxfile:1:1
       |
     1 |
       | ^ in this file
       |
       = help: add `agent { image "oci:images/agent"; }`
    "#);
}

#[test]
fn a_misspelt_declaration_is_recognised() {
    assert_snapshot!(errors("box \"b\"\n\nagnet {\n    image \"oci:i\"\n}\n"), @r"
    error: unknown declaration `agnet`
      --> Boxfile:3:1
       |
     3 | agnet {
       | ^^^^^ no such declaration here
       |
       = help: did you mean `agent`?
    ");
}

#[test]
fn an_unknown_declaration_gets_the_list() {
    assert_snapshot!(file_errors(r#"volume "data""#), @r#"
    error: unknown declaration `volume`
      --> Boxfile:3:1
       |
     3 | volume "data"
       | ^^^^^^ no such declaration here
       |
       = help: the declarations here are `box`, `agent`, `business`, `skill`, `vm`, `layout`, `budget`, `kernel`
    "#);
    assert_snapshot!(agent_errors(r#"    volume "data""#), @r#"
    error: unknown declaration `volume`
      --> Boxfile:4:5
       |
     4 |     volume "data"
       |     ^^^^^^ no such declaration here
       |
       = help: the declarations here are `image`, `entrypoint`, `args`, `env`, `workdir`, `port`, `health`, `namespaces`, `limits`
    "#);
}

#[test]
fn a_declaration_in_the_wrong_place_is_sent_to_the_right_one() {
    assert_snapshot!(file_errors(r#"workdir "/""#), @r#"
    error: unknown declaration `workdir`
      --> Boxfile:3:1
       |
     3 | workdir "/"
       | ^^^^^^^ no such declaration here
       |
       = help: `workdir` belongs inside `agent { … }` or `business { … }`
    "#);
    assert_snapshot!(agent_errors(r#"    vm cpus=1"#), @r"
    error: unknown declaration `vm`
      --> Boxfile:4:5
       |
     4 |     vm cpus=1
       |     ^^ no such declaration here
       |
       = help: `vm` stands by itself in the file, outside of any `{ … }`
    ");
}

#[test]
fn two_agents() {
    assert_snapshot!(errors("box \"b\"\nagent { image \"oci:i\"; }\nagent { image \"oci:j\"; }\nagent\n"), @r#"
    error: a box has exactly one agent
      --> Boxfile:3:1
       |
     2 | agent { image "oci:i"; }
       | ----- declared first
     3 | agent { image "oci:j"; }
       | ^^^^^ declared again
     4 | agent
       | ----- and again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn two_business_applications_and_two_machines() {
    assert_snapshot!(file_errors(r#"business { image "oci:i"; }
business { image "oci:i"; }
vm
vm"#), @r#"
    error: a box has at most one business application
      --> Boxfile:4:1
       |
     3 | business { image "oci:i"; }
       | -------- declared first
     4 | business { image "oci:i"; }
       | ^^^^^^^^ declared again
       |
       = help: keep one of them and remove the others

    error: `vm` is declared twice
      --> Boxfile:6:1
       |
     5 | vm
       | -- declared first
     6 | vm
       | ^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn an_agent_without_a_block() {
    assert_snapshot!(errors("box b\nagent\n"), @r#"
    error: `agent` needs an `image`
      --> Boxfile:2:1
       |
     2 | agent
       | ^^^^^ without an `image`
       |
       = help: write `agent { image "oci:images/agent"; }`
    "#);
}

#[test]
fn a_component_declares_each_thing_once() {
    assert_snapshot!(agent_errors(r#"    image "oci:j"
    port 1
    port 2"#), @r#"
    error: `image` is declared twice
      --> Boxfile:4:5
       |
     3 | image "oci:i"
       | ----- declared first
     4 |     image "oci:j"
       |     ^^^^^ declared again
       |
       = help: keep one of them and remove the others

    error: `port` is declared twice
      --> Boxfile:6:5
       |
     5 |     port 1
       |     ---- declared first
     6 |     port 2
       |     ^^^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn a_block_where_none_belongs() {
    assert_snapshot!(file_errors(r#"vm { cpus 2; }"#), @r#"
    error: `vm` has no block
      --> Boxfile:3:4
       |
     3 | vm { cpus 2; }
       |    ^ opened here
       |
       = help: write `vm cpus=2 memory="1GiB"`
    "#);
}

#[test]
fn an_unknown_property() {
    assert_snapshot!(agent_errors(r#"    limits memroy="64MiB" swap=1"#), @r#"
    error: `limits` has no property `memroy`
      --> Boxfile:4:12
       |
     4 |     limits memroy="64MiB" swap=1
       |            ^^^^^^ no such property
       |
       = help: did you mean `memory`?

    error: `limits` has no property `swap`
      --> Boxfile:4:27
       |
     4 |     limits memroy="64MiB" swap=1
       |                           ^^^^ no such property
       |
       = help: write `limits memory="512MiB" pids=100 cpu-weight=20`
    "#);
}

#[test]
fn one_argument_too_many() {
    assert_snapshot!(file_errors(r#"layout "split" "merged""#), @r#"
    error: unexpected argument: the text `merged`
      --> Boxfile:3:16
       |
     3 | layout "split" "merged"
       |                ^^^^^^^^ one too many
       |
       = help: write `layout "split"`
    "#);
    assert_snapshot!(agent_errors(r#"    env "A=1""#), @r#"
    error: unexpected argument: the text `A=1`
      --> Boxfile:4:9
       |
     4 |     env "A=1"
       |         ^^^^^ one too many
       |
       = help: write `env NAME="value"`
    "#);
}

#[test]
fn a_property_given_twice() {
    assert_snapshot!(agent_errors(r#"    limits pids=1 pids=2"#), @r"
    error: `pids` is given twice
      --> Boxfile:4:19
       |
     4 |     limits pids=1 pids=2
       |            ---- given first
       |                   ^^^^ given again
       |
       = help: remove one of them
    ");
}

#[test]
fn an_unclosed_block() {
    assert_snapshot!(errors("box \"b\"\nagent {\n    image \"oci:i\"\n"), @r"
    error: this block is never closed
      --> Boxfile:2:7
       |
     2 | agent {
       |       ^ opened here
       |
       = help: close it with `}`
    ");
}

#[test]
fn a_brace_that_closes_nothing() {
    assert_snapshot!(file_errors(r#"vm }"#), @r"
    error: this `}` closes nothing
      --> Boxfile:3:4
       |
     3 | vm }
       |    ^ no open block
       |
       = help: remove it, or open the block with `{`
    ");
}

#[test]
fn a_brace_on_a_line_of_its_own() {
    assert_snapshot!(errors("box b\nagent\n{\n}\n"), @r"
    error: this block has no name
      --> Boxfile:3:1
       |
     3 | {
       | ^ nothing in front of it
       |
       = help: write the `{` on the line of its declaration, as in `agent {`
    ");
}

#[test]
fn what_stands_behind_a_block() {
    assert_snapshot!(errors("box b\nagent { image \"oci:i\"; } business { image \"oci:i\"; }\n"), @r#"
    error: a block ends its declaration
      --> Boxfile:2:26
       |
     2 | agent { image "oci:i"; } business { image "oci:i"; }
       |                          ^^^^^^^^ this stands behind it
       |
       = help: begin a new line behind the `}`
    "#);
}

#[test]
fn an_unclosed_quote() {
    assert_snapshot!(errors("box \"b\nagent {\n    image oci:i\"\n}\n"), @r#"
    error: this text is never closed
      --> Boxfile:1:5
       |
     1 | box "b
       |     ^^ no closing quote on this line
       |
       = help: close it with `"`

    error: this text is never closed
      --> Boxfile:3:16
       |
     3 |     image oci:i"
       |                ^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
    assert_snapshot!(errors("box \"b\"\nagent { image \"oci:i; }\n"), @r#"
    error: this text is never closed
      --> Boxfile:2:15
       |
     2 | agent { image "oci:i; }
       |               ^^^^^^^^^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
}

#[test]
fn an_unclosed_text_of_several_lines() {
    assert_snapshot!(agent_errors(r#"    args """
      a"#), @r#"
    error: this text is never closed
      --> Boxfile:4:10
       |
     4 |     args """
       |          ^^^ opened here
       |
       = help: close it with `"""`
    "#);
}

#[test]
fn an_unclosed_comment() {
    assert_snapshot!(agent_errors(r#"    /* args"#), @r"
    error: this comment is never closed
      --> Boxfile:4:5
       |
     4 |     /* args
       |     ^^ opened here
       |
       = help: close it with `*/`
    ");
}

#[test]
fn a_word_that_needs_quotes() {
    assert_snapshot!(agent_errors(r#"    image oci:images/agent"#), @r#"
    error: `image` is declared twice
      --> Boxfile:4:5
       |
     3 | image "oci:i"
       | ----- declared first
     4 |     image oci:images/agent
       |     ^^^^^ declared again
       |
       = help: keep one of them and remove the others

    error: `oci:images/agent` must stand in quotes
      --> Boxfile:4:11
       |
     4 |     image oci:images/agent
       |           ^^^^^^^^^^^^^^^^ a bare word cannot contain this
       |
       = help: write `"oci:images/agent"`
    "#);
    assert_snapshot!(agent_errors(r#"    args a{b} x=[1]"#), @r"
    error: a block ends its declaration
      --> Boxfile:4:15
       |
     4 |     args a{b} x=[1]
       |               ^^^^^ this stands behind it
       |
       = help: begin a new line behind the `}`
    ");
}

#[test]
fn a_number_with_a_unit_needs_quotes() {
    assert_snapshot!(agent_errors(r#"    limits memory=64MiB pids=1x"#), @r#"
    error: `64MiB` is not a number
      --> Boxfile:4:19
       |
     4 |     limits memory=64MiB pids=1x
       |                   ^^^^^ begins like a number
       |
       = help: write a text in quotes: `"64MiB"`

    error: `1x` is not a number
      --> Boxfile:4:30
       |
     4 |     limits memory=64MiB pids=1x
       |                              ^^ begins like a number
       |
       = help: write a text in quotes: `"1x"`
    "#);
}

#[test]
fn a_keyword_without_its_sign() {
    assert_snapshot!(agent_errors(r#"    namespaces net=false uts=#yes"#), @r#"
    error: `false` is neither a text nor a truth value
      --> Boxfile:4:20
       |
     4 |     namespaces net=false uts=#yes
       |                    ^^^^^ a bare keyword
       |
       = help: write `#false`, or `"false"` for the text

    error: `#yes` is no keyword
      --> Boxfile:4:30
       |
     4 |     namespaces net=false uts=#yes
       |                              ^^^^ unknown
       |
       = help: write `#true` or `#false`, and anything else in quotes; a comment begins with `//`
    "#);
}

#[test]
fn punctuation_of_other_languages() {
    assert_snapshot!(agent_errors(r#"    args ["a", "b"]"#), @r#"
    error: `[` has no meaning here
      --> Boxfile:4:10
       |
     4 |     args ["a", "b"]
       |          ^^^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`
    "#);
    assert_snapshot!(agent_errors(r#"    port = 80
    workdir:
    env A="#), @r#"
    error: `=` must stand between a name and a value
      --> Boxfile:4:10
       |
     4 |     port = 80
       |          ^^^^ one of them is missing
       |
       = help: write `name="value"`, or remove the `=`

    error: unknown declaration `workdir:`
      --> Boxfile:5:5
       |
     5 |     workdir:
       |     ^^^^^^^^ no such declaration here
       |
       = help: did you mean `workdir`?

    error: `=` must stand between a name and a value
      --> Boxfile:6:9
       |
     6 |     env A=
       |         ^^ one of them is missing
       |
       = help: write `name="value"`, or remove the `=`
    "#);
    assert_snapshot!(file_errors(r#"vm cpus: 2, memory: "1GiB""#), @r#"
    error: `,` has no meaning here
      --> Boxfile:3:10
       |
     3 | vm cpus: 2, memory: "1GiB"
       |          ^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`
    "#);
}

#[test]
fn texts_that_touch_or_are_malformed() {
    assert_snapshot!(agent_errors(r#"    args "a""b" "\q""#), @r#"
    error: `"b"` touches the text in front of it
      --> Boxfile:4:10
       |
     4 |     args "a""b" "\q"
       |          ^^^^^^ two things without a space
       |
       = help: put a space behind the closing quote; inside a text, a quote is written `\"`

    error: this text cannot be read
      --> Boxfile:4:17
       |
     4 |     args "a""b" "\q"
       |                 ^^^^ malformed
       |
       = help: a backslash begins an escape such as `\n`; write `\\` for a backslash
    "#);
    assert_snapshot!(agent_errors(r#"    args """a""""#), @r#"
    error: this text cannot be read
      --> Boxfile:4:10
       |
     4 |     args """a"""
       |          ^^^^^^^ malformed
       |
       = help: a text over several lines begins behind `"""` and a line end, and no line of it is indented less than the closing `"""`
    "#);
    assert_snapshot!(agent_errors(r#"    args """
  a
 b
  """"#), @r#"
    error: this text cannot be read
      --> Boxfile:4:10
       |
     4 |     args """
       |          ^^^ malformed
       |
       = help: a text over several lines begins behind `"""` and a line end, and no line of it is indented less than the closing `"""`
    "#);
}

#[test]
fn an_error_in_a_line_hides_no_error_in_another() {
    assert_snapshot!(errors("box hello!\nagent {\n    imgae oci:a/b\n    image a/b\n    limits memory = 64MiB pids=(1 2) cpu-weight=1x\n    port 0\n}\nvm [1, 2]\n"), @r#"
    error: `hello!` is not a valid name
      --> Boxfile:1:5
       |
     1 | box hello!
       |     ^^^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 63: "my-agent"; write "hello"

    error: `oci:a/b` must stand in quotes
      --> Boxfile:3:11
       |
     3 |     imgae oci:a/b
       |           ^^^^^^^ a bare word cannot contain this
       |
       = help: write `"oci:a/b"`

    error: `a/b` must stand in quotes
      --> Boxfile:4:11
       |
     4 |     image a/b
       |           ^^^ a bare word cannot contain this
       |
       = help: write `"a/b"`

    error: `64MiB` is not a number
      --> Boxfile:5:21
       |
     5 |     limits memory = 64MiB pids=(1 2) cpu-weight=1x
       |                     ^^^^^ begins like a number
       |
       = help: write a text in quotes: `"64MiB"`

    error: `(` has no meaning here
      --> Boxfile:5:32
       |
     5 |     limits memory = 64MiB pids=(1 2) cpu-weight=1x
       |                                ^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`

    error: `port` is out of range
      --> Boxfile:6:10
       |
     6 |     port 0
       |          ^ must be from 1 to 65535

    error: `[` has no meaning here
      --> Boxfile:8:4
       |
     8 | vm [1, 2]
       |    ^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`
    "#);
    assert_snapshot!(errors("box b/c\nagent x=[1] {\n    imgae \"oci:a\"\n}\nbudget total=1s\nkernel a\\b\n"), @r#"
    error: `b/c` must stand in quotes
      --> Boxfile:1:5
       |
     1 | box b/c
       |     ^^^ a bare word cannot contain this
       |
       = help: write `"b/c"`

    error: `[` has no meaning here
      --> Boxfile:2:9
       |
     2 | agent x=[1] {
       |         ^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`

    error: unknown declaration `imgae`
      --> Boxfile:3:5
       |
     3 |     imgae "oci:a"
       |     ^^^^^ no such declaration here
       |
       = help: did you mean `image`?

    error: `1s` is not a number
      --> Boxfile:5:14
       |
     5 | budget total=1s
       |              ^^ begins like a number
       |
       = help: write a text in quotes: `"1s"`

    error: `a\b` must stand in quotes
      --> Boxfile:6:8
       |
     6 | kernel a\b
       |        ^^^ a bare word cannot contain this
       |
       = help: write `"a\\b"`
    "#);
}

#[test]
fn numbers_that_are_none() {
    assert_snapshot!(agent_errors(r#"    port 99999999999999999999999999999999999999999"#), @r"
    error: this number is too large
      --> Boxfile:4:10
       |
     4 |     port 99999999999999999999999999999999999999999
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ too large
       |
       = help: no number in a Boxfile is greater than 4194304
    ");
    assert_snapshot!(agent_errors(r#"    port 0x"#), @r#"
    error: `0x` is not a number
      --> Boxfile:4:10
       |
     4 |     port 0x
       |          ^^ begins like a number
       |
       = help: write a text in quotes: `"0x"`
    "#);
    assert_snapshot!(file_errors(r#"1a"#), @r"
    error: `1a` cannot be the name of a declaration
      --> Boxfile:3:1
       |
     3 | 1a
       | ^^ not a name
       |
       = help: a declaration begins with its name, such as `agent` or `image`
    ");
}

#[test]
fn slashdash_with_nothing_behind_it() {
    assert_snapshot!(agent_errors(r#"    args "a" /-
"#), @r#"
    error: `/-` has nothing to comment out
      --> Boxfile:4:14
       |
     4 |     args "a" /-
       |              ^^ nothing behind it
       |
       = help: put it in front of a declaration, an argument or a property, or remove it
    "#);
    assert_snapshot!(agent_errors(r#"    /- /- args "a""#), @r#"
    error: `/-` is written twice
      --> Boxfile:4:8
       |
     4 |     /- /- args "a"
       |        ^^ the second
       |
       = help: remove it: one `/-` comments out all of what follows it
    "#);
}

#[test]
fn an_invisible_character() {
    assert_snapshot!(agent_errors("args a\u{1b}b \"\u{202e}\""), @r#"
    error: the invisible character U+001B is not allowed
      --> Boxfile:4:6
       |
     4 | args a�b "�"
       |      ^^^ in this text
       |
       = help: remove it; in a text in quotes it is written `\u{1b}`

    error: the invisible character U+202E is not allowed
      --> Boxfile:4:10
       |
     4 | args a�b "�"
       |          ^^^ in this text
       |
       = help: remove it; in a text in quotes it is written `\u{202e}`
    "#);
}

#[test]
fn a_type_annotation() {
    assert_snapshot!(agent_errors(r#"    (u8)port (u16)80"#), @r"
    error: a Boxfile has no type annotations
      --> Boxfile:4:6
       |
     4 |     (u8)port (u16)80
       |      ^^ an annotation
       |
       = help: remove `(u8)`

    error: a Boxfile has no type annotations
      --> Boxfile:4:15
       |
     4 |     (u8)port (u16)80
       |               ^^^ an annotation
       |
       = help: remove `(u16)`
    ");
}

#[test]
fn every_error_of_a_file_at_once() {
    assert_snapshot!(errors("box \"B\"\nagent {\n    image oci:i\n    port 0\n    limits memory=64\n    healht \"tcp\"\n}\nvm cpus=0 cups=1\nskill\n"), @r#"
    error: `B` is not a valid name
      --> Boxfile:1:5
       |
     1 | box "B"
       |     ^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 63: "my-agent"; write "b"

    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 0
       |          ^ must be from 1 to 65535

    error: `memory` has no unit
      --> Boxfile:5:19
       |
     5 |     limits memory=64
       |                   ^^ a bare number
       |
       = help: write `memory="64MiB"`, or `memory="64B"` for bytes

    error: unknown declaration `healht`
      --> Boxfile:6:5
       |
     6 |     healht "tcp"
       |     ^^^^^^ no such declaration here
       |
       = help: did you mean `health`?

    error: `cpus` is out of range
      --> Boxfile:8:9
       |
     8 | vm cpus=0 cups=1
       |         ^ must be from 1 to 16

    error: `vm` has no property `cups`
      --> Boxfile:8:11
       |
     8 | vm cpus=0 cups=1
       |           ^^^^ no such property
       |
       = help: did you mean `cpus`?

    error: `skill` needs a name
      --> Boxfile:9:1
       |
     9 | skill
       | ^^^^^ without a name
       |
       = help: write `skill "greet" path="skills/greet"`

    error: `skill` needs `path`
      --> Boxfile:9:1
       |
     9 | skill
       | ^^^^^ without `path`
       |
       = help: write `skill "greet" path="skills/greet"`
    "#);
}
