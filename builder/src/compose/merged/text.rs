//! Conflicts as a person reads them.

use box_image::Digest;
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
        format!("\n    {name:<9} {}, {}", what(side), origin_text(side.origin, origins))
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

/// Says where an entry came from.
pub fn origin_text(origin: Origin, origins: &Origins) -> String {
    match origin {
        Origin::Generated => "which no layer names".to_owned(),
        Origin::Init => "made for init".to_owned(),
        Origin::Program => "the agent's program".to_owned(),
        Origin::Merged => "united from both images".to_owned(),
        Origin::Skill(number) => {
            let name = usize::try_from(number).ok().and_then(|it| origins.skills.get(it));
            format!("skill {}", name.map_or("?", String::as_str))
        }
        Origin::Layer(component, number) => {
            let image = origins.images.iter().find(|image| image.component == component);
            let layers = image.map_or(&[][..], |image| &image.layers);
            let layer = usize::try_from(number).ok().and_then(|it| layers.get(it));
            let digest = layer.map_or_else(|| "?".to_owned(), short);
            format!("layer {} of {} ({digest})", number + 1, layers.len())
        }
    }
}

/// Shortens a digest to what tells two apart.
fn short(digest: &Digest) -> String {
    digest.to_string().chars().take("sha256:".len() + 12).collect()
}
