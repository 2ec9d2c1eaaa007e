//! Random texts: formatting is stable and keeps the meaning.

use kdl::{KdlDocument, KdlNode};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::syntax;
use crate::syntax::allowance::Allowance;
use crate::syntax::tree::Node;
use diagnostics::Sink;

/// Returns the characters of a text that the formatter can neither add nor remove.
fn content(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !";\\".contains(*c)).collect()
}

/// Returns the declarations of a text, without spans; `None` if the text has errors.
fn meaning(source: &str) -> Option<String> {
    let sink = Sink::default();
    let tree = syntax::kdl::read(source, &mut Allowance::default(), &sink);
    sink.into_found().is_empty().then(|| describe(&tree.nodes))
}

fn describe(nodes: &[Node]) -> String {
    let node = |node: &Node| {
        let args: Vec<_> = node.args.iter().map(|arg| &arg.data).collect();
        let props: Vec<_> =
            node.props.iter().map(|prop| (&prop.name.value, &prop.value.data)).collect();
        let block = node.block.as_ref().map(|block| describe(&block.nodes));
        format!("{:?} {args:?} {props:?} {block:?}\n", node.name.value)
    };
    nodes.iter().map(node).collect()
}

/// Returns the document of the `kdl` crate's parser; `None` if the parser finds errors.
fn their_meaning(source: &str) -> Option<String> {
    KdlDocument::parse(source).ok().map(|document| their_description(&document))
}

fn their_description(document: &KdlDocument) -> String {
    let node = |node: &KdlNode| {
        let entries: Vec<_> = node
            .entries()
            .iter()
            .map(|entry| (entry.name().map(|name| name.value().to_owned()), entry.value()))
            .collect();
        let block = node.children().map(their_description);
        format!("{:?} {entries:?} {block:?}\n", node.name().value())
    };
    document.nodes().iter().map(node).collect()
}

/// Checks that formatting is stable, and keeps the content and the meaning. Returns the formatted
/// text; `None` if `source` has no layout.
fn check(source: &str) -> Option<String> {
    let formatted = format_kdl(source)?;
    assert_eq!(format_kdl(&formatted).as_ref(), Some(&formatted), "not stable: {source:?}");
    assert_eq!(content(&formatted), content(source), "{source:?}");
    assert!(formatted.is_empty() || formatted == "\u{feff}" || formatted.ends_with('\n'));
    if let Some(before) = meaning(source) {
        assert_eq!(meaning(&formatted), Some(before), "{source:?}\n{formatted}");
    }
    Some(formatted)
}

fn space() -> impl Strategy<Value = &'static str> {
    let many = [
        "\t",
        " /* { \" /* } */\n */ ",
        " \\\n",
        "\\ // }\r\n ",
        "\\/* a */ \n\\ // b\n",
        "\u{3000}",
    ];
    prop_oneof![Just(" "), select(many.to_vec())]
}

fn value() -> impl Strategy<Value = &'static str> {
    select(vec![
        "word",
        "\"a  b\"",
        "\"{;//\\\" = \\n\"",
        "#\"\\} \"#",
        "##\"\"#\"##",
        "-0x1f",
        "#true",
        "\"\"\"\n  é }  \n\n\n    b\n  \"\"\"",
        "#\"\"\"\r\n漢 \" }\r\n\"\"\"#",
        "\"\"",
        "\"\\   \n x\"",
    ])
}

fn entry() -> impl Strategy<Value = String> {
    let equals = select(vec!["=", " = ", "= ", " =", " \\\n = \\\n ", "/* c */= /* d */"]);
    let prop = (select(vec!["a", "b", "\"é\""]), equals, value())
        .prop_map(|(name, equals, value)| format!("{name}{equals}{value}"));
    let dash = select(vec!["", "", "", "/-", "/- ", "/-\n // { \n", "/-\n\n/* */"]);
    (dash, prop_oneof![value().prop_map(str::to_owned), prop])
        .prop_map(|(dash, entry)| format!("{dash}{entry}"))
}

fn header() -> impl Strategy<Value = String> {
    let front =
        select(vec!["", "", "  ", "\\\n ", "/* a */", "// a \n\n\n", "/-", "/- // b\n", "/-\n\n"]);
    let entries = vec((space(), entry()), 0..4);
    (front, select(vec!["a", "bc", "\"a b\""]), entries).prop_map(|(front, name, entries)| {
        let entries: String =
            entries.iter().map(|(space, entry)| format!("{space}{entry}")).collect();
        format!("{front}{name}{entries}")
    })
}

fn end() -> impl Strategy<Value = &'static str> {
    select(vec![
        "\n",
        ";",
        "\r\n",
        " // } \" \n",
        "\n\n\n",
        " ;\t",
        ";//a\n",
        "\\\n\n",
        " \\ // c\n\n",
    ])
}

/// Declarations, the last of which may be unfinished.
fn lines(line: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    (vec(line, 0..4), prop_oneof![Just(String::new()), header()])
        .prop_map(|(lines, last)| lines.concat() + &last)
}

fn document() -> impl Strategy<Value = String> {
    let line = (header(), end()).prop_map(|(header, end)| header + end);
    let line = line.prop_recursive(3, 12, 4, |inner| {
        let open = select(vec!["{", " {", "{\n\n", "{ // c\n\n", "/-{", " /- {", "/-{a;}{"]);
        (header(), open, lines(inner), end())
            .prop_map(|(header, open, inner, end)| format!("{header}{open}{inner}}}{end}"))
    });
    lines(line)
}

/// Random sequences of tokens.
fn soup() -> impl Strategy<Value = String> {
    let marks =
        "\" \\ \\\n \n \r\n ; { } = / * - // /* */ /- # #\" \"# \"\"\" ( a é \u{feff} \u{2028}";
    let marks =
        marks.split(' ').chain([" ", "  ", "\n\n", "// c \n", "/* d */", "a=1", "b {", "}\n"]);
    vec(select(marks.collect::<Vec<_>>()), 0..24).prop_map(|marks| marks.concat())
}

proptest! {
    #[test]
    fn a_document_keeps_its_content_and_meaning(source in document()) {
        prop_assert!(meaning(&source).is_some(), "{}", source);
        let formatted = check(&source).unwrap();
        if let Some(before) = their_meaning(&source) {
            prop_assert_eq!(their_meaning(&formatted), Some(before), "{}", formatted);
        }
    }

    #[test]
    fn whatever_parses_has_a_layout(source in soup()) {
        let formatted = check(&source);
        let odd = ["/-", "/*"].iter().any(|mark| source.contains(mark));
        prop_assert!(formatted.is_some() || odd || meaning(&source).is_none());
    }

    #[test]
    fn no_text_makes_it_panic(source in any::<String>()) {
        check(&source);
    }
}

/// Texts of 1 MiB that could make time or memory explode.
#[test]
fn long_hostile_texts_come_to_an_end() {
    for part in
        ["a{", "/-a ", "\"", "#", "/*", "/* */", "\\", "\\\n", "\\ /**/", "a\\\n", "a//\n", "//\n"]
    {
        let source = part.repeat((1 << 20) / part.len()) + "a";
        if let Some(formatted) = format_kdl(&source) {
            assert!(formatted.len() <= 8 * source.len(), "{part:?}");
        }
    }
}

#[test]
fn the_formatted_text_is_never_long() {
    // The widest code whose comments are still aligned with the lines around it.
    let wide = format!("{} // c\n{}", "a".repeat(80), "a//\n".repeat(1 << 14));
    let deep = format!("{}{}{}", "a{".repeat(64), "a;".repeat(1 << 14), "}".repeat(64));
    for source in [wide, deep] {
        let formatted = format_kdl(&source).unwrap();
        assert!(formatted.len() <= 160 * source.len());
    }
}
