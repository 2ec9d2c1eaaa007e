//! The order of inodes in the image.

use crate::Error;
use crate::error::printable;
use crate::tree::{Inode, Node, NodeId, is_dot};

/// Lists the inodes in the order of the image, the root first.
///
/// The children of a directory are contiguous, sorted by name, except those that are listed already. The subdirectories
/// follow, each visited depth first. An inode with several names is listed at its first name. The inodes that are put last
/// ([`put_last`](crate::ImageBuilder::put_last)) follow all others, in the same order. The order depends on the tree only.
///
/// # Errors
/// [`Error::Unreachable`] and [`Error::Cycle`].
pub(crate) fn order(inodes: &[Inode], root: NodeId) -> Result<Vec<NodeId>, Error> {
    let mut order = vec![root];
    let mut met = vec![false; inodes.len()];
    met[root.index()] = true;
    let mut pending = vec![root];
    // A stack instead of recursion, because the depth of a tree is not limited.
    while let Some(directory) = pending.pop() {
        let first = order.len();
        for (name, child) in &inodes[directory.index()].entries {
            if !is_dot(name) && !met[child.index()] {
                met[child.index()] = true;
                order.push(*child);
            }
        }
        let is_directory = |child: &&NodeId| inodes[child.index()].node == Node::Directory;
        pending.extend(order[first..].iter().rev().filter(is_directory));
    }
    if order.len() < inodes.len() {
        return Err(why_missed(inodes, &met));
    }
    // The sort is stable, so the inodes that are put last keep their order.
    order.sort_by_key(|id| inodes[id.index()].is_last);
    Ok(order)
}

/// Returns the reason why inodes cannot be reached from the root.
///
/// Either one of these inodes has no name, or the parent of each is unreachable too. In the second case, some of the
/// directories form a cycle, because their number is finite.
fn why_missed(inodes: &[Inode], met: &[bool]) -> Error {
    let missed = || (0..inodes.len()).filter(|&index| !met[index]);
    if let Some(nameless) = missed().find(|&index| !inodes[index].is_named()) {
        return Error::Unreachable { node: NodeId::at(nameless) };
    }
    let parent = |index: usize| inodes[index].parent().map(NodeId::index);
    let mut directory = missed()
        .find(|&index| parent(index).is_some())
        .expect("what has a name and is not met lies in a directory that is not met");
    // After as many steps upwards as there are inodes, `directory` is in the cycle, and not below it.
    for _ in 0..inodes.len() {
        directory = parent(directory).unwrap_or(directory);
    }
    Error::Cycle { name: name_of(inodes, directory) }
}

fn name_of(inodes: &[Inode], directory: usize) -> String {
    let Some(parent) = inodes[directory].parent() else { return String::new() };
    inodes[parent.index()]
        .entries
        .iter()
        .find(|(name, child)| !is_dot(name) && child.index() == directory)
        .map_or_else(String::new, |(name, _)| printable(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImageBuilder, Meta};

    fn builder() -> ImageBuilder {
        ImageBuilder::new(Meta::default()).unwrap()
    }

    fn add(builder: &mut ImageBuilder, node: Node) -> NodeId {
        builder.add(Meta::default(), node).unwrap()
    }

    #[test]
    fn a_directory_s_children_lie_together() {
        let mut builder = builder();
        let root = builder.root();
        let [b, a] = [(); 2].map(|()| add(&mut builder, Node::Directory));
        let [file, in_a, in_b] = [(); 3].map(|()| add(&mut builder, Node::Fifo));
        let links: [(_, &[u8], _); 6] = [
            (b, b"1", in_b),
            (a, b"2", in_b),
            (a, b"1", in_a),
            (root, b"b", b),
            (root, b"a", a),
            (root, b"+", file),
        ];
        for (directory, name, node) in links {
            builder.link(directory, name, node).unwrap();
        }
        // `in_b` has a name in `a` too, which the walk visits first.
        assert_eq!(order(&builder.inodes, root).unwrap(), [root, file, a, b, in_a, in_b]);
    }

    #[test]
    fn an_inode_without_a_name_is_named() {
        let mut builder = builder();
        let directory = add(&mut builder, Node::Directory);
        let fifo = add(&mut builder, Node::Fifo);
        builder.link(directory, b"fifo", fifo).unwrap();
        let error = order(&builder.inodes, builder.root()).unwrap_err();
        assert!(matches!(error, Error::Unreachable { node } if node == directory), "{error}");
        let lone = add(&mut builder, Node::Socket);
        builder.link(builder.root(), b"directory", directory).unwrap();
        let error = order(&builder.inodes, builder.root()).unwrap_err();
        assert!(matches!(error, Error::Unreachable { node } if node == lone), "{error}");
    }

    #[test]
    fn directories_within_themselves_are_refused() {
        let mut builder = builder();
        let [below, a, b] = [(); 3].map(|()| add(&mut builder, Node::Directory));
        builder.link(a, b"below", below).unwrap();
        builder.link(a, b"b", b).unwrap();
        builder.link(b, b"a", a).unwrap();
        let error = order(&builder.inodes, builder.root()).unwrap_err();
        assert!(matches!(&error, Error::Cycle { name } if name != "below"), "{error}");
    }

    #[test]
    fn a_directory_in_itself_is_refused() {
        let mut builder = builder();
        let own = add(&mut builder, Node::Directory);
        builder.link(own, b"own", own).unwrap();
        let error = order(&builder.inodes, builder.root()).unwrap_err();
        assert!(matches!(&error, Error::Cycle { name } if name == "own"), "{error}");
    }
}
