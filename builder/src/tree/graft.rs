//! Putting one tree into another.

use super::{InodeId, Kind, Origin, Tree};

impl Tree {
    /// Gives every inode this origin.
    #[must_use]
    pub(crate) fn with_origin(mut self, origin: Origin) -> Self {
        self.inodes.iter_mut().for_each(|inode| inode.origin = origin);
        self
    }

    /// Puts all of `other` under a name in a directory, in the place of what had it. Names that
    /// shared an inode in `other` share one here.
    pub(crate) fn graft(&mut self, directory: InodeId, name: &[u8], other: &Self) {
        let offset = u32::try_from(self.inodes.len()).unwrap_or(u32::MAX);
        let moved = other.inodes.iter().cloned().map(|mut inode| {
            if let Kind::Directory(names) = &mut inode.kind {
                names.values_mut().for_each(|child| child.0 += offset);
            }
            inode
        });
        self.inodes.extend(moved);
        self.link(directory, name, InodeId(offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Inode, Leaf, Meta};

    #[test]
    fn hard_links_stay_hard_links() {
        let mut inner = Tree::default();
        let fifo = Inode::leaf(Meta::root_owned(0o600), Leaf::Fifo);
        let fifo = inner.add(fifo);
        inner.link(Tree::ROOT, b"one", fifo);
        inner.link(Tree::ROOT, b"two", fifo);
        let mut outer = Tree::default();
        outer.ensure_directory(Tree::ROOT, b"other");
        outer.graft(Tree::ROOT, b"inner", &inner);
        let grafted = outer.child(Tree::ROOT, b"inner").unwrap();
        let one = outer.child(grafted, b"one");
        assert!(one.is_some());
        assert_eq!(one, outer.child(grafted, b"two"));
    }
}
