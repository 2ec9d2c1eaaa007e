//! The tree digest: BLAKE3 over the canonical form of every entry.
//!
//! The canonical form lists the entries depth first, a directory before its entries, names in bytewise order. Each
//! entry is its absolute path ("/" is the root) as a byte string, followed by the entry as in
//! [`encoding`](crate::encoding). The digest is `BLAKE3("boxbuild tree 2" ‖ entries)`. It does not depend on the format
//! of the file system that is made of the tree.

use std::collections::{HashMap, btree_map};

use box_digest::{Blake3Digest, Hasher};

use super::{InodeId, Name, Tree};
use crate::encoding::Writer;

/// The version of the canonical form.
pub const TREE_EPOCH: u32 = 2;

impl Tree {
    /// Returns the tree digest: BLAKE3 over the canonical form.
    pub fn digest(&self) -> Blake3Digest {
        let mut hasher = Hasher::default();
        hasher.update(format!("boxbuild tree {TREE_EPOCH}").as_bytes());
        let mut first = HashMap::new();
        let mut record = Writer::default();
        let (mut names, mut index) = (Names::new(self), 0u32);
        while let Some((path, id)) = names.next() {
            record.0.clear();
            record.bytes(path);
            record.entry(self.inode(id), first.get(&id).copied());
            first.entry(id).or_insert(index);
            hasher.update(&record.0);
            index += 1;
        }
        hasher.digest()
    }
}

/// Lists every name of a tree in the canonical order, with its absolute path.
///
/// Each path is a copy, and paths can be a thousand times as long as the names in the tree. Use [`Names`] to visit many
/// of them without copies.
pub fn entries(tree: &Tree) -> impl Iterator<Item = (Vec<u8>, InodeId)> + '_ {
    let mut names = Names::new(tree);
    std::iter::from_fn(move || names.next().map(|(path, id)| (path.to_vec(), id)))
}

/// Visits every name of a tree in the canonical order. A returned path is borrowed until the next call.
#[derive(Debug)]
pub struct Names<'t> {
    tree: &'t Tree,
    /// Whether the next name is the root.
    at_root: bool,
    path: Vec<u8>,
    /// The directories on the current path: the length of the path of each, and its remaining names.
    open: Vec<(usize, btree_map::Iter<'t, Name, InodeId>)>,
}

impl<'t> Names<'t> {
    /// Starts at the root of a tree.
    pub const fn new(tree: &'t Tree) -> Self {
        Self { tree, at_root: true, path: Vec::new(), open: Vec::new() }
    }

    /// Returns the next name: its absolute path and its inode.
    #[allow(clippy::should_implement_trait, reason = "an iterator cannot lend")]
    pub fn next(&mut self) -> Option<(&[u8], InodeId)> {
        if self.at_root {
            self.at_root = false;
            self.enter(Tree::ROOT);
            return Some((b"/", Tree::ROOT));
        }
        let (name, id) = loop {
            let (length, names) = self.open.last_mut()?;
            self.path.truncate(*length);
            match names.next() {
                Some((name, id)) => break (name, *id),
                None => drop(self.open.pop()),
            }
        };
        self.path.push(b'/');
        self.path.extend_from_slice(name);
        self.enter(id);
        Some((&self.path, id))
    }

    /// Continues with the names in a directory.
    fn enter(&mut self, id: InodeId) {
        let names = self.tree.inode(id).names();
        self.open.extend(names.map(|names| (self.path.len(), names.iter())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Inode, Leaf, Meta};

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
            "blake3:8046a87d507c3f895c9c81455f140596e27d860a6b21800febbdcf3b992a06bd",
            "the digest of a tree of epoch {TREE_EPOCH} must never change"
        );
    }

    #[test]
    fn every_field_changes_the_digest() {
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
