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
        && !kdl::read(source, &sink).nodes.is_empty()
        && sink.into_found().is_empty()
}

fn kdl_instead() -> Diagnostic {
    let message = "the file's name says TOML, but it is written in KDL";
    Diagnostic::new(message, Span::default(), "KDL from here on")
        .with_help("give it a name that does not end with `.toml`: `Boxfile`, or `Boxfile.kdl`")
}
