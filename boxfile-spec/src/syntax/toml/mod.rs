//! TOML 1.1: from text to a tree of nodes, each with its place.
//!
//! The `toml` crate reads single statements: headers, and keys with their values. The text is cut
//! into statements here, and here they become tables, for the reasons for which the KDL reader cuts
//! its text: an error in one statement leaves all others readable, whatever names clash is shown
//! with both of its places, declarations stay in the order of the file, and how deep a text nests
//! is known before anything recurses.
//!
//! Which key is an argument, which a property and which a declaration, the schema says: see
//! [`nodes`].

mod document;
mod explain;
mod lexeme;
mod nodes;
mod outline;
mod statement;
mod table;
#[cfg(test)]
mod tests;

use super::{Tree, kdl};
use crate::schema;
use crate::sink::Sink;
use crate::{Diagnostic, Span};

/// Reads a text; what cannot be read is reported and left out.
pub(crate) fn read(source: &str, sink: &Sink) -> Tree {
    let own = Sink::default();
    let document = document::read(source, &own);
    let found = own.into_found();
    let nothing = document.root.entries.iter().all(|(_, item)| item.is_broken());
    if !found.is_empty() && nothing && is_kdl(source) {
        sink.report(kdl_instead());
        return Tree::default();
    }
    found.into_iter().for_each(|error| sink.report(error));
    let nodes = nodes::of_table(document.root, schema::TOP, sink);
    Tree { nodes, intact: document.intact, complete: document.complete }
}

/// Whether a text that is not TOML is a Boxfile in KDL.
fn is_kdl(source: &str) -> bool {
    let mut lines = source.lines().map(str::trim_start);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('/')).unwrap_or_default();
    let word = first.split(|c: char| c.is_whitespace() || c == '{').next().unwrap_or_default();
    let sink = Sink::default();
    schema::find(schema::TOP, word).is_some()
        && !kdl::parse(source, &sink).nodes.is_empty()
        && sink.into_found().is_empty()
}

/// Returns the first line of a text that is not KDL, if it is a Boxfile in TOML.
pub(super) fn first_line(source: &str) -> Option<Span> {
    let mut offset = 0;
    let mut lines = source.split_inclusive('\n').map(|line| {
        offset += line.len();
        (offset - line.len(), line.trim_end())
    });
    let (at, line) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let name = line.trim_start_matches('[').trim_start();
    let end = name.find(|c: char| c.is_whitespace() || ".=]".contains(c));
    schema::find(schema::TOP, &name[..end.unwrap_or(name.len())])?;
    let sink = Sink::default();
    // No declaration of KDL begins with a bracket.
    let sure = line.starts_with('[') || {
        document::read(source, &sink);
        sink.into_found().is_empty()
    };
    sure.then(|| Span::at(at, line.len()))
}

fn kdl_instead() -> Diagnostic {
    let message = "the file's name says TOML, but it is written in KDL";
    Diagnostic::new(message, Span::default(), "KDL from here on")
        .with_help("give it a name that does not end with `.toml`: `Boxfile`, or `Boxfile.kdl`")
}
