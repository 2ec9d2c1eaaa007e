//! The reference of the language, `docs/boxfile.md`, generated from the schema.
//!
//! Its prose is in `prose/`, as Markdown.

use super::place::{self, SchemaPlace};
use super::{Argument, Declaration, Enforced, Kind, Property, TOP};
use diagnostics::Syntax;

const BEGINNING: &str = include_str!("prose/beginning.md");
const MERGING: &str = include_str!("prose/merging.md");
const DECLARATIONS: &str = include_str!("prose/declarations.md");

/// Returns the reference of the language for its users, as Markdown.
///
/// `docs/boxfile.md` is this text; `cargo xtask docs` writes it.
pub fn reference() -> String {
    let sections: Vec<String> = place::all().iter().map(section).collect();
    let parts = [
        BEGINNING.trim_end(),
        MERGING.trim_end(),
        DECLARATIONS.trim_end(),
        &overview(),
        &sections.join("\n\n"),
    ];
    format!("{}\n", parts.join("\n\n"))
}

/// Writes the table of all top-level declarations.
fn overview() -> String {
    let rows = TOP.iter().map(|declaration| {
        let today = match declaration.enforced {
            Enforced::Now => "works",
            Enforced::Partly(now) => now,
        };
        vec![link(declaration), declaration.summary().to_owned(), today.to_owned()]
    });
    table(&["declaration", "meaning", "today"], rows)
}

/// Writes the section of a declaration.
fn section(place: &SchemaPlace) -> String {
    let declaration = place.declaration;
    let level = if place.blocks.is_empty() { "###" } else { "####" };
    let mut parts = vec![format!("{level} {}", title(place)), declaration.summary().to_owned()];
    parts.extend(Some(declaration.details()).filter(|it| !it.is_empty()).map(str::to_owned));
    parts.push(format!("```kdl\n{}\n```", declaration.example(Syntax::Kdl)));
    parts.push(format!("```toml\n{}\n```", declaration.example(Syntax::Toml)));
    parts.extend(values(declaration));
    parts.extend(choices(declaration));
    parts.extend(declaration.variables.map(str::to_owned));
    parts.extend(inner(declaration));
    parts.push(format!("{} {}", declaration.count.description(), declaration.merging()));
    parts.join("\n\n")
}

/// Returns the heading of a declaration's section: `` `image` in `agent` and `business` ``.
fn title(place: &SchemaPlace) -> String {
    let blocks: Vec<String> = place.blocks.iter().map(|it| format!("`{}`", it.name)).collect();
    let name = format!("`{}`", place.declaration.name);
    if blocks.is_empty() { name } else { format!("{name} in {}", blocks.join(" and ")) }
}

/// Writes a declaration's name as a link to its section.
fn link(declaration: &'static Declaration) -> String {
    let name = format!("`{}`", declaration.name);
    match place::find(declaration) {
        Some(place) => format!("[{name}](#{})", anchor(&title(place))),
        None => name,
    }
}

/// Returns the anchor that Markdown renderers give to a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Writes the table of arguments and properties.
fn values(declaration: &Declaration) -> Option<String> {
    let first = declaration.first.iter().map(|it| argument(declaration, it, "argument"));
    let after = if declaration.first.is_some() { "further arguments" } else { "arguments" };
    let rest = declaration.rest.iter().map(|it| argument(declaration, it, after));
    let props = declaration.props.iter().map(|it| property(declaration, it));
    let rows: Vec<Vec<String>> = first.chain(rest).chain(props).collect();
    (!rows.is_empty()).then(|| table(&["name", "given as", "must be", "default", "meaning"], rows))
}

fn argument(of: &Declaration, argument: &Argument, position: &str) -> Vec<String> {
    let default = if argument.optional { "" } else { "required" };
    row(argument.name, position, argument.kind, default, of.doc(argument.name))
}

fn property(of: &Declaration, property: &Property) -> Vec<String> {
    let default = if property.required { "required" } else { &property.default.description() };
    row(property.name, "property", property.kind, default, of.doc(property.name))
}

fn row(name: &str, position: &str, kind: Kind, default: &str, doc: &str) -> Vec<String> {
    vec![
        format!("`{name}`"),
        position.to_owned(),
        kind.description(),
        default.to_owned(),
        doc.to_owned(),
    ]
}

/// Writes the meanings of the words to choose from.
fn choices(declaration: &Declaration) -> Vec<String> {
    let args = declaration.first.iter().map(|it| (it.name, it.kind));
    let props = declaration.props.iter().map(|it| (it.name, it.kind));
    let lists = args.chain(props).filter_map(|(name, kind)| match kind {
        Kind::OneOf(words) => Some(list(declaration, name, words)),
        _ => None,
    });
    lists.collect()
}

fn list(of: &Declaration, name: &str, words: &[&str]) -> String {
    let line = |word: &&str| format!("- `{word}`: {}", of.doc(word));
    let lines: Vec<String> = words.iter().map(line).collect();
    format!("`{name}` is one of\n\n{}", lines.join("\n"))
}

/// Writes the table of the declarations in a block.
fn inner(declaration: &Declaration) -> Option<String> {
    let row = |child: &&'static Declaration| vec![link(child), child.summary().to_owned()];
    let rows: Vec<Vec<String>> = declaration.children.iter().map(row).collect();
    (!rows.is_empty()).then(|| table(&["in its block", "meaning"], rows))
}

/// Writes a table of Markdown.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let head_cells = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = format!("|{}", "---|".repeat(head.len()));
    let lines = [line(head_cells), rule].into_iter().chain(rows.into_iter().map(line));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_checked_in_reference_is_what_the_schema_says() {
        let checked_in = include_str!("../../../docs/boxfile.md");
        assert!(
            checked_in == reference(),
            "docs/boxfile.md is not what the schema says: run `cargo xtask docs`"
        );
    }

    #[test]
    fn every_link_leads_to_one_heading() {
        let text = reference();
        let headings: Vec<String> = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| anchor(&line.trim_start_matches(['#', ' ']).to_lowercase()))
            .collect();
        let distinct: BTreeSet<&String> = headings.iter().collect();
        assert_eq!(distinct.len(), headings.len());
        let mut links = text.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap());
        assert!(links.clone().count() > TOP.len());
        assert_eq!(links.find(|link| !distinct.contains(&(*link).to_owned())), None);
    }

    #[test]
    fn no_cell_breaks_its_table() {
        for line in reference().lines().filter(|line| line.starts_with("| ")) {
            assert!([4, 3, 6].contains(&line.split(" |").count()), "{line}");
        }
    }
}
