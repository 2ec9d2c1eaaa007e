//! The origin of an entry, by number and by name.

use std::fmt;

use box_contract::ComponentName;
use box_digest::Digest;
use serde::Serialize;

use super::{FileOrigin, Origins};

/// The origin of an entry. An inode with several names has the origin of the entry that made it; a directory has the
/// origin of the entry that last set its attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The builder, for a missing parent directory of an entry.
    #[default]
    Generated,
    /// The builder, for files that init reads and directories on which it mounts.
    Init,
    /// A layer of a component's image; 0 is the lowest.
    Layer(ComponentName, u32),
    /// The agent's program that is in no image.
    Program,
    /// A baked skill. Contains its index in [`Origins::skills`].
    Skill(u32),
    /// The builder, for a path that both images have.
    Merged,
    /// A file or directory of the checkout. Contains its index in [`Origins::files`].
    File(u32),
}

/// The origin of an entry, with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NamedOrigin<'a> {
    /// A layer of an image.
    Image {
        /// The component of the image. `None` if it is known from the context or does not matter.
        #[serde(skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
        /// The number of the layer; the lowest is 1.
        layer: usize,
        /// The layer's diff_id: sha256 of its uncompressed archive.
        diff_id: Digest,
    },
    /// The agent's program that is in no image.
    Program {
        /// sha256 of the program.
        digest: Digest,
    },
    /// A skill that was baked into the box.
    Skill {
        /// The name of the skill and of its directory.
        name: &'a str,
    },
    /// The builder, for init.
    Init,
    /// The builder, for a missing parent directory of an entry.
    Generated,
    /// The builder, for a path that both images have.
    Merged,
    /// A file or directory of the checkout that the Boxfile puts into a component.
    File {
        /// The component. `None` if it is known from the context.
        #[serde(skip_serializing_if = "Option::is_none")]
        component: Option<ComponentName>,
        /// The path, as the Boxfile names it.
        path: &'a str,
    },
}

impl Origins {
    /// Returns an origin with names. `None` if its number is invalid.
    pub fn named(&self, origin: Origin) -> Option<NamedOrigin<'_>> {
        Some(match origin {
            Origin::Generated => NamedOrigin::Generated,
            Origin::Init => NamedOrigin::Init,
            Origin::Merged => NamedOrigin::Merged,
            Origin::Program => NamedOrigin::Program { digest: self.program? },
            Origin::Skill(number) => {
                NamedOrigin::Skill { name: self.skills.get(usize::try_from(number).ok()?)? }
            }
            Origin::File(number) => {
                let FileOrigin { component, path } =
                    self.files.get(usize::try_from(number).ok()?)?;
                NamedOrigin::File { component: Some(*component), path }
            }
            Origin::Layer(component, number) => {
                let number = usize::try_from(number).ok()?;
                let image = self.images.iter().find(|image| image.component == component)?;
                let diff_id = *image.layers.get(number)?;
                NamedOrigin::Image { component: Some(component), layer: number + 1, diff_id }
            }
        })
    }
}

impl NamedOrigin<'_> {
    /// Returns the origin without the component, for output that already has it.
    #[must_use]
    pub fn without_component(self) -> Self {
        match self {
            Self::Image { layer, diff_id, .. } => Self::Image { component: None, layer, diff_id },
            Self::File { path, .. } => Self::File { component: None, path },
            other => other,
        }
    }
}

/// Formats the origin as text. Digests are cut to their first digits.
impl fmt::Display for NamedOrigin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image { component: Some(component), layer, diff_id } => {
                write!(f, "{} layer {layer} {}", component.name(), diff_id.short())
            }
            Self::Image { component: None, layer, diff_id } => {
                write!(f, "layer {layer} {}", diff_id.short())
            }
            Self::Program { digest } => write!(f, "agent program {}", digest.short()),
            Self::Skill { name } => write!(f, "skill {name}"),
            Self::Init => f.write_str("init"),
            Self::Generated => f.write_str("generated"),
            Self::Merged => f.write_str("merged"),
            Self::File { component: Some(component), path } => {
                write!(f, "{} file {path}", component.name())
            }
            Self::File { component: None, path } => write!(f, "file {path}"),
        }
    }
}
