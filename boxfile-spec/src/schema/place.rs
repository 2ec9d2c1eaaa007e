//! The blocks of a declaration, its id in documents, and its documentation.

use std::sync::LazyLock;

use super::{Declaration, PROFILE, TOP};
use diagnostics::Syntax;

/// The documentation of the declarations, one section for each. The heading is the declaration's id. The section has a
/// summary, rules and reasons, an example in both syntaxes, and the arguments and properties with the words to choose
/// from.
const TEXTS: &str = include_str!("prose/sections.md");

/// A declaration, and the declarations whose blocks may contain it.
#[derive(Debug)]
pub(super) struct SchemaPlace {
    pub(super) declaration: &'static Declaration,
    /// Empty for a top-level declaration. `profile` is not included, although its block may contain most top-level
    /// declarations.
    pub(super) blocks: Vec<&'static Declaration>,
}

impl SchemaPlace {
    /// Returns a unique name of the declaration: `share`, `agent.image`.
    pub(super) fn id(&self) -> String {
        let first = self.blocks.first().map(|block| format!("{}.", block.name));
        format!("{}{}", first.unwrap_or_default(), self.declaration.name)
    }
}

impl Declaration {
    /// Returns the summary of the declaration, which is one sentence.
    pub(super) fn summary(&self) -> &'static str {
        self.prose().split("\n\n").next().unwrap_or_default()
    }

    /// Returns the rules and reasons of the declaration in Markdown; may be empty.
    pub(super) fn details(&self) -> &'static str {
        self.prose().split_once("\n\n").map_or("", |(_, details)| details)
    }

    /// Returns the description of an argument, of a property or of a word to choose from.
    pub(super) fn doc(&self, name: &str) -> &'static str {
        let of =
            |line: &'static str| line.strip_prefix("- `")?.strip_prefix(name)?.strip_prefix("`: ");
        self.text().lines().find_map(of).unwrap_or_default()
    }

    /// Returns the text in front of the examples.
    fn prose(&self) -> &'static str {
        self.text().split("```").next().unwrap_or_default().trim_end()
    }

    fn text(&self) -> &'static str {
        let id = find(self).map(SchemaPlace::id).unwrap_or_default();
        sections().find(|(heading, _)| *heading == id).map_or("", |(_, text)| text)
    }

    /// Returns the example of the declaration. It has the same meaning in both syntaxes.
    pub(crate) fn example(&self, syntax: Syntax) -> &'static str {
        let fence = match syntax {
            Syntax::Kdl => "```kdl\n",
            Syntax::Toml => "```toml\n",
        };
        let code = self.text().split_once(fence).and_then(|(_, code)| code.split_once("\n```"));
        code.map_or("", |(code, _)| code)
    }

    /// Returns the example for a message: in backticks, or after a line feed if it has several lines.
    pub(crate) fn usage(&self, syntax: Syntax) -> String {
        let example = self.example(syntax);
        if example.contains('\n') { format!("\n{example}") } else { format!("`{example}`") }
    }
}

/// Returns the sections of [`TEXTS`]: id and text.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    TEXTS.split("## ").filter_map(|section| section.split_once("\n\n"))
}

/// Returns every declaration once, in the order of the reference: each before the declarations in its block.
pub(super) fn all() -> &'static [SchemaPlace] {
    static PLACES: LazyLock<Vec<SchemaPlace>> = LazyLock::new(|| {
        let mut places: Vec<SchemaPlace> = Vec::new();
        for top in TOP {
            places.push(SchemaPlace { declaration: top, blocks: Vec::new() });
            for child in inner(top) {
                match places.iter_mut().find(|place| std::ptr::eq(place.declaration, *child)) {
                    Some(known) => known.blocks.push(top),
                    None => places.push(SchemaPlace { declaration: child, blocks: vec![top] }),
                }
            }
        }
        places
    });
    &PLACES
}

/// Returns the declarations in `block`. Empty for `profile`, because its block has only top-level declarations.
fn inner(block: &'static Declaration) -> &'static [&'static Declaration] {
    if std::ptr::eq(block, &raw const PROFILE) { &[] } else { block.children }
}

/// Returns the [`SchemaPlace`] of a declaration.
pub(super) fn find(declaration: &Declaration) -> Option<&'static SchemaPlace> {
    all().iter().find(|place| std::ptr::eq(place.declaration, declaration))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_declaration_has_one_place_and_an_id_of_its_own() {
        let places = all();
        let ids: BTreeSet<String> = places.iter().map(SchemaPlace::id).collect();
        assert_eq!(ids.len(), places.len());
        assert!(ids.contains("box") && ids.contains("agent.image"));
        assert!(ids.contains("network.allow") && ids.contains("sandbox.allow"));
        let image = places.iter().find(|place| place.id() == "agent.image").unwrap();
        assert_eq!(
            image.blocks.iter().map(|it| it.name).collect::<Vec<_>>(),
            ["agent", "business"]
        );
    }

    #[test]
    fn blocks_lie_no_deeper_than_the_places_know() {
        for place in all().iter().filter(|place| !place.blocks.is_empty()) {
            assert!(place.declaration.children.is_empty(), "{}", place.id());
        }
    }
}
