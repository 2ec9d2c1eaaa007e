//! Reads [KDL 2](https://kdl.dev/spec/) into a tree of nodes with their spans.
//!
//! The `kdl` crate reads the content of one line: names, texts with their escapes, numbers,
//! properties. The structure around the lines (blocks, comments, terminators) is read here, for two
//! reasons. First, an error on one line leaves all others readable, so that a user sees every error
//! at once. Second, the crate's document parser recurses once for every error and for every `*` in
//! a block comment, and takes time exponential in the depth of nested `/-` blocks: a hostile file
//! could overflow the stack or hang the build.

mod explain;
mod foreign;
pub(crate) mod lexeme;
mod outline;
mod statement;

use crate::syntax::allowance::Allowance;
use crate::syntax::tree::Tree;
use diagnostics::Sink;

/// Reads a text, as far as the allowance permits. Parts that cannot be read are reported and left
/// out.
pub(crate) fn read(source: &str, allowance: &mut Allowance, sink: &Sink) -> Tree {
    let outline = outline::scan(source, allowance, sink);
    let nodes = statement::nodes(&outline.text, outline.statements, sink);
    Tree { nodes, intact: outline.intact, complete: outline.complete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::tree::Node;
    use diagnostics::Span;
    use kdl::{KdlDocument, KdlNode};
    use proptest::prelude::*;
    use proptest::sample::select;

    fn tree(source: &str) -> Tree {
        let sink = Sink::default();
        let tree = read(source, &mut Allowance::default(), &sink);
        assert_eq!(sink.into_found(), [], "{source}");
        tree
    }

    /// Checks that our tree of a document equals the `kdl` crate's tree.
    fn assert_same(ours: &[Node], theirs: &[KdlNode], source: &str) {
        assert_eq!(ours.len(), theirs.len(), "{source}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(ours.name.value, theirs.name().value(), "{source}");
            let args = theirs.iter().filter(|entry| entry.name().is_none());
            assert!(
                ours.args
                    .iter()
                    .map(|arg| arg.data.clone())
                    .eq(args.map(|arg| statement::data(arg.value()))),
                "{source}"
            );
            let props = theirs
                .iter()
                .filter_map(|entry| Some((entry.name()?.value(), statement::data(entry.value()))));
            let mine =
                ours.props.iter().map(|prop| (prop.name.value.as_str(), prop.value.data.clone()));
            assert!(mine.eq(props), "{source}");
            let children = theirs.children().map(KdlDocument::nodes);
            assert_eq!(ours.block.is_some(), children.is_some(), "{source}");
            let nodes = ours.block.as_ref().map_or(&[][..], |block| &block.nodes);
            assert_same(nodes, children.unwrap_or_default(), source);
        }
    }

    /// Checks that every span covers the text that was read.
    fn assert_spans(nodes: &[Node], source: &str) {
        let shown = |span: Span| &source[span.offset..span.end()];
        for node in nodes {
            assert_eq!(shown(node.name.span).trim_matches('"'), node.name.value);
            for value in node.args.iter().chain(node.props.iter().map(|prop| &prop.value)) {
                let written: kdl::KdlEntry = shown(value.span).parse().unwrap();
                assert_eq!(statement::data(written.value()), value.data, "{source}");
            }
            for prop in &node.props {
                assert_eq!(shown(prop.name.span).trim_matches('"'), prop.name.value);
            }
            if let Some(block) = &node.block {
                assert_eq!(shown(block.open), "{");
                assert_spans(&block.nodes, source);
            }
        }
    }

    fn space() -> impl Strategy<Value = &'static str> {
        select(vec![
            " ",
            " ",
            " ",
            "\t",
            " /* { \" /* } */ */ ",
            " \\\n",
            " \\ // }\r\n ",
            "\u{3000}",
        ])
    }

    fn value() -> impl Strategy<Value = &'static str> {
        select(vec![
            "word",
            "\"a b\"",
            "\"{;//\\\"\\n\"",
            "#\"\\}\"#",
            "##\"\"#\"##",
            "1",
            "-0x1f",
            "1.5",
            "#true",
            "#null",
            "\"\"\"\n  é }\n    b\n  \"\"\"",
            "#\"\"\"\n漢 \" }\n\"\"\"#",
            "\"é\\u{1F600}\"",
            "\"\"",
            "\"\\   \n x\"",
        ])
    }

    fn entry() -> impl Strategy<Value = String> {
        let prop = ("[a-c]|\"é\"", value()).prop_map(|(name, value)| format!("{name}={value}"));
        let entry = prop_oneof![value().prop_map(str::to_owned), prop];
        (select(vec!["", "", "", "/-", "/- ", "/-\n // { \n"]), entry)
            .prop_map(|(dash, entry)| format!("{dash}{entry}"))
    }

    fn header() -> impl Strategy<Value = String> {
        let entries = proptest::collection::vec((space(), entry()), 0..4);
        (select(vec!["", "", "/-", "/-\n"]), "[a-e]|\"a b\"", entries).prop_map(
            |(dash, name, entries)| {
                let entries: String =
                    entries.iter().map(|(space, entry)| format!("{space}{entry}")).collect();
                format!("{dash}{name}{entries}")
            },
        )
    }

    fn document() -> impl Strategy<Value = String> {
        let end = || select(vec!["\n", ";", "\r\n", " // } \"\n", "\n\n", " ;\t"]);
        let line = (header(), end()).prop_map(|(header, end)| format!("{header}{end}"));
        line.prop_recursive(3, 12, 4, move |inner| {
            let inner = proptest::collection::vec(inner, 0..4).prop_map(|lines| lines.concat());
            (header(), space(), select(vec!["{", "{", "/-{", "/- {"]), inner, end()).prop_map(
                |(header, space, open, inner, end)| format!("{header}{space}{open}{inner}}}{end}"),
            )
        })
    }

    proptest! {
        #[test]
        fn a_valid_document_has_the_tree_that_the_kdl_crate_finds(
            lines in proptest::collection::vec(document(), 0..4),
        ) {
            let source = lines.concat();
            // The crate refuses some valid documents, such as `/-a;`.
            if let Ok(theirs) = source.parse::<KdlDocument>() {
                let ours = tree(&source);
                assert_same(&ours.nodes, theirs.nodes(), &source);
                assert_spans(&ours.nodes, &source);
            }
        }
    }
}
