//! The paths that both trees have.

use std::collections::{BTreeMap, btree_map};

use box_tree::{InodeId, Name, Tree};

/// A path that both trees have. `/` is one of them.
#[derive(Debug)]
pub(super) struct Shared<'s> {
    /// The absolute path. It is borrowed, because copies of many paths below a deep directory would take kibibytes
    /// each.
    pub(super) path: &'s [u8],
    /// The parent in the agent's tree, and the name in it. `None` for `/`.
    pub(super) place: Option<(InodeId, &'s Name)>,
    /// The entries of the agent's tree and of the business tree.
    pub(super) found: [InodeId; 2],
}

/// A directory of both trees whose names are being visited.
struct Open<'t> {
    /// The directory of the agent's tree.
    own: InodeId,
    /// The length of the directory's path in bytes.
    length: usize,
    /// The remaining names of the agent's directory. `others` are the names of the business tree's directory.
    names: btree_map::Iter<'t, Name, InodeId>,
    others: &'t BTreeMap<Name, InodeId>,
}

/// Visits the paths that both trees have, a directory before its entries, names in bytewise order. If only one of the
/// entries at a path is a directory, no path below it is shared.
///
/// # Errors
/// The first error of `visit`.
pub(super) fn each_shared<E>(
    trees: [&Tree; 2],
    mut visit: impl FnMut(&Shared<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let root = [Tree::ROOT; 2];
    visit(&Shared { path: b"/", place: None, found: root })?;
    let (mut path, mut open) = (Vec::new(), Vec::from_iter(enter(trees, root, 0)));
    while let Some(Open { own, length, names, others }) = open.last_mut() {
        path.truncate(*length);
        let Some((name, id)) = names.next() else {
            open.pop();
            continue;
        };
        let Some(other) = others.get(name) else { continue };
        path.push(b'/');
        path.extend_from_slice(name);
        let found = [*id, *other];
        visit(&Shared { path: &path, place: Some((*own, name)), found })?;
        open.extend(enter(trees, found, path.len()));
    }
    Ok(())
}

/// Starts a visit of the names of a directory, if the entry is a directory in both trees.
fn enter<'t>(
    [agent, business]: [&'t Tree; 2],
    [own, other]: [InodeId; 2],
    length: usize,
) -> Option<Open<'t>> {
    let names = agent.inode(own).names()?.iter();
    let others = business.inode(other).names()?;
    Some(Open { own, length, names, others })
}
