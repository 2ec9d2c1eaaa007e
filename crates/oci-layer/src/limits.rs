//! Two measures of a layer. `cost` is the size of its index, which [`Limits::index_bytes`](super::Limits::index_bytes) bounds.
//! `memory` estimates the memory of its entries in the tree, which `box_tree::memory::MAX_LAYERS` bounds for all layers of a
//! build together.

use box_contract::rules::PATH_MAX;
use box_tree::encoding::XATTR_BYTES;
use box_tree::{Leaf, memory};

use super::{Action, Change, LayerIndex};

/// Bounds on one layer. Real images stay far below the defaults.
///
/// The index of a layer, at the bounds of `entries` and `index_bytes`, takes less than 200 MiB.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of entries.
    pub entries: usize,
    /// The maximum size of the uncompressed archive, in bytes, independent of the blob's size.
    pub archive_bytes: u64,
    /// The uncompressed size that even a small blob may have, in bytes.
    pub small_archive_bytes: u64,
    /// The maximum ratio of the uncompressed size to the blob's size, beyond `small_archive_bytes`.
    /// Programs have a ratio of 2 to 5, logs of 20, zeros of 1000 (gzip) and more (zstd).
    pub growth: u64,
    /// The maximum length of a path, in bytes (`PATH_MAX` of Linux).
    pub path_bytes: usize,
    /// The maximum number of names in a path.
    pub depth: usize,
    /// The maximum size of the extended attributes of one entry, in bytes (Linux allows 64 KiB for one value).
    pub xattr_bytes: usize,
    /// The maximum size of the extended header of one entry, in bytes.
    pub header_bytes: usize,
    /// The maximum size of all paths, targets and extended attributes, in bytes, with a constant for each entry.
    pub index_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 400_000,
            archive_bytes: 64 << 30,
            small_archive_bytes: 512 << 20,
            growth: 100,
            path_bytes: PATH_MAX,
            depth: 256,
            xattr_bytes: XATTR_BYTES,
            header_bytes: 1 << 20,
            index_bytes: 96 << 20,
        }
    }
}

impl Limits {
    /// Returns the limits of a layer whose blob has this many bytes.
    pub(super) fn of_blob(&self, size: u64) -> Self {
        let grown = size.saturating_mul(self.growth).max(self.small_archive_bytes);
        Self { archive_bytes: self.archive_bytes.min(grown), ..*self }
    }
}

/// The cost of an entry beyond its bytes.
const ENTRY_BYTES: usize = 128;

impl Change {
    /// Returns the cost of the change: the bytes of its path, target and attributes, and a constant.
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

impl Action {
    /// Returns the memory of the action, in bytes. The memory of a directory in the tree is added when the directory is made,
    /// because several layers may contain an entry for it.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Directory(meta) => memory::directory_entry(meta),
            Self::Leaf(meta, leaf) => memory::leaf(meta, leaf),
            Self::HardLink(target) => memory::NAME + target.len(),
            Self::Whiteout | Self::Opaque => memory::NAME,
        }
    }
}

/// The number of bytes of a name that [`memory::LEAF`] and [`memory::NAME`] include.
const NAME_INCLUDED: usize = 40;

/// Returns the bytes of memory that a long name takes in addition to its path: the tree, its listing and the writer of the rootfs
/// each have it.
pub(super) const fn name_memory(name: &[u8]) -> usize {
    2 * name.len().saturating_sub(NAME_INCLUDED)
}

impl LayerIndex {
    /// Returns the cost of the index, which [`Limits::index_bytes`](super::Limits::index_bytes) limits.
    pub fn cost(&self) -> usize {
        self.changes.iter().map(Change::cost).sum()
    }
}

#[cfg(test)]
mod tests {
    use box_tree::Meta;

    use super::*;

    #[test]
    fn an_archive_may_grow_with_its_blob() {
        let allowed = |size| Limits::default().of_blob(size).archive_bytes;
        assert_eq!(allowed(0), 512 << 20);
        assert_eq!(allowed(5 << 20), 512 << 20);
        assert_eq!(allowed(6 << 20), 600 << 20);
        assert_eq!(allowed(1 << 30), 64 << 30);
        assert_eq!(allowed(u64::MAX), 64 << 30);
    }

    #[test]
    fn everything_that_an_archive_yields_is_counted() {
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
