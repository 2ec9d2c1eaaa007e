//! Recognizes a Boxfile, and its syntax, by its content, for `boxbuild fmt` and `boxbuild init`.

use crate::syntax::{allowance::Allowance, kdl, toml, tree::Node};
use crate::{format, schema};
use diagnostics::{Sink, Source, Syntax};

/// Every Boxfile without a base has at least one of these declarations.
const TELLING: [&str; 3] = ["box", "agent", "business"];

/// Returns whether a text is a Boxfile: it declares a box, an agent or a business component, or it extends a Boxfile.
///
/// A text with syntax errors is a Boxfile only if [`format()`] fails on it, too. For example, a README that quotes a
/// Boxfile has syntax errors but can be formatted, so it is no Boxfile.
pub fn looks_like_boxfile(source: &Source) -> bool {
    let (nodes, errors) = read(source.syntax, &source.text);
    let declares = nodes.iter().any(|node| {
        let name = node.name.value.as_str();
        TELLING.contains(&name) || name == schema::EXTENDS.name
    });
    declares && (errors == 0 || format(source).is_none())
}

/// Returns the likely syntax of a text: the one with fewer syntax errors, or KDL if both have the same number.
pub fn likely_syntax(text: &str) -> Syntax {
    let errors = |syntax| read(syntax, text).1;
    if errors(Syntax::Toml) < errors(Syntax::Kdl) { Syntax::Toml } else { Syntax::Kdl }
}

/// Reads the declarations of a text, and counts its syntax errors.
fn read(syntax: Syntax, text: &str) -> (Vec<Node>, usize) {
    let (sink, mut allowance) = (Sink::default(), Allowance::default());
    let tree = match syntax {
        Syntax::Kdl => kdl::read(text, &mut allowance, &sink),
        Syntax::Toml => toml::read(text, &mut allowance, &sink),
    };
    (tree.nodes, sink.into_found().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_boxfile(name: &str, text: &str) -> bool {
        looks_like_boxfile(&Source::new(name, text))
    }

    #[test]
    fn boxfiles_are_recognized_with_their_errors() {
        for text in
            ["box \"x\"", "extends \"a\"\n", "agent {\n", "box \"x\nagent {}\n", "vm x=1\nbox 1"]
        {
            assert!(is_boxfile("x", text), "{text}");
        }
        for text in ["box = \"x\"", "[agent]\nimage = 1\n", "[agent\n", "extends = \"a\""] {
            assert!(is_boxfile("x.toml", text), "{text}");
        }
    }

    #[test]
    fn other_documents_are_not() {
        let c = "#include <stdio.h>\nint main(void) {\n    return 0;\n}\n";
        let page =
            "# A title\n\nSome *text* (see below).\n\n```kdl\nbox \"hello\"\nagent {\n}\n```\n";
        assert!(!is_boxfile("x", page));
        assert!(!is_boxfile("x", include_str!("../../README.md")));
        for text in ["", "# A title\n\nSome *text* in a box.\n", c, "layout { pane size=1 }\n"] {
            assert!(!is_boxfile("x", text), "{text}");
        }
        for text in ["[package]\nname = \"x\"\n\n[profile.release]\nlto = true\n", ""] {
            assert!(!is_boxfile("Cargo.toml", text), "{text}");
        }
    }

    #[test]
    fn the_syntax_is_the_one_with_fewer_errors() {
        for kdl in ["", "box \"x\"\nagent { image \"oci:a\"; }\n", "// a comment\n"] {
            assert_eq!(likely_syntax(kdl), Syntax::Kdl, "{kdl}");
        }
        for toml in ["box = \"x\"\n[agent]\nimage = \"oci:a\"\n", "# a comment\nbox = \"x\"\n"] {
            assert_eq!(likely_syntax(toml), Syntax::Toml, "{toml}");
        }
    }
}
