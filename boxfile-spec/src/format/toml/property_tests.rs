//! Random texts: formatting is stable and keeps the meaning.

use ::toml::Table;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Returns the characters of a text that the formatter can neither add nor remove.
fn content(text: &str) -> String {
    text.chars().filter(|c| !" \t\r\n,".contains(*c)).collect()
}

/// Checks that formatting is stable, and keeps the content and the meaning. Returns the formatted
/// text; `None` if `source` has no layout.
fn check(source: &str) -> Option<String> {
    let formatted = format_toml(source)?;
    assert_eq!(format_toml(&formatted).as_ref(), Some(&formatted), "not stable: {source:?}");
    assert_eq!(content(&formatted), content(source), "{source:?}");
    assert!(formatted.is_empty() || formatted == "\u{feff}" || formatted.ends_with('\n'));
    if let Ok(before) = source.parse::<Table>() {
        assert_eq!(formatted.parse(), Ok(before), "{source:?}\n{formatted}");
    }
    Some(formatted)
}

fn space() -> impl Strategy<Value = &'static str> {
    select(vec!["", " ", "  ", "\t"])
}

/// The separators between the elements of an array.
fn gap() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", " ", "\n", "\r\n\n\n", " # c ]\n", "\n# \"d\n\n# e\n"])
}

fn scalar() -> impl Strategy<Value = &'static str> {
    select(vec![
        "1",
        "-1.5e3",
        "true",
        "1979-05-27 07:32:00.5",
        "\"a  # = [\\\" \"",
        "'c:\\ '",
        "''",
        "\"\"\"\n  é  \n\n\n # b\\\n  \"\"\"\"",
        "'''a\r\n'''",
    ])
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_map(str::to_owned).prop_recursive(3, 16, 4, |inner| {
        let element =
            (gap(), inner.clone(), gap()).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
        let array = (vec(element, 0..4), select(vec!["", ",", ", # f\n", "\n"])).prop_map(
            |(elements, end)| {
                let end = if elements.is_empty() { end.trim_start_matches(',') } else { end };
                format!("[{}{end}]", elements.join(","))
            },
        );
        let table = (vec((space(), inner, gap()), 0..4), gap()).prop_map(|(entries, end)| {
            let entry =
                |(at, (space, value, gap))| format!("{space}k{at}{space}={space}{value}{gap}");
            let entries: Vec<_> = entries.into_iter().enumerate().map(entry).collect();
            format!("{{{end}{}}}", entries.join(","))
        });
        prop_oneof![array, table]
    })
}

/// A whole document. `{}` in a line becomes the line's number, so that no key occurs twice.
fn document() -> impl Strategy<Value = String> {
    let key = select(vec!["k{}", "a{} .b . \"c d\"", "'é{}'"]);
    let end = || select(vec!["\n", "\r\n", " # c \n", "\n\n\n", "\n# d\n", "\n\n# e\n\n# f\n"]);
    let pair = (space(), key, space(), value(), end())
        .prop_map(|(a, key, b, value, end)| format!("{a}{key}{b}={a}{value}{end}"));
    let name = select(vec!["[t{}]", "[ t{} . \"u v\" ]", "[[ s{} ]]", "[[s]]"]);
    let table = (space(), name, end()).prop_map(|(space, name, end)| format!("{space}{name}{end}"));
    vec(prop_oneof![2 => pair, 1 => table], 0..8).prop_map(|lines| {
        let number = |(at, line): (usize, String)| line.replacen("{}", &at.to_string(), 1);
        lines.into_iter().enumerate().map(number).collect()
    })
}

/// Random sequences of tokens.
fn soup() -> impl Strategy<Value = String> {
    let marks = "\" \"\"\" ' ''' \\ \n \r \r\n [ ] [[ ]] { } = , . # a 1 é \u{feff} \u{a0}";
    let marks = marks
        .split(' ')
        .chain([" ", "\t", "\n\n", "# c \n", "a = ", "b=1\n", "[\n", ",\n", "]\n", "\nc=["]);
    vec(select(marks.collect::<Vec<_>>()), 0..24).prop_map(|marks| marks.concat())
}

proptest! {
    #[test]
    fn a_document_keeps_its_content_and_meaning(source in document()) {
        prop_assert!(source.parse::<Table>().is_ok(), "{}", source);
        prop_assert!(check(&source).is_some(), "{}", source);
    }

    #[test]
    fn whatever_parses_has_a_layout(source in soup()) {
        let formatted = check(&source);
        prop_assert!(formatted.is_some() || source.parse::<Table>().is_err());
    }

    #[test]
    fn no_text_makes_it_panic(source in any::<String>()) {
        check(&source);
    }
}

/// Texts of 1 MiB that could make time or memory explode.
#[test]
fn long_hostile_texts_come_to_an_end() {
    for part in ["a=[", "[]", "# c\n[a]\n", "\"", "\"\"\"", "'''", "a.", "a#\n", "a=[\n1#\n]\n"] {
        let source = part.repeat((1 << 20) / part.len()) + "a";
        if let Some(formatted) = format_toml(&source) {
            assert!(formatted.len() <= 8 * source.len(), "{part:?}");
        }
    }
}

#[test]
fn the_formatted_text_is_never_long() {
    let deep = format!("a = {}{}{}", "[\n".repeat(64), "1,".repeat(1 << 14), "]".repeat(64));
    let formatted = format_toml(&deep).unwrap();
    assert!(formatted.len() <= 160 * deep.len());
}
