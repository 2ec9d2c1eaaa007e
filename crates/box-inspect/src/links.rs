//! Inodes with several names.

use std::collections::HashMap;

use box_tree::InodeId;

/// Of each inode with several names: how many, and the first in the canonical order.
#[derive(Debug)]
pub(crate) struct HardLinks(pub(crate) HashMap<InodeId, (usize, Vec<u8>)>);

impl HardLinks {
    /// Finds them among names in the canonical order.
    pub(crate) fn of(names: impl Iterator<Item = (Vec<u8>, InodeId)>) -> Self {
        let mut named = HashMap::new();
        for (path, id) in names {
            named.entry(id).or_insert((0, path)).0 += 1;
        }
        named.retain(|_, (count, _)| *count > 1);
        Self(named)
    }

    /// Returns the first name of the inode at a path, where this is a further one.
    pub(crate) fn before(&self, path: &[u8], id: InodeId) -> Option<&[u8]> {
        self.0.get(&id).map(|(_, first)| first.as_slice()).filter(|first| *first != path)
    }
}
