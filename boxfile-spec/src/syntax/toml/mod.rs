//! Reads [TOML 1.1](https://toml.io) into a tree of nodes with their spans.
//!
//! `toml_parser`, on which the `toml` crate is based, splits the text into names, values and brackets, and continues
//! after an error. This module builds the tables from these events, and does not use the `toml` crate for it: after
//! some errors that crate drops the rest of the file, it reports only one span of a duplicate key, and it does not
//! report the opening bracket of an unclosed list. The depth of a text is checked while it is read, so that the
//! recursion is bounded.
//!
//! The schema decides whether a key is an argument, a property or a declaration: see [`nodes`].

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

/// Reads a text, as far as the allowance permits. Parts that cannot be read are reported and left out.
pub(crate) fn read(source: &str, allowance: &mut Allowance, sink: &Sink) -> Tree {
    let document = document::read(source, allowance, sink);
    let nodes = nodes::of_table(document.root, schema::TOP, sink);
    Tree { nodes, intact: true, complete: document.complete }
}

/// Returns the errors of a text that is not valid TOML. A list of tables is allowed, unlike in a Boxfile.
pub fn faults(source: &str) -> Vec<Diagnostic> {
    let sink = Sink::default();
    document::read(source, &mut Allowance::default(), &sink);
    let mut found = sink.into_found();
    found.retain(|error| source.get(error.span().offset..error.span().end()) != Some("[["));
    found
}

/// Returns `true` if a text is valid TOML, regardless of its declarations.
pub(super) fn is_valid(source: &str) -> bool {
    let sink = Sink::default();
    document::read(source, &mut Allowance::default(), &sink);
    sink.into_found().is_empty()
}
