//! Where an entry came from, with names for what an origin names by number.

use std::fmt;

use box_image::{ComponentName, Digest};
use serde::Serialize;

use super::Origins;
use crate::Origin;

/// How many digits of a digest people are shown.
const SHORT: usize = 12;

/// Where an entry came from, with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NamedOrigin<'a> {
    /// A layer of an image.
    Image {
        /// Whose image it is; nothing for one that belongs to no box.
        #[serde(skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
        /// The image's digest.
        image: Digest,
        /// Which layer, the lowest being 1.
        layer: usize,
        /// The layer's digest.
        layer_digest: Digest,
    },
    /// The agent's program that is in no image.
    Program {
        /// sha256 of the program.
        digest: Digest,
    },
    /// A baked skill.
    Skill {
        /// Its name.
        name: &'a str,
    },
    /// The builder, for init.
    Init,
    /// The builder: a directory on the way to something.
    Generated,
    /// The builder, of what both images have there.
    Merged,
}

impl Origins {
    /// Names an origin; nothing where its number names nothing.
    pub fn named(&self, origin: Origin) -> Option<NamedOrigin<'_>> {
        Some(match origin {
            Origin::Generated => NamedOrigin::Generated,
            Origin::Init => NamedOrigin::Init,
            Origin::Merged => NamedOrigin::Merged,
            Origin::Program => NamedOrigin::Program { digest: self.program? },
            Origin::Skill(number) => {
                NamedOrigin::Skill { name: self.skills.get(usize::try_from(number).ok()?)? }
            }
            Origin::Layer(component, number) => {
                let number = usize::try_from(number).ok()?;
                let image = self.images.iter().find(|image| image.component == component)?;
                let layer_digest = *image.layers.get(number)?;
                let (component, image) = (Some(component), image.digest);
                NamedOrigin::Image { component, image, layer: number + 1, layer_digest }
            }
        })
    }
}

/// Writes the origin for people: digests are cut to their first digits.
impl fmt::Display for NamedOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { component, image, layer, layer_digest } => {
                let (image, digest) = (short(image), short(layer_digest));
                let whose = component.map_or("", ComponentName::name);
                let space = if component.is_some() { " " } else { "" };
                write!(f, "{whose}{space}image {image} layer {layer} {digest}")
            }
            Self::Program { digest } => write!(f, "agent program {}", short(digest)),
            Self::Skill { name } => write!(f, "skill {name}"),
            Self::Init => f.write_str("init"),
            Self::Generated => f.write_str("generated"),
            Self::Merged => f.write_str("merged"),
        }
    }
}

fn short(digest: &Digest) -> String {
    digest.hex().chars().take(SHORT).collect()
}
