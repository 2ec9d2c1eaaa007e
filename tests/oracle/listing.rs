//! The listing of a tree for the comparison: type, metadata and content of each path.

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
    /// A type that a layer cannot contain, such as a socket.
    Other,
}

/// The fields of an entry that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// The size of a file; 0 for other types.
    pub(crate) size: u64,
    /// The target of a symbolic link; empty for other types.
    pub(crate) target: Vec<u8>,
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The major and minor number of a device; zeros for other types.
    pub(crate) device: (u32, u32),
    /// The digest of a file's content.
    pub(crate) content: Option<Blake3Digest>,
    /// The first path of the entry's inode. All hard links to an inode have the same.
    pub(crate) first_name: Vec<u8>,
}

/// Sets each entry's `first_name` to the first path with the same inode `I`.
pub(crate) fn with_first_names<I: Hash + Eq>(entries: BTreeMap<Vec<u8>, (Entry, I)>) -> Listing {
    let mut first = HashMap::new();
    let name = |(path, (mut entry, inode)): (Vec<u8>, (Entry, I))| {
        entry.first_name = first.entry(inode).or_insert_with(|| path.clone()).clone();
        (path, entry)
    };
    entries.into_iter().map(name).collect()
}
