//! Checks that first arguments are unique, and explains misplaced and missing declarations.

use crate::form;
use crate::schema::{self, Declaration};
use crate::syntax::tree::{Data, Node};
use diagnostics::{Diagnostic, Sink, Span};
use safe_text::quote;

/// Reports every declaration that has the same first argument as an earlier one.
pub(super) fn check_unique(nodes: &[&Node], declaration: &Declaration, sink: &Sink) {
    let what = declaration.first.as_ref().map_or("name", |first| first.name);
    let mut keys: Vec<(&str, Span)> = nodes.iter().filter_map(|node| key(node)).collect();
    keys.sort_unstable();
    for same in keys.chunk_by(|(one, _), (other, _)| one == other) {
        let (key, first) = same[0];
        for (_, again) in &same[1..] {
            let message = format!("the {} {} is declared twice", declaration.name, quote(key));
            sink.report(
                Diagnostic::new(message, *again, "declared again")
                    .with_label(first, "declared first")
                    .with_help(format!("give one of them another {what}, or remove it")),
            );
        }
    }
}

/// Returns the first argument and its span, if the argument is a text.
pub(super) fn key(node: &Node) -> Option<(&str, Span)> {
    let value = node.args.first()?;
    let Data::Text(key) = &value.data else { return None };
    Some((key, value.span))
}

/// Returns the help that names the right block of a declaration that is misplaced at the top level.
pub(super) fn place_inside(node: &Node) -> Option<String> {
    // A colon as in YAML is a separate error, reported in the right block.
    let name = node.name.value.trim_end_matches(':');
    let [agent, business] =
        [&schema::AGENT, &schema::BUSINESS].map(|it| it.child(name).map(|_| it.name));
    let block = |name| format!("`{}`", form::block(node.syntax, name));
    let places: Vec<String> = agent.into_iter().chain(business).map(block).collect();
    (!places.is_empty()).then(|| format!("it belongs inside {}", places.join(" or ")))
}

/// Returns the error of a block without a required declaration.
pub(super) fn missing(declaration: &'static Declaration, block: &Node) -> Diagnostic {
    let message = format!("`{}` needs `{}`", block.name.value, declaration.name);
    Diagnostic::new(message, block.name.span, format!("without `{}`", declaration.name))
        .with_help(form::imperative("add", &declaration.usage(block.syntax)))
}

/// Sorts values and removes duplicates.
pub(super) fn unique<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}
