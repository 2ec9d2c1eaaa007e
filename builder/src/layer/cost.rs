//! What the index of a layer takes in memory, roughly.

use super::{Action, Change, LayerIndex};
use crate::tree::Leaf;

/// What an entry takes beyond its bytes.
const ENTRY_BYTES: usize = 128;

impl Change {
    /// Returns what the change takes: the bytes of its path, target and attributes, and a little.
    pub(super) fn cost(&self) -> usize {
        let action = match &self.action {
            Action::Directory(meta) => meta.xattrs_cost(),
            Action::Leaf(meta, Leaf::Symlink(target)) => meta.xattrs_cost() + target.len(),
            Action::Leaf(meta, _) => meta.xattrs_cost(),
            Action::HardLink(target) => target.len(),
            Action::Whiteout | Action::Opaque => 0,
        };
        self.path.len() + action + ENTRY_BYTES
    }
}

impl LayerIndex {
    /// Returns what [`Limits::index_bytes`](super::Limits::index_bytes) bounds.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Meta;

    #[test]
    fn all_that_an_archive_gives_counts() {
        let mut meta = Meta::root_owned(0o755);
        meta.xattrs.insert(b"user.a".to_vec(), vec![0; 1000]);
        let link = Leaf::Symlink(vec![b't'; 30]);
        let costs = [
            (Action::Opaque, 0),
            (Action::Whiteout, 0),
            (Action::HardLink(vec![b't'; 20]), 20),
            (Action::Directory(meta.clone()), 1070),
            (Action::Leaf(meta.clone(), link), 1100),
            (Action::Leaf(meta, Leaf::Fifo), 1070),
        ];
        let mut index = LayerIndex::default();
        let mut expected = 0;
        for (action, cost) in costs {
            let change = Change { path: b"four".to_vec(), action };
            assert_eq!(change.cost(), 4 + cost + ENTRY_BYTES, "{change:?}");
            expected += 4 + cost + ENTRY_BYTES;
            index.changes.push(change);
        }
        assert_eq!(index.cost(), expected);
    }
}
