//! From text to a tree of nodes, each with its place: the part of the language that differs
//! between the two syntaxes.
//!
//! KDL is the syntax that the tree is modelled on. TOML becomes the same tree by the rules of
//! [`toml`], which takes from the schema what is an argument, a property or a declaration.

mod foreign;
pub(crate) mod kdl;
pub(crate) mod toml;
pub(crate) mod tree;
pub(crate) mod word;

use tree::{Node, Tree};

use crate::sink::Sink;
use crate::{Source, Syntax, schema};

/// Reads a text; what cannot be read is reported and left out.
pub(crate) fn read(source: &Source, sink: &Sink) -> Tree {
    let own = Sink::default();
    let tree = match source.syntax {
        Syntax::Kdl => kdl::read(&source.text, &own),
        Syntax::Toml => toml::read(&source.text, &own),
    };
    let found = own.into_found();
    let known = |node: &Node| !node.broken && schema::find(schema::TOP, &node.name.value).is_some();
    if !found.is_empty()
        && !tree.nodes.iter().any(known)
        && let Some(error) = foreign::other_syntax(source)
    {
        sink.report(error);
        return Tree::default();
    }
    found.into_iter().for_each(|error| sink.report(error));
    tree
}
