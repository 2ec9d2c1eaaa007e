//! How many entries are below each directory of a tree.

use std::collections::{BTreeMap, HashMap};

use box_tree::{InodeId, Tree};

/// How many names are below each directory of a tree, counted once for all: directories that lie in each other would
/// else be counted again and again.
pub(super) struct Below(HashMap<InodeId, usize>);

impl Below {
    /// Counts them.
    pub(super) fn of(tree: &Tree) -> Self {
        let names = |id| tree.inode(id).names().into_iter().flat_map(BTreeMap::values).copied();
        let is_directory = |id: &InodeId| tree.inode(*id).names().is_some();
        // Each directory comes before those in it.
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

    /// Returns how many names are below an inode.
    pub(super) fn count(&self, id: InodeId) -> usize {
        self.0.get(&id).copied().unwrap_or_default()
    }

    /// Returns how many names the tree has, the root included.
    pub(super) fn entries(&self) -> usize {
        1 + self.count(Tree::ROOT)
    }
}
