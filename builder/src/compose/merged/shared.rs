//! The paths that both trees have.

use box_tree::{InodeId, Name, Tree, path};

/// A path that both trees have; `/` is one of them.
#[derive(Debug)]
pub(super) struct Shared {
    /// The path.
    pub(super) path: Vec<u8>,
    /// The directory of the agent's tree that it lies in, and its name there; for `/` nothing.
    pub(super) place: Option<(InodeId, Name)>,
    /// The entries of the agent's tree and of the business tree.
    pub(super) found: [InodeId; 2],
}

/// Lists the paths that both trees have, a directory before what is in it, names in bytewise order.
/// Where one tree has a directory and the other something else, nothing below is in both.
pub(super) fn shared(agent: &Tree, business: &Tree) -> Vec<Shared> {
    let root = Shared { path: b"/".to_vec(), place: None, found: [Tree::ROOT; 2] };
    let (mut listed, mut pending) = (Vec::new(), vec![root]);
    while let Some(entry) = pending.pop() {
        let [one, other] = entry.found;
        if let (Some(names), Some(others)) =
            (agent.inode(one).names(), business.inode(other).names())
        {
            let both = names.iter().filter_map(|(name, id)| Some((name, *id, *others.get(name)?)));
            let below = both.map(|(name, id, other)| Shared {
                path: path::join(&entry.path, name),
                place: Some((one, name.clone())),
                found: [id, other],
            });
            let first = pending.len();
            pending.extend(below);
            // The last is taken first.
            pending[first..].reverse();
        }
        listed.push(entry);
    }
    listed
}
