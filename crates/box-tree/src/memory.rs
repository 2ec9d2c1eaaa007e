//! Estimates the memory of entries, to limit layers and listings, which are untrusted.

use super::{Inode, Kind, Leaf, Meta};

/// The maximum memory of the entries of all layers of a build, in bytes, with the directories that have no entry. 900,000
/// files take this much, or 400,000 directories.
pub const MAX_LAYERS: usize = 320 << 20;

/// The peak memory of an entry, in bytes, from the decoded layer to the written rootfs. A million empty files take 440
/// bytes each at the peak of a build, including its programs and buffers.
pub const LEAF: usize = 340;
/// The memory of the record of a content's offset, in bytes, which is kept until the content is written.
pub const CONTENT: usize = 128;
/// The memory of a directory of a tree, in bytes: a block of names, and another block in the image that is written.
pub const DIRECTORY: usize = 760;
/// The memory of a further name of an inode, or of a whiteout, in bytes.
pub const NAME: usize = 240;
/// The memory of an inode's extended attributes in addition to [`Meta::xattrs_cost`], in bytes: the first attribute
/// allocates a block for eleven.
const ATTRIBUTES: usize = 640;

/// Returns the memory of an inode that is not a directory.
pub fn leaf(meta: &Meta, leaf: &Leaf) -> usize {
    let more = match leaf {
        Leaf::Symlink(target) => 2 * target.len(),
        Leaf::File(content) if content.size > 0 => CONTENT,
        _ => 0,
    };
    LEAF + attributes(meta) + more
}

/// Returns the memory of a directory as an entry of a layer. [`directories`] returns its memory in a tree.
pub fn directory_entry(meta: &Meta) -> usize {
    LEAF + attributes(meta)
}

/// Returns the memory of extended attributes.
pub fn attributes(meta: &Meta) -> usize {
    if meta.xattrs.is_empty() { 0 } else { ATTRIBUTES + 2 * meta.xattrs_cost() }
}

/// Returns the memory of `count` directories of a tree, without their extended attributes.
pub const fn directories(count: usize) -> usize {
    count.saturating_mul(DIRECTORY)
}

/// Returns the memory of an inode in a tree.
pub(crate) fn inode(inode: &Inode) -> usize {
    match &inode.kind {
        Kind::Directory(_) => directories(1) + attributes(&inode.meta),
        Kind::Leaf(it) => leaf(&inode.meta, it),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;

    #[test]
    fn all_that_an_inode_has_is_counted() {
        let plain = Meta::root_owned(0o755);
        let mut dressed = plain.clone();
        dressed.xattrs.insert(b"user.a".to_vec(), vec![0; 1000]);
        let link = Leaf::Symlink(vec![b't'; 30]);
        for (found, expected) in [
            (inode(&Inode::directory(plain.clone())), 760),
            (inode(&Inode::directory(dressed.clone())), 760 + 640 + 2 * 1070),
            (inode(&Inode::leaf(plain.clone(), Leaf::Fifo)), 340),
            (inode(&Inode::leaf(plain.clone(), Leaf::File(Content::of(b"")))), 340),
            (inode(&Inode::leaf(plain, Leaf::File(Content::of(b"x")))), 340 + 128),
            (inode(&Inode::leaf(dressed, link)), 340 + 640 + 2 * 1070 + 2 * 30),
        ] {
            assert_eq!(found, expected);
        }
    }
}
