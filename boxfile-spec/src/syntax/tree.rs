//! The nodes of a file, which are the same for both syntaxes.

use diagnostics::{Span, Spanned, Syntax};

/// The greatest depth of nested declarations. It bounds the recursion of the readers, and the
/// length of a formatted text, which grows with the indentation.
pub(crate) const MAX_DEPTH: usize = 64;

/// The nodes of a file.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The top-level nodes, without nodes that `/-` comments out.
    pub(crate) nodes: Vec<Node>,
    /// Whether every node is certainly in its block. If not, for example after an unclosed brace, a
    /// node may be in the file although it is missing in its block.
    pub(crate) intact: bool,
    /// Whether the tree has every declaration of the file, including broken ones. If not, none is
    /// reported as missing.
    pub(crate) complete: bool,
}

/// A node: its name, arguments, properties and block.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: Spanned<String>,
    pub(crate) syntax: Syntax,
    pub(crate) args: Vec<Value>,
    pub(crate) props: Vec<Prop>,
    pub(crate) block: Option<Block>,
    /// Whether the line could not be read: the error is reported, and arguments and properties are
    /// unknown.
    pub(crate) broken: bool,
}

impl Node {
    /// Makes a node with only a name.
    pub(crate) const fn new(name: Spanned<String>, syntax: Syntax) -> Self {
        Self { name, syntax, args: Vec::new(), props: Vec::new(), block: None, broken: false }
    }

    /// Returns the nodes of the block; none if there is no block.
    pub(crate) fn children(&self) -> &[Self] {
        self.block.as_ref().map_or(&[], |block| &block.nodes)
    }

    /// Sets the source of every span.
    pub(crate) fn set_source(&mut self, source: u32) {
        self.name.span.source = source;
        self.args.iter_mut().for_each(|value| value.span.source = source);
        for prop in &mut self.props {
            prop.name.span.source = source;
            prop.value.span.source = source;
        }
        if let Some(block) = &mut self.block {
            block.open.source = source;
            block.nodes.iter_mut().for_each(|node| node.set_source(source));
        }
    }
}

/// The part of a node between its braces.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The opening brace; in TOML, the name of the table.
    pub(crate) open: Span,
    pub(crate) nodes: Vec<Node>,
}

/// A property: `name=value`.
#[derive(Debug, Clone)]
pub(crate) struct Prop {
    pub(crate) name: Spanned<String>,
    pub(crate) value: Value,
}

/// An argument, or the value of a property.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) data: Data,
    pub(crate) span: Span,
    pub(crate) syntax: Syntax,
}

impl Value {
    /// Returns the value if it is a text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        if let Data::Text(text) = &self.data { Some(text) } else { None }
    }
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Text(String),
    Integer(i128),
    /// A number with a fraction, as it is written.
    Float(String),
    Truth(bool),
    /// `#null`.
    Null,
    /// A kind that no declaration takes, in words: `a list`, `a table`, `a date`.
    Other(&'static str),
}
