//! The tree digest: BLAKE3 over the canonical form of every entry.
//!
//! The canonical form lists the entries depth first, a directory before what is in it, names in
//! bytewise order: each entry's absolute path ("/" is the root) as a byte string, then the entry as in
//! [`encoding`](crate::encoding). The digest is `BLAKE3("boxbuild tree 2" ‖ entries)`. It does not depend
//! on the format of the image that the tree is baked into.

use std::collections::HashMap;

use box_digest::{Blake3Digest, Hasher};

use super::{InodeId, Tree};
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
        for (index, (path, id)) in (0u32..).zip(entries(self)) {
            record.0.clear();
            record.bytes(&path);
            record.entry(self.inode(id), first.get(&id).copied());
            first.entry(id).or_insert(index);
            hasher.update(&record.0);
        }
        hasher.digest()
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
