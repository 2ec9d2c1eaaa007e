//! TOML 1.1: from text to a tree of nodes, each with its place.
//!
//! `toml_parser`, on which the `toml` crate is built, cuts the text into names, values and brackets,
//! and continues after an error. The tables are built here from these events, not by the `toml` crate:
//! it drops the rest of the file after some errors, shows one place of a duplicate key, and does not
//! say where a bracket is opened that is never closed. How deep a text nests is checked while it is
//! read, so that nothing recurses further.
//!
//! Which key is an argument, which a property and which a declaration, the schema says: see
//! [`nodes`].

mod document;
mod explain;
mod nodes;
mod statement;
mod table;
#[cfg(test)]
mod tests;
mod word;

use crate::schema;
use crate::syntax::allowance::Allowance;
use crate::syntax::tree::Tree;
use diagnostics::Diagnostic;
use diagnostics::Sink;

/// Reads a text, as far as the allowance reaches; what cannot be read is reported and left out.
pub(crate) fn read(source: &str, allowance: &mut Allowance, sink: &Sink) -> Tree {
    let document = document::read(source, allowance, sink);
    let nodes = nodes::of_table(document.root, schema::TOP, sink);
    Tree { nodes, intact: true, complete: document.complete }
}

/// Returns what is wrong in a text that is not TOML. A list of tables is allowed, unlike in a Boxfile.
pub fn faults(source: &str) -> Vec<Diagnostic> {
    let sink = Sink::default();
    document::read(source, &mut Allowance::default(), &sink);
    let mut found = sink.into_found();
    found.retain(|error| source.get(error.span().offset..error.span().end()) != Some("[["));
    found
}

/// Returns `true` if a text is valid TOML, whatever it declares.
pub(super) fn is_valid(source: &str) -> bool {
    let sink = Sink::default();
    document::read(source, &mut Allowance::default(), &sink);
    sink.into_found().is_empty()
}
