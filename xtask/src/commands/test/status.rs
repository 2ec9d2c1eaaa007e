//! The boots that show each line of docs/status.md.
//!
//! Below the heading [`HEADING`], each item of a list ends with a comment that names the modules of `tests/boot` that show it:
//! `<!-- boots: jail isolation -->`. At least one of them is made by `cargo xtask test`.

use std::collections::BTreeMap;
use std::fs;

use testbed::boots::module_of;
use testbed::{KitError, Result, Workspace};

use super::parts::Listed;

/// The page, below the repository's root.
const PAGE: &str = "docs/status.md";
const HEADING: &str = "## Shown by booting boxes";
const COMMENT: &str = "<!-- boots: ";

/// Checks the page against the list of boots.
///
/// # Errors
/// The page cannot be read, or an item has a fault.
pub(super) fn check(workspace: &Workspace, listed: &[Listed]) -> Result<()> {
    let path = workspace.path(PAGE);
    let page = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
    fault(&page, listed).map_or(Ok(()), |fault| Err(KitError::malformed(PAGE, fault)))
}

/// Returns the fault of the first item that has one.
fn fault(page: &str, listed: &[Listed]) -> Option<String> {
    let mut is_short: BTreeMap<&str, bool> = BTreeMap::new();
    for test in listed {
        *is_short.entry(module_of(&test.name)).or_default() |= test.tier.is_short;
    }
    let items = items(page);
    let of_item = |item: &String| {
        let shown: String = item.chars().take(60).collect();
        let Some((_, named)) = item.split_once(COMMENT) else {
            return Some(format!("\"{shown}…\" names no boots"));
        };
        let modules: Vec<_> = named.trim_end_matches(" -->").split(' ').collect();
        if let Some(unknown) = modules.iter().find(|name| !is_short.contains_key(**name)) {
            return Some(format!("there is no tests/boot/{unknown}"));
        }
        let is_shown = modules.iter().any(|name| is_short[name]);
        (!is_shown).then(|| format!("`cargo xtask test` makes none of the boots of \"{shown}…\""))
    };
    if items.is_empty() {
        Some("it has no items".to_owned())
    } else {
        items.iter().find_map(of_item)
    }
}

/// Returns the items of the lists below the heading, each as one line.
fn items(page: &str) -> Vec<String> {
    let section = page.split_once(HEADING).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut items: Vec<String> = Vec::new();
    for line in section.lines() {
        match (line.strip_prefix("- "), line.strip_prefix("  "), items.last_mut()) {
            (Some(first), _, _) => items.push(first.to_owned()),
            (None, Some(more), Some(item)) => *item = format!("{item} {more}"),
            _ => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault_of(items: &str) -> Option<String> {
        let listed =
            ["[gate, short] jail::a", "[part 1] sdk::b"].map(|line| Listed::of(line).unwrap());
        fault(&format!("# Page\n\n{HEADING}\n\n{items}\n\n## Other\n\n- without\n"), &listed)
    }

    #[test]
    fn each_item_names_a_boot_of_each_run() {
        assert_eq!(
            fault_of("- one\n  goes on. <!-- boots: sdk jail -->\n- two <!-- boots: jail -->"),
            None
        );
        let faults = [
            ("- one\n- two <!-- boots: jail -->", "\"one…\" names no boots"),
            ("- one <!-- boots: jall -->", "there is no tests/boot/jall"),
            ("- one <!-- boots: sdk -->", "`cargo xtask test` makes none of the boots of \"one"),
            ("text", "it has no items"),
        ];
        for (items, expected) in faults {
            let found = fault_of(items).unwrap_or_default();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
