//! Checks the values of base files that a later file overrides. They have no effect, but must be
//! valid: otherwise, an error in them would appear only after the overriding value is removed.

use std::collections::HashSet;

use crate::parse::load::Files;
use crate::parse::{is_error, understand};
use crate::syntax::tree::Node;
use diagnostics::{Diagnostic, Span};

/// Returns the errors in overridden values. Reads each base by itself for this. Errors about values
/// that still have an effect are omitted, because reading the merged files reports them.
pub(super) fn check(files: &mut Files) -> Vec<Diagnostic> {
    let bases = std::mem::take(&mut files.bases);
    if bases.is_empty() || !files.intact {
        return Vec::new();
    }
    let mut effective = HashSet::new();
    collect(&files.nodes, &mut effective);
    let overridden = |it: &Diagnostic| {
        is_error(it) && !it.labels().iter().any(|label| effective.contains(&label.span))
    };
    let alone = bases.into_iter().map(|base| files.alone(base));
    alone.flat_map(|base| understand(base, None).found).filter(overridden).collect()
}

/// Adds to `places` the spans of the names, arguments, properties and blocks of nodes: the spans
/// that labels of diagnostics have.
fn collect(nodes: &[Node], places: &mut HashSet<Span>) {
    for node in nodes {
        places.insert(node.name.span);
        places.extend(node.args.iter().map(|value| value.span));
        places.extend(node.props.iter().flat_map(|prop| [prop.name.span, prop.value.span]));
        if let Some(block) = &node.block {
            places.insert(block.open);
            collect(&block.nodes, places);
        }
    }
}
