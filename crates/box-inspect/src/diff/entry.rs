//! One entry of a compared tree.

use box_tree::listing::NamedOrigin;
use box_tree::{Content, Inode, Kind, Leaf};

/// One entry of a compared tree.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// What it is.
    pub inode: &'a Inode,
    /// Where it came from, where that is known.
    pub origin: Option<NamedOrigin<'a>>,
    /// How many names its inode has in the compared tree; of a directory always 1.
    pub names: usize,
    /// The first path, in the canonical order, of an inode that has several.
    pub(super) group: Option<&'a [u8]>,
    /// Whether it lies in a directory of this host, where links have no permissions.
    pub(super) on_host: bool,
}

impl<'a> Entry<'a> {
    /// Returns the type: `file`, `directory`, `symlink`, `char-device`, `block-device` or `fifo`.
    pub const fn kind(&self) -> &'static str {
        kind(&self.inode.kind)
    }

    /// Returns the first path of an inode that has several.
    pub const fn first_name(&self) -> Option<&'a [u8]> {
        self.group
    }

    /// Returns the content of a regular file.
    pub const fn content(&self) -> Option<&'a Content> {
        match &self.inode.kind {
            Kind::Leaf(Leaf::File(content)) => Some(content),
            _ => None,
        }
    }

    /// Returns the target of a symbolic link.
    pub fn target(&self) -> Option<&'a [u8]> {
        match &self.inode.kind {
            Kind::Leaf(Leaf::Symlink(target)) => Some(target),
            _ => None,
        }
    }

    /// Returns the numbers of a device.
    pub const fn device(&self) -> Option<(u32, u32)> {
        match &self.inode.kind {
            Kind::Leaf(Leaf::CharDevice(major, minor) | Leaf::BlockDevice(major, minor)) => {
                Some((*major, *minor))
            }
            _ => None,
        }
    }
}

const fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Directory(_) => "directory",
        Kind::Leaf(Leaf::File(_)) => "file",
        Kind::Leaf(Leaf::Symlink(_)) => "symlink",
        Kind::Leaf(Leaf::CharDevice(..)) => "char-device",
        Kind::Leaf(Leaf::BlockDevice(..)) => "block-device",
        Kind::Leaf(Leaf::Fifo) => "fifo",
    }
}
