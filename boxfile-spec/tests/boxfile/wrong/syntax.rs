//! Texts that are not KDL, or use a part of KDL that no Boxfile has.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors, read, shown};

#[test]
fn an_unclosed_block() {
    assert_snapshot!(errors("box \"b\"\nagent {\n    image \"oci:i\"\n"), @"
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
    assert_snapshot!(file_errors(r#"vm }"#), @"
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
    assert_snapshot!(errors("box b\nagent\n{\n}\n"), @"
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
fn text_after_a_block() {
    assert_snapshot!(errors("box b\nagent { image \"oci:i\"; } business { image \"oci:i\"; }\n"), @r#"
    error: nothing can follow a block on its line
      --> Boxfile:2:26
       |
     2 | agent { image "oci:i"; } business { image "oci:i"; }
       |                          ^^^^^^^^ this follows it
       |
       = help: begin a new line after the `}`
    "#);
}

#[test]
fn an_unclosed_quote() {
    assert_snapshot!(errors("box \"b\nagent {\n    image oci:i\"\n}\n"), @r#"
    error: this string is never closed
      --> Boxfile:1:5
       |
     1 | box "b
       |     ^^ no closing quote on this line
       |
       = help: close it with `"`

    error: this string is never closed
      --> Boxfile:3:16
       |
     3 |     image oci:i"
       |                ^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
    assert_snapshot!(errors("box \"b\"\nagent { image \"oci:i; }\n"), @r#"
    error: this string is never closed
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
    error: this string is never closed
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
    assert_snapshot!(agent_errors(r#"    /* args"#), @"
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

    error: `oci:images/agent` must be in quotes
      --> Boxfile:4:11
       |
     4 |     image oci:images/agent
       |           ^^^^^^^^^^^^^^^^ a bare word cannot contain this
       |
       = help: write `"oci:images/agent"`
    "#);
    assert_snapshot!(agent_errors(r#"    args a{b} x=[1]"#), @"
    error: nothing can follow a block on its line
      --> Boxfile:4:15
       |
     4 |     args a{b} x=[1]
       |               ^^^^^ this follows it
       |
       = help: begin a new line after the `}`
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
       = help: write a string in quotes: `"64MiB"`

    error: `1x` is not a number
      --> Boxfile:4:30
       |
     4 |     limits memory=64MiB pids=1x
       |                              ^^ begins like a number
       |
       = help: write a string in quotes: `"1x"`
    "#);
}

#[test]
fn a_keyword_without_its_sign() {
    assert_snapshot!(agent_errors(r#"    namespaces net=false uts=#yes"#), @r#"
    error: `false` is neither a string nor a boolean
      --> Boxfile:4:20
       |
     4 |     namespaces net=false uts=#yes
       |                    ^^^^^ not a value
       |
       = help: write `#false`, or `"false"` for the string

    error: `#yes` is neither a string nor a boolean
      --> Boxfile:4:30
       |
     4 |     namespaces net=false uts=#yes
       |                              ^^^^ not a value
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
    error: the value of a declaration follows its name without `=`
      --> Boxfile:4:10
       |
     4 |     port = 80
       |          ^ not in KDL
       |
       = help: write `port 80`

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
       = help: remove the `,`: values follow one another with spaces between them: `args "a" "b"`
    "#);
}

#[test]
fn a_backslash_that_continues_no_line_is_refused() {
    for statement in ["user \\;", "user \\\\\n", "args \"a\" \\ }", "user\\;"] {
        let errors = agent_errors(&format!("    {statement}"));
        assert!(errors.contains("this `\\` does not continue the line"), "{statement:?}: {errors}");
    }
    assert_snapshot!(agent_errors(r#"    args "a" \; workdir "/srv""#), @r#"
    error: this `\` does not continue the line
      --> Boxfile:4:14
       |
     4 |     args "a" \; workdir "/srv"
       |              ^ more follows it on the line
       |
       = help: end the line after the `\`, or remove it; in a string, a backslash is written `\\`
    "#);
}

#[test]
fn a_comma_after_a_text_is_to_be_removed() {
    for statement in [r#"image "oci:images/agent","#, r#"args "a","b""#] {
        let errors = agent_errors(&format!("    {statement}"));
        assert!(errors.contains("error: `,` has no meaning here"), "{errors}");
        assert!(errors.contains("help: remove the `,`: values follow one another"), "{errors}");
        assert!(!errors.contains("touches the text"), "{errors}");
    }
}

#[test]
fn texts_that_touch_or_are_malformed() {
    assert_snapshot!(agent_errors(r#"    args "a""b" "\q""#), @r#"
    error: there is no space before `"b"`
      --> Boxfile:4:10
       |
     4 |     args "a""b" "\q"
       |          ^^^^^^ two things without a space
       |
       = help: put a space after the closing quote; inside a string, a quote is written `\"`

    error: this string cannot be read
      --> Boxfile:4:17
       |
     4 |     args "a""b" "\q"
       |                 ^^^^ malformed
       |
       = help: a backslash begins an escape such as `\n`; write `\\` for a backslash
    "#);
    assert_snapshot!(agent_errors(r#"    args """a""""#), @r#"
    error: this string cannot be read
      --> Boxfile:4:10
       |
     4 |     args """a"""
       |          ^^^^^^^ malformed
       |
       = help: a multi-line string begins after `"""` and a line end, and no line of it is indented less than the closing `"""`
    "#);
    assert_snapshot!(agent_errors(r#"    args """
  a
 b
  """"#), @r#"
    error: this string cannot be read
      --> Boxfile:4:10
       |
     4 |     args """
       |          ^^^ malformed
       |
       = help: a multi-line string begins after `"""` and a line end, and no line of it is indented less than the closing `"""`
    "#);
}

#[test]
fn a_number_has_so_many_characters_and_no_more() {
    for before in ["    port ", "    port = ", "    limits pids=", "    port (t)", "    port x /-"]
    {
        for number in ["1e999", "-0x1f", "1.5"] {
            let error = |length| agent_errors(&format!("{before}{number:0<length$}"));
            assert!(!error(64).contains("more than 64 characters"), "{before}{number}");
            let (text, at) = (error(65), before.len() + 1);
            assert!(text.starts_with("error: this number has more than 64 characters\n"), "{text}");
            assert!(text.contains(&format!("--> Boxfile:4:{at}\n")), "{text}");
            assert_eq!(text.matches("error: ").count(), 1, "{text}");
        }
    }
    // What is no number has no such limit.
    let long = "1".repeat(100);
    for text in [format!("    args \"{long}\""), format!("    args #\"{long}\"# \"a=({long}\"")] {
        let boxfile = format!("box \"b\"\nagent {{\nimage \"oci:i\"\n{text}\n}}\n");
        boxfile_spec::parse(&boxfile).unwrap();
    }
}

#[test]
fn numbers_that_are_none() {
    assert_snapshot!(agent_errors(r#"    port 99999999999999999999999999999999999999999"#), @"
    error: this number is too large
      --> Boxfile:4:10
       |
     4 |     port 99999999999999999999999999999999999999999
       |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ too large
       |
       = help: no number in a Boxfile is greater than 4194304; write a string in quotes
    ");
    assert_snapshot!(agent_errors(r#"    port 0x"#), @r#"
    error: `0x` is not a number
      --> Boxfile:4:10
       |
     4 |     port 0x
       |          ^^ begins like a number
       |
       = help: write a string in quotes: `"0x"`
    "#);
    assert_snapshot!(file_errors(r#"1a"#), @"
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
fn slashdash_with_nothing_after_it() {
    assert_snapshot!(agent_errors(r#"    args "a" /-
"#), @r#"
    error: `/-` has nothing to comment out
      --> Boxfile:4:14
       |
     4 |     args "a" /-
       |              ^^ nothing after it
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
       = help: remove it: one `/-` comments out everything that follows it
    "#);
}

#[test]
fn an_invisible_character() {
    assert_snapshot!(agent_errors("args a\u{1b}b \"\u{202e}\""), @r#"
    error: the invisible character U+001B is not allowed
      --> Boxfile:4:7
       |
     4 | args a�b "�"
       |       ^ here
       |
       = help: remove it; in a quoted string it is written `\u{1b}`

    error: the invisible character U+202E is not allowed
      --> Boxfile:4:11
       |
     4 | args a�b "�"
       |           ^ here
       |
       = help: remove it; in a quoted string it is written `\u{202e}`
    "#);
}

#[test]
fn a_type_annotation() {
    assert_snapshot!(agent_errors(r#"    (u8)port (u16)80"#), @"
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
fn nothing_is_missing_in_a_malformed_text() {
    assert_snapshot!(errors("box \"hello\n"), @r#"
    error: this string is never closed
      --> Boxfile:1:5
       |
     1 | box "hello
       |     ^^^^^^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
    let toml = read(&[("Boxfile.toml", "box = hello\n")], None);
    assert_snapshot!(shown(&toml), @r#"
    error: `hello` must be in quotes
      --> Boxfile.toml:1:7
       |
     1 | box = hello
       |       ^^^^^ a bare word
       |
       = help: write `"hello"`
    "#);
}
