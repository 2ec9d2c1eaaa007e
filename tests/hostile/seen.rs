//! A tree in the words of the corpus.

use std::collections::HashMap;

use testkit::hostile::{Entry, Node};

// The builder's own tests have this file, too, and call their crate by another name.
use super::tree::{InodeId, Kind, Leaf, Meta, Tree, entries};

/// Lists a tree but its root: one line for each entry, sorted by the paths.
pub(crate) fn of_tree(tree: &Tree) -> Vec<String> {
    let mut all: Vec<(Vec<u8>, InodeId)> = entries(tree).skip(1).collect();
    for (path, _) in &mut all {
        path.remove(0); // the slash
    }
    all.sort();
    let mut first: HashMap<InodeId, Vec<u8>> = HashMap::new();
    let mut lines = Vec::new();
    for (path, id) in all {
        let inode = tree.inode(id);
        let node = match (&inode.kind, first.get(&id)) {
            (Kind::Leaf(_), Some(first)) => Node::Same(first.clone()),
            (Kind::Leaf(leaf), None) => of_leaf(leaf),
            (Kind::Directory(_), _) => Node::Directory,
        };
        first.entry(id).or_insert_with(|| path.clone());
        lines.push(entry(path, node, &inode.meta).to_string());
    }
    lines
}

fn entry(path: Vec<u8>, node: Node, meta: &Meta) -> Entry {
    let xattrs = meta.xattrs.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (mode, owner, mtime) = (meta.mode, (meta.uid, meta.gid), meta.mtime);
    Entry { path, node, mode, owner, mtime, xattrs }
}

/// Returns what a leaf is; a file's content is told by its hash.
fn of_leaf(leaf: &Leaf) -> Node {
    match leaf {
        Leaf::File(content) => Node::File(content.hash.as_bytes().to_vec()),
        Leaf::Symlink(target) => Node::Symlink(target.clone()),
        Leaf::CharDevice(major, minor) => Node::Char(*major, *minor),
        Leaf::BlockDevice(major, minor) => Node::Block(*major, *minor),
        Leaf::Fifo => Node::Fifo,
    }
}
