//! Replaces the budget in a TOML Boxfile.

use box_contract::Budget;
use diagnostics::Syntax;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Edit, Limit, NODE, appended, edited, limits, property};

/// Implements [`super::rewritten`] for TOML.
pub(super) fn rewritten(text: &str, budget: &Budget) -> Option<String> {
    let document = DeTable::parse(text).ok()?;
    let Some(declared) = document.get_ref().get(NODE) else {
        let all = limits(budget).map(|limit| "\n".to_owned() + &property(&limit, Syntax::Toml));
        return Some(appended(text, &format!("\n[{NODE}]{}", all.collect::<String>())));
    };
    let DeValue::Table(table) = declared.get_ref() else { return None };
    let inline = text.get(declared.span())?.starts_with('{');
    replaced(text, table, inline, budget)
}

/// Replaces the values of a table, and inserts the missing ones before the table's first key. `None` if the table has
/// no key.
fn replaced(text: &str, table: &DeTable<'_>, inline: bool, budget: &Budget) -> Option<String> {
    let first = table.keys().map(|key| key.span().start).min()?;
    let value = |limit: &Limit| table.get(limit.0.name()).map(Spanned::span);
    let mut edits = Vec::new();
    let mut missing = String::new();
    for limit in limits(budget) {
        match value(&limit) {
            Some(place) => edits.push(Edit { place, new: format!("\"{}ms\"", limit.1) }),
            None => missing += &(property(&limit, Syntax::Toml) + if inline { ", " } else { "\n" }),
        }
    }
    edits.push(Edit { place: first..first, new: missing });
    Some(edited(text, edits))
}

#[cfg(test)]
mod tests {
    use super::super::tests::BUDGET;
    use super::*;

    fn write(text: &str) -> Option<String> {
        rewritten(text, &BUDGET)
    }

    #[test]
    fn a_boxfile_without_a_budget_gets_a_table_at_its_end() {
        let expected = "box = 'x'\n[agent]\nimage = 'i'\n\n[budget]\nvmm = \"56ms\"\n\
                        kernel = \"309ms\"\ninit = \"8ms\"\nready = \"12ms\"\ntotal = \"383ms\"\n";
        assert_eq!(write("box = 'x'\n[agent]\nimage = 'i'\n").as_deref(), Some(expected));
    }

    #[test]
    fn values_are_replaced_and_every_other_byte_stays() {
        let inline = write("# é\nbudget = { total = '5s', kernel='1s' } # why\nbox = 'x'\n");
        let expected = "# é\nbudget = { vmm = \"56ms\", init = \"8ms\", ready = \"12ms\", \
                        total = \"383ms\", kernel=\"309ms\" } # why\nbox = 'x'\n";
        assert_eq!(inline.as_deref(), Some(expected));
        assert_eq!(write(expected).as_deref(), Some(expected));
        let table = write("[budget]\n# why\ntotal = '5s' # because\n").unwrap();
        assert!(table.starts_with("[budget]\n# why\nvmm = \"56ms\"\n"), "{table}");
        assert!(table.ends_with("\ntotal = \"383ms\" # because\n"), "{table}");
    }

    #[test]
    fn a_text_without_one_place_for_it_is_refused() {
        for text in ["box = ", "budget = '5s'\n", "[budget]\n"] {
            assert_eq!(write(text), None, "{text}");
        }
    }
}
