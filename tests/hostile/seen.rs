//! Lists a tree in the format of `testkit::hostile`.

use std::collections::HashMap;

use testkit::hostile::{Entry, Node};

// `oci-layer`'s unit tests include this file, too, so it imports the crate by an alias that both define.
use super::tree::{InodeId, Kind, Leaf, Meta, Tree, entries};

/// Returns one line for each entry of a tree except the root, sorted by path.
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

/// Returns a leaf in the corpus's format, with a file's hash instead of its content.
fn of_leaf(leaf: &Leaf) -> Node {
    match leaf {
        Leaf::File(content) => Node::File(content.hash.as_bytes().to_vec()),
        Leaf::Symlink(target) => Node::Symlink(target.clone()),
        Leaf::CharDevice(major, minor) => Node::Char(*major, *minor),
        Leaf::BlockDevice(major, minor) => Node::Block(*major, *minor),
        Leaf::Fifo => Node::Fifo,
    }
}
