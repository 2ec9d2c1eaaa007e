//! Counts the entries below each directory of a tree.

use std::collections::{BTreeMap, HashMap};

use box_tree::{InodeId, Tree};

/// The number of names below each directory of a tree. One pass counts all directories, because a pass for each would
/// count nested directories again and again.
pub(super) struct Below(HashMap<InodeId, usize>);

impl Below {
    /// Counts the names of `tree`.
    pub(super) fn of(tree: &Tree) -> Self {
        let names = |id| tree.inode(id).names().into_iter().flat_map(BTreeMap::values).copied();
        let is_directory = |id: &InodeId| tree.inode(*id).names().is_some();
        // In `directories`, a parent precedes its children.
        let (mut directories, mut next) = (vec![Tree::ROOT], 0);
        while let Some(directory) = directories.get(next) {
            directories.extend(names(*directory).filter(is_directory).collect::<Vec<_>>());
            next += 1;
        }
        let mut below = Self(HashMap::with_capacity(directories.len()));
        for directory in directories.into_iter().rev() {
            let count = names(directory).map(|id| 1 + below.count(id)).sum();
            below.0.insert(directory, count);
        }
        below
    }

    /// Returns the number of names below an inode.
    pub(super) fn count(&self, id: InodeId) -> usize {
        self.0.get(&id).copied().unwrap_or_default()
    }

    /// Returns the number of names in the tree, including the root.
    pub(super) fn entries(&self) -> usize {
        1 + self.count(Tree::ROOT)
    }
}
