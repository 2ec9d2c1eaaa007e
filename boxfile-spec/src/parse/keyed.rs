//! Declarations that may stand any number of times, each with another name.

use crate::diagnostic::quote;
use crate::parse::document::plain_name;
use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::{Data, Node};
use crate::{Diagnostic, Span};

/// Reports every declaration whose first argument another one has, too; `what` names it.
pub(super) fn check_unique(nodes: &[&Node], what: &str, sink: &Sink) {
    let mut keys: Vec<(&str, Span, &str)> = nodes.iter().filter_map(|node| key(node)).collect();
    keys.sort_unstable();
    for same in keys.chunk_by(|(one, ..), (other, ..)| one == other) {
        let (key, first, declaration) = same[0];
        for (_, again, _) in &same[1..] {
            let message = format!("the {declaration} {} is declared twice", quote(key));
            sink.report(
                Diagnostic::new(message, *again, "declared again")
                    .with_label(first, "declared first")
                    .with_help(format!("give one of them another {what}, or remove it")),
            );
        }
    }
}

/// Returns the first argument, its place, and the declaration's name.
fn key(node: &Node) -> Option<(&str, Span, &str)> {
    let value = node.args.first()?;
    let Data::Text(key) = &value.data else { return None };
    Some((key, value.span, &node.name.value))
}

/// Takes the name of a declaration.
pub(super) fn name(reader: &mut Reader<'_>) -> Option<String> {
    let name = reader.arg();
    reader.read(name, reader.name(), plain_name)
}
