use insta::assert_snapshot;
use proptest::prelude::*;

use super::{MAX_DOTENV, parse};

fn values(source: &str) -> Vec<(String, String)> {
    let variables = parse(source).unwrap_or_else(|errors| {
        panic!(
            "{}",
            errors.render(&diagnostics::Sources::single(diagnostics::Source::new(".env", source)))
        )
    });
    variables.into_iter().map(|(name, value)| (name, value.value)).collect()
}

/// Parses a file and returns its only value.
fn value(source: &str) -> String {
    let values = values(source);
    assert_eq!(values.len(), 1, "{source}");
    values[0].1.clone()
}

fn errors(source: &str) -> String {
    parse(source)
        .expect_err("the file is wrong")
        .render(&diagnostics::Sources::single(diagnostics::Source::new(".env", source)))
}

#[test]
fn a_file_as_people_write_it() {
    let source = "\u{feff}# Settings\n\nB=two # why\r\n  export A='one'\nC=\n_D1=\"x\" # y\n#E=1\n";
    let expected = [("A", "one"), ("B", "two"), ("C", ""), ("_D1", "x")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values(source), expected);
    let variables = parse(source).unwrap();
    let span = variables["A"].span;
    assert_eq!(&source[span.offset..span.end()], "A='one'");
}

#[test]
fn values_without_quotes() {
    for (source, expected) in [
        ("A=a b  ", "a b"),
        ("A=a#b", "a#b"),
        ("A=#b", "#b"),
        ("A=a\t# b", "a"),
        ("A=  # b", ""),
        ("A=it's", "it's"),
        ("A=a=b", "a=b"),
        ("A=$HOME/${B}\\n", "$HOME/${B}\\n"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn values_in_quotes() {
    for (source, expected) in [
        ("A=''", ""),
        ("A='a # b'", "a # b"),
        (r"A='Let\'s go\n $B'", r"Let's go\n $B"),
        (r#"A="{\"a\": \"b\\c\"}""#, r#"{"a": "b\c"}"#),
        (r#"A="a\tb\n\r\$C $D""#, "a\tb\n\r$C $D"),
        ("A=\"one\ntwo\" # three\n", "one\ntwo"),
        ("A='one\n# two'", "one\n# two"),
    ] {
        assert_eq!(value(source), expected, "{source}");
    }
}

#[test]
fn a_line_that_is_no_variable() {
    assert_snapshot!(errors("A=1\nB=2\nexport A=3\n"), @"
    error: `A` is given twice
      --> .env:3:8
       |
     1 | A=1
       | --- given first
    ...
     3 | export A=3
       |        ^^^ given again
       |
       = help: remove one of them
    ");
    assert_snapshot!(errors("PATH\n"), @"
    error: a line has no `=`
      --> .env:1:1
       |
     1 | PATH
       | ^^^^ no `=`
       |
       = help: write `NAME=value`; nothing is taken from the environment
    ");
    assert_snapshot!(errors("MY-NAME=1\n"), @"
    error: this cannot name an environment variable
      --> .env:1:1
       |
     1 | MY-NAME=1
       | ^^^^^^^ not a variable's name
       |
       = help: a variable's name has letters, digits and `_`, and does not begin with a digit
    ");
    assert_snapshot!(errors("=1\n"), @"
    error: a variable has no name
      --> .env:1:1
       |
     1 | =1
       | ^ here
       |
       = help: write `NAME=value`
    ");
}

#[test]
fn whitespace_around_the_sign() {
    assert_snapshot!(errors("A =1\n"), @"
    error: there is whitespace before `=`
      --> .env:1:1
       |
     1 | A =1
       | ^^ not allowed here
       |
       = help: remove it: `A=`
    ");
    assert_snapshot!(errors("A= 1\n"), @"
    error: there is whitespace after `=`
      --> .env:1:3
       |
     1 | A= 1
       |   ^^ begins with whitespace
       |
       = help: write `A=value`, or `A=' value'` if the whitespace is part of it
    ");
    assert_snapshot!(errors("A= \"1\"\n"), @r#"
    error: there is whitespace after `=`
      --> .env:1:3
       |
     1 | A= "1"
       |   ^^^^ begins with whitespace
       |
       = help: write `A=value`, or `A=' value'` if the whitespace is part of it
    "#);
}

#[test]
fn quotes_that_do_not_fit() {
    assert_snapshot!(errors("A='one\nB=2\n"), @r"
    error: a quote is not closed
      --> .env:1:3
       |
     1 | A='one
       |   ^ opened here
       |
       = help: write `'` after the value; `\'` is a quote that belongs to it
    ");
    assert_snapshot!(errors("A=\"one\nB=2\n"), @r#"
    error: a quote is not closed
      --> .env:1:3
       |
     1 | A="one
       |   ^ opened here
       |
       = help: write `"` after the value; `\"` is a quote that belongs to it
    "#);
    assert_snapshot!(errors("A=\"one\" two\n"), @r#"
    error: text follows a closing quote
      --> .env:1:9
       |
     1 | A="one" two
       |         ^^^ from here on
       |
       = help: put the whole value between the quotes; a comment begins with ` #`
    "#);
    assert_snapshot!(errors("A=\"C:\\dir\"\nB=1\n"), @r#"
    error: a `\` does not begin an escape
      --> .env:1:6
       |
     1 | A="C:\dir"
       |      ^^ unknown
       |
       = help: write `\\` for a backslash; the escapes are `\n`, `\r`, `\t`, `\\`, `\"` and `\$`
    "#);
}

#[test]
fn other_mistakes() {
    assert_snapshot!(errors("A=a\0b\n"), @"
    error: the invisible character U+0000 is not allowed
      --> .env:1:4
       |
     1 | A=a�b
       |    ^ here
       |
       = help: remove it; a value that needs it can be written in the Boxfile, as `env`, with an escape
    ");
    assert_snapshot!(errors("A: 1\n"), @"
    error: a line has no `=`
      --> .env:1:1
       |
     1 | A: 1
       | ^^^^ no `=`
       |
       = help: write `NAME=value`; nothing is taken from the environment
    ");
}

#[test]
fn all_errors_come_at_once() {
    assert_eq!(parse("a\nb\nA= 1\nA='x'y\n").unwrap_err().as_slice().len(), 4);
    assert_eq!(parse(&"a\n".repeat(5000)).unwrap_err().as_slice().len(), 1000);
}

#[test]
fn more_than_a_mebibyte_is_not_read() {
    assert!(parse(&"#".repeat(MAX_DOTENV)).unwrap().is_empty());
    let error = parse(&"#".repeat(MAX_DOTENV + 1)).unwrap_err();
    assert_eq!(error.to_string(), "the file has more than 1048576 bytes");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(source in "(\\PC|[\\s\\x00\"'#=\\\\A-C]|export |A=){0,100}") {
        if let Err(errors) = parse(&source) {
            for error in errors.as_slice() {
                prop_assert!(error.labels().iter().all(|label| label.span.end() <= source.len()));
                prop_assert!(error.render(&diagnostics::Sources::single(diagnostics::Source::new(".env", source.as_str()))).contains(": "));
            }
        }
    }

    #[test]
    fn quoted_values_round_trip(text in "(\\PC|[\\t\\n\"'\\\\]){0,40}") {
        // A few printable characters, such as variation selectors, are refused as hidden
        // characters.
        prop_assume!(safe_text::hidden(&format!("A=\"{text}\"")).next().is_none());
        let double = text.replace('\\', "\\\\").replace('"', "\\\"");
        prop_assert_eq!(value(&format!("A=\"{double}\"")), text.clone());
        prop_assume!(!text.contains("\\'") && !text.ends_with('\\'));
        let single = text.replace('\'', "\\'");
        prop_assert_eq!(value(&format!("A='{single}'")), text);
    }
}

#[test]
fn no_message_has_text_of_a_line() {
    let lines = [
        "hunter2\n",
        "hun/ter2=\n",
        "A= hunter2\n",
        "A=\"hunter2\n",
        "A=\"\\hunter2\"\n",
        "A='' hunter2\n",
        "A='hunter2\0'\n",
        "A=hunter2\nA=hunter2\n",
    ];
    for line in lines {
        let errors = parse(line).unwrap_err();
        assert!(!format!("{errors:?}").contains("ter2"), "{errors:?}");
    }
}

#[test]
fn of_very_many_secrets_the_first_are_kept() {
    let most = diagnostics::MAX_KEPT;
    let text: String = (0..most + 100).rev().map(|it| format!("TOKEN_{it}=x\n")).collect();
    let agent = box_contract::ComponentName::Agent;
    let found = super::secrets(&parse(&text).unwrap(), agent, &[].into(), |_| false);
    assert_eq!((found.len(), found[0].span().offset), (most, 0));
    assert!(found.is_sorted_by_key(|it| it.span()));
}
