//! Where a declaration may stand: its blocks, and the name by which documents refer to it.

use super::{Declaration, PROFILE, TOP};

/// The rules and reasons of declarations, each text below a heading with the declaration's id.
const DETAILS: &str = include_str!("prose/details.md");

/// A declaration, and the declarations in whose blocks it may stand.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) declaration: &'static Declaration,
    /// None for a declaration that stands by itself. A profile, which repeats them, is left out.
    pub(super) blocks: Vec<&'static Declaration>,
}

impl Place {
    /// Returns a name that no other declaration has: `share`, `agent.image`.
    pub(super) fn id(&self) -> String {
        let first = self.blocks.first().map(|block| format!("{}.", block.name));
        format!("{}{}", first.unwrap_or_default(), self.declaration.name)
    }

    /// Returns the rules and reasons of the declaration in Markdown; may be empty.
    pub(super) fn details(&self) -> &'static str {
        let id = self.id();
        let mut sections = sections();
        sections.find(|(heading, _)| *heading == id).map_or("", |(_, details)| details)
    }
}

/// Returns the sections of [`DETAILS`]: heading and text.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    let sections = DETAILS.split("## ").filter_map(|section| section.split_once("\n\n"));
    sections.map(|(heading, text)| (heading, text.trim_end()))
}

/// Returns every declaration once, in the order of the reference: each before those in its block.
pub(super) fn all() -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for top in TOP {
        places.push(Place { declaration: top, blocks: Vec::new() });
        for child in inner(top) {
            match places.iter_mut().find(|place| std::ptr::eq(place.declaration, *child)) {
                Some(known) => known.blocks.push(top),
                None => places.push(Place { declaration: child, blocks: vec![top] }),
            }
        }
    }
    places
}

/// Returns the declarations that stand in the block of another and nowhere else by themselves.
fn inner(block: &'static Declaration) -> &'static [&'static Declaration] {
    if std::ptr::eq(block, &raw const PROFILE) { &[] } else { block.children }
}

/// Returns the place of a declaration.
pub(super) fn find<'p>(places: &'p [Place], declaration: &Declaration) -> Option<&'p Place> {
    places.iter().find(|place| std::ptr::eq(place.declaration, declaration))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_declaration_has_one_place_and_an_id_of_its_own() {
        let places = all();
        let ids: BTreeSet<String> = places.iter().map(Place::id).collect();
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
