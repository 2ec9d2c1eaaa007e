//! The tree as an EROFS image.

use std::collections::HashMap;

use erofs_writer::{ImageBuilder, Node, NodeId};

use crate::{Inode, InodeId, Kind, Leaf, Meta, Origin, Tree, entries};

/// Returns an image builder with the inodes of a tree; [`ImageBuilder::write`] writes the file system. Inodes that are
/// not from an OCI image are put last, because skills and files of the checkout change more often than images.
///
/// # Errors
/// The writer's error if EROFS cannot represent the tree.
pub fn image_builder(tree: &Tree) -> Result<ImageBuilder, erofs_writer::Error> {
    let mut image = ImageBuilder::new(meta(&tree.inode(Tree::ROOT).meta))?;
    let mut nodes = HashMap::from([(Tree::ROOT, image.root())]);
    for (_, id) in entries(tree) {
        let parent = nodes[&id];
        for (name, child) in tree.inode(id).names().into_iter().flatten() {
            let node = node_of(&mut image, &mut nodes, *child, tree.inode(*child))?;
            image.link(parent, name, node)?;
        }
    }
    Ok(image)
}

/// Adds an inode at its first name. A further name is a hard link.
fn node_of(
    image: &mut ImageBuilder,
    nodes: &mut HashMap<InodeId, NodeId>,
    id: InodeId,
    inode: &Inode,
) -> Result<NodeId, erofs_writer::Error> {
    if let Some(node) = nodes.get(&id) {
        return Ok(*node);
    }
    let node = image.add(meta(&inode.meta), node(&inode.kind))?;
    if is_last(inode.origin) {
        image.put_last(node)?;
    }
    nodes.insert(id, node);
    Ok(node)
}

/// Returns whether an inode of this origin is put last. Directories that the builder makes on the path to a file are
/// not: they have no data and are the same for each version of a skill.
const fn is_last(origin: Origin) -> bool {
    match origin {
        Origin::Init | Origin::Program | Origin::Skill(_) | Origin::File(_) => true,
        Origin::Generated | Origin::Layer(..) | Origin::Merged => false,
    }
}

fn meta(meta: &Meta) -> erofs_writer::Meta {
    erofs_writer::Meta {
        mode: meta.mode,
        uid: meta.uid,
        gid: meta.gid,
        mtime: meta.mtime,
        mtime_nsec: meta.mtime_nsec,
        xattrs: meta.xattrs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
    }
}

fn node(kind: &Kind) -> Node {
    match kind {
        Kind::Directory(_) => Node::Directory,
        Kind::Leaf(Leaf::File(content)) => Node::File { size: content.size, content: content.hash },
        Kind::Leaf(Leaf::Symlink(target)) => Node::Symlink { target: target.clone() },
        Kind::Leaf(Leaf::CharDevice(major, minor)) => {
            Node::CharDevice { major: *major, minor: *minor }
        }
        Kind::Leaf(Leaf::BlockDevice(major, minor)) => {
            Node::BlockDevice { major: *major, minor: *minor }
        }
        Kind::Leaf(Leaf::Fifo) => Node::Fifo,
    }
}
