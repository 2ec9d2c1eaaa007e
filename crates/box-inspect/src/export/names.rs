//! Which of an inode's names comes first.

use std::collections::{HashMap, HashSet};

use box_tree::{InodeId, Tree, entries};

/// The first name, in the order of the tree digest, of every inode that has several.
#[derive(Debug)]
pub(super) struct FirstNames(HashMap<InodeId, Vec<u8>>);

impl FirstNames {
    /// Finds them.
    pub(super) fn of(tree: &Tree) -> Self {
        let mut seen = HashSet::new();
        let again = entries(tree).filter(|(_, id)| !seen.insert(*id));
        let several: HashSet<_> = again.map(|(_, id)| id).collect();
        let mut first = HashMap::new();
        for (path, id) in entries(tree).filter(|(_, id)| several.contains(id)) {
            first.entry(id).or_insert(path);
        }
        Self(first)
    }

    /// Returns the first name of the inode at a path, where this is a further one.
    pub(super) fn before(&self, path: &[u8], id: InodeId) -> Option<&[u8]> {
        self.0.get(&id).map(Vec::as_slice).filter(|first| *first != path)
    }
}
