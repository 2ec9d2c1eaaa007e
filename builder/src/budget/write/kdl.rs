//! Replaces the budget in a KDL Boxfile.

use std::ops::Range;

use box_contract::Budget;
use diagnostics::Syntax;
use kdl::{KdlDocument, KdlEntry, KdlNode};

use super::{Edit, NODE, appended, edited, limits, property};

/// Implements [`super::rewritten`] for KDL.
pub(super) fn rewritten(text: &str, budget: &Budget) -> Option<String> {
    let document = KdlDocument::parse_v2(text).ok()?;
    let mut nodes = document.nodes().iter().filter(|node| node.name().value() == NODE);
    match (nodes.next(), nodes.next()) {
        (None, _) => Some(appended(text, &line(budget))),
        (Some(node), None) if node.children().is_none() => Some(replaced(text, node, budget)),
        _ => None,
    }
}

/// Returns the line that declares a budget.
fn line(budget: &Budget) -> String {
    limits(budget).fold(NODE.to_owned(), |line, it| line + " " + &property(&it, Syntax::Kdl))
}

/// Replaces the values of a node, and appends the missing ones after the node's last entry.
fn replaced(text: &str, node: &KdlNode, budget: &Budget) -> String {
    let name = node.name().span();
    let ends = node.entries().iter().map(|entry| bytes(entry).end);
    let end = ends.max().unwrap_or(name.offset() + name.len());
    let mut edits = Vec::new();
    let mut missing = String::new();
    for limit in limits(budget) {
        let new = property(&limit, Syntax::Kdl);
        match node.entry(limit.0.name()) {
            Some(entry) => edits.push(Edit { place: bytes(entry), new }),
            None => missing += &format!(" {new}"),
        }
    }
    edits.push(Edit { place: end..end, new: missing });
    edited(text, edits)
}

fn bytes(entry: &KdlEntry) -> Range<usize> {
    let span = entry.span();
    span.offset()..span.offset() + span.len()
}

#[cfg(test)]
mod tests {
    use super::super::tests::BUDGET;
    use super::*;

    const LINE: &str =
        "budget vmm=\"56ms\" kernel=\"309ms\" init=\"8ms\" ready=\"12ms\" total=\"383ms\"";

    fn write(text: &str) -> String {
        rewritten(text, &BUDGET).unwrap()
    }

    #[test]
    fn a_boxfile_without_a_budget_gets_one_at_its_end() {
        for text in ["box x\n", "box x"] {
            assert_eq!(write(text), format!("box x\n{LINE}\n"));
        }
    }

    #[test]
    fn values_are_replaced_and_every_other_byte_stays() {
        let old = "// é\nbox x\nbudget  total=\"5s\" /* why */ \\\n  kernel=#\"1s\"# // end\n\
                   agent { image i; }\n";
        let new = "// é\nbox x\nbudget  total=\"383ms\" /* why */ \\\n  kernel=\"309ms\" \
                   vmm=\"56ms\" init=\"8ms\" ready=\"12ms\" // end\nagent { image i; }\n";
        assert_eq!(write(old), new);
        assert_eq!(write(new), new);
        assert_eq!(write("budget\nbox x"), format!("{LINE}\nbox x"));
        assert_eq!(write("budget; box x"), format!("{LINE}; box x"));
    }

    #[test]
    fn the_budget_of_a_profile_is_another() {
        let profile = "profile ci { budget total=\"10s\"; }\n";
        assert_eq!(write(profile), format!("{profile}{LINE}\n"));
    }

    #[test]
    fn a_text_without_one_place_for_it_is_refused() {
        for text in ["box \"", "budget total=1\nbudget total=2\n", "budget { total \"5s\"; }\n"] {
            assert_eq!(rewritten(text, &BUDGET), None, "{text}");
        }
    }
}
