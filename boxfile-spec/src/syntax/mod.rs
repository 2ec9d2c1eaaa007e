//! Reads texts in KDL or TOML into trees of nodes with their spans.
//!
//! The tree follows the model of KDL. [`toml`] makes the same tree from TOML; the schema decides whether a key is an
//! argument, a property or a declaration.

pub(crate) mod allowance;
mod foreign;
pub(crate) mod kdl;
mod recipe;
pub(crate) mod toml;
pub(crate) mod tree;
pub(crate) mod word;

use allowance::Allowance;
use tree::{Node, Tree};

use crate::schema;
use diagnostics::{Diagnostic, Sink, Source, Span, Syntax, edited};

/// Reads a text, as far as the allowance permits. Parts that cannot be read are reported and left out.
pub(crate) fn read(source: &Source, allowance: &mut Allowance, sink: &Sink) -> Tree {
    if let Some(error) = recipe::dockerfile(source) {
        sink.report(error);
        return Tree::default();
    }
    let own = Sink::default();
    let mut tree = match source.syntax {
        Syntax::Kdl => kdl::read(&source.text, allowance, &own),
        Syntax::Toml => toml::read(&source.text, allowance, &own),
    };
    let mut found = own.into_found();
    let known = |node: &Node| !node.broken && schema::find(schema::TOP, &node.name.value).is_some();
    if !found.is_empty()
        && !tree.nodes.iter().any(known)
        && let Some(error) = foreign::other_syntax(source)
    {
        sink.report(error);
        return Tree::default();
    }
    if (!found.is_empty() || tree.nodes.iter().any(is_marker))
        && let Some(error) = edited::unmerged(&source.text)
    {
        sink.report(error);
        return Tree::default();
    }
    let recipe = recipe::take(&mut tree, source, &mut found);
    // A declaration may be missing because its text is malformed, so it is not reported as missing.
    tree.complete &= found.is_empty();
    let hidden = hidden(source, &found);
    let places: Vec<usize> = hidden.iter().map(|it| it.span().offset).collect();
    tree.nodes.iter_mut().for_each(|node| break_at(node, &places));
    // Reports the exceeded allowance first, because the other errors could fill the sink.
    let exceeded = allowance.error();
    let all = exceeded.into_iter().chain(recipe).chain(hidden).chain(found);
    all.for_each(|error| sink.report(error));
    tree
}

/// Returns whether a node, or a node in its block, is a conflict marker that a merge left.
fn is_marker(node: &Node) -> bool {
    edited::is_marker(&node.name.value) || node.children().iter().any(is_marker)
}

/// Returns the errors of hidden characters, except of those that another error already covers.
fn hidden(source: &Source, found: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut hidden =
        edited::hidden_characters(&source.text, Some(diagnostics::escape(source.syntax)));
    let covers = |other: Span, at: usize| other.offset <= at && at <= other.end();
    hidden.retain(|it| !found.iter().any(|other| covers(other.span(), it.span().offset)));
    hidden
}

/// Marks a node as broken if `places`, which are sorted offsets, has one between the node's name and its last value.
/// Then no further error about the node is reported.
fn break_at(node: &mut Node, places: &[usize]) {
    if places.is_empty() {
        return;
    }
    let values = node.args.iter().chain(node.props.iter().map(|it| &it.value));
    let end = values.map(|it| it.span.end()).fold(node.name.span.end(), usize::max);
    let next = places.partition_point(|place| *place < node.name.span.offset);
    if places.get(next).is_some_and(|place| *place < end) {
        node.broken = true;
        node.args.clear();
        node.props.clear();
    }
    if let Some(block) = &mut node.block {
        block.nodes.iter_mut().for_each(|node| break_at(node, places));
    }
}
