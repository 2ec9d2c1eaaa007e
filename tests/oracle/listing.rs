//! The listing that is compared: all that can be said of each path of a tree.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use box_digest::Blake3Digest;

/// The entries of a tree by their absolute paths; `/` is the root.
pub(crate) type Listing = BTreeMap<Vec<u8>, Entry>;

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Symlink,
    CharDevice,
    BlockDevice,
    Fifo,
    /// A type that no layer can hold.
    Other,
}

/// All that is compared of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Of a file; 0 for anything else.
    pub(crate) size: u64,
    /// Of a symbolic link; empty for anything else.
    pub(crate) target: Vec<u8>,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Major and minor number of a device; zeros for anything else.
    pub(crate) device: (u32, u32),
    /// Of a file's content.
    pub(crate) content: Option<Blake3Digest>,
    /// The first path of the same inode: names of one inode have it in common.
    pub(crate) first_name: Vec<u8>,
}

/// Gives each entry the first name of its inode, as `inode` tells them apart; directories have one
/// name each.
pub(crate) fn with_first_names<I: Hash + Eq>(entries: BTreeMap<Vec<u8>, (Entry, I)>) -> Listing {
    let mut first = HashMap::new();
    let name = |(path, (mut entry, inode)): (Vec<u8>, (Entry, I))| {
        entry.first_name = first.entry(inode).or_insert_with(|| path.clone()).clone();
        (path, entry)
    };
    entries.into_iter().map(name).collect()
}
