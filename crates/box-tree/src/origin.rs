//! Where an entry of a tree came from.

use box_image::ComponentName;

/// Where an entry came from. An inode with several names has the origin of the entry that made it,
/// and a directory the one of the entry that gave it its attributes last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The builder: a directory on the way to an entry that no archive names.
    #[default]
    Generated,
    /// The builder, for init: what it reads, and what it mounts on.
    Init,
    /// A layer of a component's image, the lowest being 0.
    Layer(ComponentName, u32),
    /// The agent's program that is in no image.
    Program,
    /// A baked skill: its place among the box's baked skills, sorted by name.
    Skill(u32),
    /// The builder, of what both images have at the path.
    Merged,
}
