//! Builds the merged tree from the decisions.

use std::collections::HashMap;

use box_tree::{Absorbed, Inode, InodeId, Leaf, Origin, Tree};

use super::resolve::Edit;

/// Merges the business tree into the agent's tree. `same` maps inodes of the business tree to the inodes of the agent's
/// tree that they become. `same` contains all directories that both trees have.
pub(super) fn join(
    [agent, business]: [&Tree; 2],
    same: &HashMap<InodeId, InodeId>,
    edits: Vec<Edit>,
) -> Tree {
    let mut tree = agent.clone();
    let absorbed = tree.absorb(business, same);
    for (other, directory) in same {
        let (own, others) = (agent.inode(*directory).names(), business.inode(*other).names());
        let (Some(own), Some(others)) = (own, others) else { continue };
        // Of a directory in both trees, adds the names that only the business tree has.
        for (name, inode) in others.iter().filter(|(name, _)| !own.contains_key(*name)) {
            tree.link(*directory, name, absorbed.now(*inode));
        }
    }
    edits.into_iter().for_each(|edit| apply(&mut tree, business, &absorbed, edit));
    tree
}

fn apply(tree: &mut Tree, business: &Tree, absorbed: &Absorbed<'_>, edit: Edit) {
    match edit {
        Edit::SetMeta { directory, like } => {
            let like = business.inode(like);
            tree.set_meta(directory, &like.meta, like.origin);
        }
        Edit::Replace { directory, name, by } => tree.link(directory, &name, absorbed.now(by)),
        Edit::Remove { directory, name } => tree.unlink(directory, &name),
        Edit::Unite { directory, name, like, content } => {
            let meta = tree.inode(like).meta.clone();
            let united = Inode::leaf(meta, Leaf::File(content)).from(Origin::Merged);
            let united = tree.add(united);
            tree.link(directory, &name, united);
        }
    }
}
