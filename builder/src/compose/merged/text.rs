//! Conflicts as a person reads them.

use box_tree::Origin;
use box_tree::listing::Origins;
use boxfile_spec::shown;

use super::{Conflict, Side};

/// Describes a conflict in a few lines, each safe for a terminal.
pub fn describe(conflict: &Conflict, origins: &Origins) -> String {
    let path = shown(&String::from_utf8_lossy(&conflict.path));
    let difference = &conflict.difference;
    let [agent, business] = &difference.values;
    let head = format!("{path}: {} is {agent} and {business}", difference.field);
    let sides = ["agent", "business"].into_iter().zip(&conflict.sides);
    let side = |(name, side): (&str, &Side)| {
        format!("\n    {name:<9} {}, {}", what(side), origin(side.origin, origins))
    };
    let note = conflict.note.iter().map(|note| format!("\n    note      {note}"));
    [head].into_iter().chain(sides.map(side)).chain(note).collect()
}

/// Says what is at a path.
fn what(side: &Side) -> String {
    match (side.size, side.below) {
        (Some(size), _) => format!("{} of {size} bytes", side.kind),
        (None, 0) => side.kind.to_owned(),
        (None, 1) => format!("{} with 1 entry", side.kind),
        (None, below) => format!("{} with {below} entries", side.kind),
    }
}

/// Returns an origin as text; the side says already whose image it is.
fn origin(origin: Origin, origins: &Origins) -> String {
    origins.named(origin).map(|it| it.without_component().to_string()).unwrap_or_default()
}
