//! The tree digest: BLAKE3 over the canonical form of every entry.
//!
//! The canonical form lists the entries depth first, a directory before what is in it, names in
//! bytewise order. Numbers are little-endian; a byte string is its length (u32) and its bytes.
//! Each entry is
//!
//! ```text
//! path        byte string, absolute ("/" is the root)
//! type        u8: d f l c b p, or h for a further name of an inode
//! h:          index (u32) of the entry that the inode was first listed at; nothing more
//! otherwise:  mode u16, uid u32, gid u32, mtime i64, mtime_nsec u32,
//!             number of xattrs u32, then each one's name and value as byte strings, by name
//! f:          size u64, BLAKE3 of the content (32 bytes)
//! l:          target, byte string
//! c, b:       major u32, minor u32
//! ```
//!
//! and the digest is `BLAKE3("boxbuild tree 1" ‖ entries)`. It does not depend on the format of the
//! image that the tree is baked into.

use std::collections::HashMap;
use std::fmt;

use super::{Inode, InodeId, Kind, Leaf, Meta, Tree};

/// The version of the canonical form.
pub const TREE_EPOCH: u32 = 1;

/// BLAKE3 over a tree's canonical form, written `blake3:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TreeDigest([u8; 32]);

impl TreeDigest {
    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", box_image::digest::hex(&self.0))
    }
}

impl fmt::Debug for TreeDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Tree {
    /// Returns the tree digest.
    pub fn digest(&self) -> TreeDigest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("boxbuild tree {TREE_EPOCH}").as_bytes());
        let mut first = HashMap::new();
        let mut record = Vec::new();
        for (index, (path, id)) in (0u32..).zip(entries(self)) {
            record.clear();
            put_bytes(&mut record, &path);
            match first.get(&id) {
                Some(first) => put_further_name(&mut record, *first),
                None => put_inode(&mut record, self.inode(id)),
            }
            first.entry(id).or_insert(index);
            hasher.update(&record);
        }
        TreeDigest(*hasher.finalize().as_bytes())
    }
}

/// Lists every name of a tree in the canonical order, with its absolute path.
pub fn entries(tree: &Tree) -> impl Iterator<Item = (Vec<u8>, InodeId)> + '_ {
    let mut root = Some(Tree::ROOT);
    let mut path = Vec::new();
    // The directories that are open: the length of each one's path, and its names to come.
    let mut open = Vec::new();
    std::iter::from_fn(move || {
        if let Some(id) = root.take() {
            open.extend(tree.inode(id).names().map(|names| (0, names.iter())));
            return Some((b"/".to_vec(), id));
        }
        loop {
            let (length, names) = open.last_mut()?;
            path.truncate(*length);
            let Some((name, id)) = names.next() else {
                open.pop();
                continue;
            };
            path.push(b'/');
            path.extend_from_slice(name);
            open.extend(tree.inode(*id).names().map(|names| (path.len(), names.iter())));
            return Some((path.clone(), *id));
        }
    })
}

fn put_bytes(record: &mut Vec<u8>, bytes: &[u8]) {
    // Nothing in a tree is near 4 GiB: paths, names and attributes are bounded when read.
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    record.extend_from_slice(&length.to_le_bytes());
    record.extend_from_slice(bytes);
}

fn put_further_name(record: &mut Vec<u8>, first: u32) {
    record.push(b'h');
    record.extend_from_slice(&first.to_le_bytes());
}

fn put_inode(record: &mut Vec<u8>, inode: &Inode) {
    match &inode.kind {
        Kind::Directory(_) => put_meta(record, b'd', &inode.meta),
        Kind::Leaf(leaf) => put_leaf(record, leaf, &inode.meta),
    }
}

fn put_leaf(record: &mut Vec<u8>, leaf: &Leaf, meta: &Meta) {
    match leaf {
        Leaf::File(content) => {
            put_meta(record, b'f', meta);
            record.extend_from_slice(&content.size.to_le_bytes());
            record.extend_from_slice(&content.hash);
        }
        Leaf::Symlink(target) => {
            put_meta(record, b'l', meta);
            put_bytes(record, target);
        }
        Leaf::CharDevice(major, minor) => put_device(record, b'c', meta, *major, *minor),
        Leaf::BlockDevice(major, minor) => put_device(record, b'b', meta, *major, *minor),
        Leaf::Fifo => put_meta(record, b'p', meta),
    }
}

fn put_device(record: &mut Vec<u8>, kind: u8, meta: &Meta, major: u32, minor: u32) {
    put_meta(record, kind, meta);
    record.extend_from_slice(&major.to_le_bytes());
    record.extend_from_slice(&minor.to_le_bytes());
}

fn put_meta(record: &mut Vec<u8>, kind: u8, meta: &Meta) {
    record.push(kind);
    record.extend_from_slice(&meta.mode.to_le_bytes());
    record.extend_from_slice(&meta.uid.to_le_bytes());
    record.extend_from_slice(&meta.gid.to_le_bytes());
    record.extend_from_slice(&meta.mtime.to_le_bytes());
    record.extend_from_slice(&meta.mtime_nsec.to_le_bytes());
    let xattrs = u32::try_from(meta.xattrs.len()).unwrap_or(u32::MAX);
    record.extend_from_slice(&xattrs.to_le_bytes());
    for (name, value) in &meta.xattrs {
        put_bytes(record, name);
        put_bytes(record, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Content;

    fn sample() -> Tree {
        let mut tree = Tree::default();
        let etc = tree.ensure_directory(Tree::ROOT, b"etc");
        let leaf = Leaf::File(Content::of(b"root\n"));
        let file = tree.add(Inode::leaf(Meta::root_owned(0o644), leaf));
        tree.link(etc, b"passwd", file);
        tree.link(Tree::ROOT, b"also", file);
        tree
    }

    #[test]
    fn the_canonical_form_is_pinned() {
        assert_eq!(
            sample().digest().to_string(),
            "blake3:a39bbbc2b651866913a826442a7cabc2988b1d8eed44e201236ce43b4ed4d4ad",
            "the digest of a tree of epoch {TREE_EPOCH} must never change"
        );
    }

    #[test]
    fn every_field_counts() {
        let base = sample().digest();
        let changes: [fn(&mut Meta); 6] = [
            |meta| meta.mode = 0o600,
            |meta| meta.uid = 1,
            |meta| meta.gid = 1,
            |meta| meta.mtime = 1,
            |meta| meta.mtime_nsec = 1,
            |meta| drop(meta.xattrs.insert(b"user.a".to_vec(), b"b".to_vec())),
        ];
        for change in changes {
            let mut tree = sample();
            let etc = tree.child(Tree::ROOT, b"etc").unwrap();
            change(&mut tree.inode_mut(etc).meta);
            assert_ne!(tree.digest(), base);
        }
    }

    #[test]
    fn a_copy_is_not_a_hard_link() {
        let mut tree = sample();
        let file = tree.child(Tree::ROOT, b"also").unwrap();
        let copy = tree.add(tree.inode(file).clone());
        tree.link(Tree::ROOT, b"also", copy);
        assert_ne!(tree.digest(), sample().digest());
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let tree = sample();
        let paths: Vec<_> = entries(&tree).map(|(path, _)| path).collect();
        assert_eq!(
            paths,
            [b"/".to_vec(), b"/also".to_vec(), b"/etc".to_vec(), b"/etc/passwd".to_vec()]
        );
    }
}
