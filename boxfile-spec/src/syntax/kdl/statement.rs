//! Reads the header of a statement with the `kdl` crate.

use std::ops::Range;

use kdl::{KdlEntry, KdlIdentifier, KdlNode, KdlValue};

use super::explain::Words;
use super::outline::Statement;
use super::{explain, foreign};
use crate::errors::SYNTAX_ERRORS;
use crate::syntax::tree::{Block, Data, Node, Prop, Value};
use crate::syntax::word::begins_like_number;
use diagnostics::{Sink, Span, Spanned, Syntax};

/// The greatest length of a number in bytes. The `kdl` crate takes seconds for a number of 1 MiB.
const MAX_NUMBER: usize = 64;

/// Reads all statements of a block. `text` is [`Outline::text`](super::outline::Outline::text).
pub(super) fn nodes(text: &str, statements: Vec<Statement>, sink: &Sink) -> Vec<Node> {
    statements.into_iter().map(|statement| node(text, statement, sink)).collect()
}

fn node(text: &str, statement: Statement, sink: &Sink) -> Node {
    let range = statement.header;
    let header = if statement.unreadable { None } else { header(text, &range, sink) };
    let mut node = header.unwrap_or_else(|| broken(text, range));
    node.block = statement
        .block
        .map(|(open, statements)| Block { open, nodes: nodes(text, statements, sink) });
    node
}

fn header(text: &str, range: &Range<usize>, sink: &Sink) -> Option<Node> {
    let header = &text[range.clone()];
    if let Some(span) = long_number(header, range.start) {
        sink.report(SYNTAX_ERRORS.at("long-number", span));
        return None;
    }
    if foreign::report(header, range.start, sink) {
        return None;
    }
    // The crate reads a `\` at the end of its input as a line continuation. The outline has
    // replaced every line continuation by spaces, so this `\` is not one.
    if header.ends_with('\\') {
        sink.report(SYNTAX_ERRORS.at("kdl-continuation", Span::at(range.end - 1, 1)));
        return None;
    }
    match KdlNode::parse(header) {
        Ok(node) => Some(Reader { base: range.start, sink }.node(&node)),
        Err(_) if sink.is_full() => None,
        Err(_) => {
            explain::report(header, range.start, sink);
            None
        }
    }
}

/// Returns the span of the first number that is longer than [`MAX_NUMBER`]. `base` is the header's offset.
fn long_number(header: &str, base: usize) -> Option<Span> {
    if header.len() <= MAX_NUMBER {
        return None;
    }
    Words::of(header).find_map(|word| {
        // A property has its value after `=`, and an annotated value its own after `)`. Text in quotes ends with a quote.
        let value = header[word.clone()].rsplit(['=', ')']).next()?.trim_start();
        let is_number = begins_like_number(value) && !value.contains('"');
        let is_long = is_number && value.len() > MAX_NUMBER;
        is_long.then(|| Span::at(base + word.end - value.len(), value.len()))
    })
}

/// Makes a node from a header that cannot be read. Its name is the first word of the header.
fn broken(text: &str, range: Range<usize>) -> Node {
    let name = text[range.clone()].split(|c: char| c.is_whitespace() || c == '{').next();
    let name = name.unwrap_or_default().trim_matches('"').to_owned();
    let span = Span::at(range.start, name.len());
    Node { broken: true, ..Node::new(Spanned { value: name, span }, Syntax::Kdl) }
}

/// Converts a value of the `kdl` crate.
pub(super) fn data(value: &KdlValue) -> Data {
    match value {
        KdlValue::String(text) => Data::Text(text.clone()),
        KdlValue::Integer(number) => Data::Integer(*number),
        KdlValue::Float(_) => Data::Float(value.to_string()),
        KdlValue::Bool(truth) => Data::Truth(*truth),
        KdlValue::Null => Data::Null,
    }
}

/// Converts nodes of the `kdl` crate.
struct Reader<'s> {
    /// The offset of the header in the source.
    base: usize,
    sink: &'s Sink,
}

impl Reader<'_> {
    fn node(&self, kdl: &KdlNode) -> Node {
        self.refuse_annotation(kdl.ty());
        let mut node = Node::new(self.name(kdl.name()), Syntax::Kdl);
        for entry in kdl.entries() {
            let value = self.value(entry);
            match entry.name() {
                None => node.args.push(value),
                Some(name) => node.props.push(Prop { name: self.name(name), value }),
            }
        }
        node
    }

    fn value(&self, entry: &KdlEntry) -> Value {
        self.refuse_annotation(entry.ty());
        // The span of a property's entry includes the name. The value is at the end of the span.
        let whole = self.span(entry.span().offset(), entry.span().len());
        let written = entry.format().map_or(whole.len, |format| format.value_repr.len());
        let start = whole.end().saturating_sub(written);
        Value {
            data: data(entry.value()),
            span: Span::between(start, whole.end()),
            syntax: Syntax::Kdl,
        }
    }

    fn span(&self, offset: usize, len: usize) -> Span {
        Span::at(self.base + offset, len)
    }

    fn name(&self, kdl: &KdlIdentifier) -> Spanned<String> {
        let span = self.span(kdl.span().offset(), kdl.span().len());
        Spanned { value: kdl.value().to_owned(), span }
    }

    fn refuse_annotation(&self, annotation: Option<&KdlIdentifier>) {
        let Some(annotation) = annotation else { return };
        let Spanned { value, span } = self.name(annotation);
        self.sink.report(SYNTAX_ERRORS.about("kdl-annotation", &value, span));
    }
}
