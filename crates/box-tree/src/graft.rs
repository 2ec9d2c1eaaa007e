//! Adds a tree to another tree.

use std::collections::HashMap;

use super::{Inode, InodeId, Kind, Origin, Tree};

impl Tree {
    /// Gives every inode this origin.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.inodes.iter_mut().for_each(|inode| inode.origin = origin);
        self
    }

    /// Links the root of `other` under a name in a directory, replacing an entry of that name. Hard
    /// links within `other` are kept.
    pub fn graft(&mut self, directory: InodeId, name: &[u8], other: Self) {
        let known = HashMap::new();
        let root = self.absorb_inodes(other.inodes.into_iter(), &known).now(Self::ROOT);
        self.link(directory, name, root);
    }

    /// Adds the inodes of `other` to this tree, without a name for its root. `known` maps inodes of
    /// `other` to the inodes of this tree that replace them.
    pub fn absorb<'k>(
        &mut self,
        other: &Self,
        known: &'k HashMap<InodeId, InodeId>,
    ) -> Absorbed<'k> {
        self.absorb_inodes(other.inodes.iter().cloned(), known)
    }

    fn absorb_inodes<'k>(
        &mut self,
        inodes: impl ExactSizeIterator<Item = Inode>,
        known: &'k HashMap<InodeId, InodeId>,
    ) -> Absorbed<'k> {
        let offset = u32::try_from(self.inodes.len()).unwrap_or(u32::MAX);
        let absorbed = Absorbed { offset, known };
        let moved = inodes.map(|mut inode| {
            if let Kind::Directory(names) = &mut inode.kind {
                names.values_mut().for_each(|child| *child = absorbed.now(*child));
            }
            inode
        });
        self.inodes.extend(moved);
        absorbed
    }
}

/// Maps the inodes of an absorbed tree to their new numbers.
#[derive(Debug)]
pub struct Absorbed<'k> {
    offset: u32,
    known: &'k HashMap<InodeId, InodeId>,
}

impl Absorbed<'_> {
    /// Returns the new number of an inode of the absorbed tree.
    pub fn now(&self, inode: InodeId) -> InodeId {
        let moved = || InodeId(inode.0.saturating_add(self.offset));
        self.known.get(&inode).copied().unwrap_or_else(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Leaf, Meta};

    #[test]
    fn hard_links_stay_hard_links() {
        let mut inner = Tree::default();
        let fifo = Inode::leaf(Meta::root_owned(0o600), Leaf::Fifo);
        let fifo = inner.add(fifo);
        inner.link(Tree::ROOT, b"one", fifo);
        inner.link(Tree::ROOT, b"two", fifo);
        let mut outer = Tree::default();
        outer.ensure_directory(Tree::ROOT, b"other");
        outer.graft(Tree::ROOT, b"inner", inner);
        let grafted = outer.child(Tree::ROOT, b"inner").unwrap();
        let one = outer.child(grafted, b"one");
        assert!(one.is_some());
        assert_eq!(one, outer.child(grafted, b"two"));
    }
}
