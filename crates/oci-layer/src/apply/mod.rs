//! Applies layers in order, as [layer.md](https://github.com/opencontainers/image-spec/blob/main/layer.md) of the OCI image-spec
//! describes.
//!
//! The table has every rule of that document about the resulting tree, and the test of each. *Own* marks behaviour of this
//! module that the document does not specify. `tests/oracle/` compares the result with an independent program.
//!
//! | Rule | Test in `tests.rs` |
//! |---|---|
//! | "If the entry and the existing path are both directories, then the existing path's attributes MUST be replaced" – and its children stay | `a_directory_over_a_directory_takes_its_attributes_and_keeps_its_children` |
//! | "In all other cases": remove the path, then create it; a directory is removed with all entries below it | `anything_else_replaces_what_was_there` |
//! | "the archive is extracted like a regular tar archive": if several entries have one path, the last is used. "MUST NOT include duplicate entries" applies to writers of layers, but some write them | `the_last_of_equal_paths_wins` |
//! | "A whiteout … signifies a path should be deleted", with all below it | `a_whiteout_hides_what_is_below_it` |
//! | "Whiteout files MUST only apply to resources in lower/parent layers"; "files … in the same layer … can only be hidden by … subsequent layers" | `a_whiteout_never_hides_its_own_layer`, `the_order_of_markers_means_nothing` |
//! | "Once a whiteout is applied, the whiteout itself MUST also be hidden" | `path.rs`, `whiteouts_are_distinguished_from_names` |
//! | "A `.wh.` file, without a basename to delete, is invalid"; `.` and `..` are no basenames either | `path.rs`, `whiteouts_are_distinguished_from_names` |
//! | "it is not possible to create a filesystem which has a file or directory with a name beginning with `.wh.`" | `path.rs`, `paths_below_a_whiteout_are_refused` |
//! | "all siblings are hidden in the lower layer", "and all descendants" | `an_opaque_marker_hides_all_that_is_below` |
//! | the opaque marker "is applied first … regardless of the ordering" | `the_order_of_markers_means_nothing`, the document's example included |
//! | "MUST accept both" kinds of whiteouts | both of the above |
//! | mtime, uid, gid, mode, xattrs "MUST" be kept | `decode.rs`, `metadata.rs`; `tests/oracle/` |
//! | "Hardlinks are possible with all file types except directories" | `hard_links_name_one_inode`, `impossible_links_and_paths_are_errors` |
//! | "Hardlinked files … have the same inode", across layers, too: deleting or replacing one name leaves the others | `a_hard_link_outlives_other_names` |
//! | "Sparse files SHOULD NOT be used" | refused: `decode.rs` |
//! | *own*: a hard link's attributes are ignored: the inode has those of its first name | `hard_links_name_one_inode` |
//! | *own*: a hard link to a symbolic link is another name of that link | `hard_links_name_one_inode` |
//! | *own*: a hard link replaces its path first, so a hard link to itself has no target | `impossible_links_and_paths_are_errors` |
//! | *own*: directories without an entry are `0755`, owned by root, with mtime 0: the current time, as extractors set it, would change the digest | `directories_that_no_entry_names_are_made` |
//! | *own*: entries, and directories without an entry, have one limit together | `directories_that_no_entry_names_are_bounded` |
//! | *own*: the same applies to a root without an entry | `the_root_takes_its_own_entry` |
//! | *own*: a path may lead through symbolic links, of the layer or of lower layers, and never out of the image | `paths_through_links_stay_inside_the_image` |
//! | *own*: so may the path of a marker, but not through a link that the marker's layer hides or replaces | `markers_follow_links_that_the_layer_keeps` |
//! | *own*: a marker of an absent path hides nothing; a marker below links that form a cycle is an error | `a_marker_of_nothing_hides_nothing` |
//! | *own*: the permissions of a symbolic link are `0777`: Linux has no others | `a_symbolic_link_has_the_permissions_of_linux` |
//! | *own*: AUFS keeps the data of hard links in `.wh..wh.plnk/`; these files are only targets of the links. Other metadata of AUFS is left out | `links_into_the_metadata_of_aufs_have_a_target` |

mod hidden;
#[cfg(test)]
mod tests;

use box_contract::ComponentName;
use box_digest::Digest;
use box_tree::path::split;
use box_tree::{Inode, InodeId, Leaf, Meta, Origin, Tree, memory};

use super::path::AUFS_LINKS;
use super::{Action, Change, LayerError, LayerErrorKind, LayerIndex, Total};
use crate::error::refused;

/// Applies the layers of a component's image on an empty tree, the lowest first.
///
/// # Errors
/// [`LayerError`] for a hard link without its target, a path through something that is not a
/// directory, or paths that make too many directories.
pub fn flatten<'a>(
    component: ComponentName,
    layers: impl IntoIterator<Item = (Digest, &'a LayerIndex)>,
) -> Result<Tree, LayerError> {
    let layers = layers.into_iter().map(|(layer, index)| (layer, index.clone()));
    flatten_owned(component, layers, &Total::default())
}

/// Applies layers as [`flatten`] does, and consumes each, so that no entry is in memory twice. The memory of the tree is added to
/// `total`, which several images may share.
///
/// # Errors
/// The errors of [`flatten`].
pub fn flatten_owned(
    component: ComponentName,
    layers: impl IntoIterator<Item = (Digest, LayerIndex)>,
    total: &Total,
) -> Result<Tree, LayerError> {
    let mut tree = Tree::default();
    for (number, (layer, index)) in (0..).zip(layers) {
        apply(&mut tree, Origin::Layer(component, number), layer, index, total)?;
    }
    Ok(tree)
}

/// Applies one layer: first its whiteouts, then its entries in their order.
fn apply(
    tree: &mut Tree,
    origin: Origin,
    layer: Digest,
    index: LayerIndex,
    total: &Total,
) -> Result<(), LayerError> {
    let blame = |path: &[u8], kind| {
        let entry = Some((path.to_vec(), None));
        LayerError { layer, entry, kind: Box::new(kind) }
    };
    hidden::hide(tree, &index).map_err(|(path, error)| blame(path, error.into()))?;
    for Change { path, action } in index.changes {
        let (own_memory, made) = (memory_of(&action), tree.made());
        let own = usize::from(matches!(action, Action::Leaf(..)));
        put(tree, origin, &path, action).map_err(|kind| blame(&path, kind))?;
        // One entry can make hundreds of directories, and more than the names in its path if it leads through links.
        let directories = memory::directories((tree.made() - made).saturating_sub(own));
        total.add_memory(own_memory + directories).map_err(|excess| blame(&path, excess.into()))?;
    }
    tree.unlink(Tree::ROOT, AUFS_LINKS);
    Ok(())
}

/// Returns the memory that an action takes in the tree, without the directories that it makes.
fn memory_of(action: &Action) -> usize {
    match action {
        Action::Directory(meta) => memory::attributes(meta),
        action => action.memory(),
    }
}

fn put(tree: &mut Tree, origin: Origin, path: &[u8], action: Action) -> Result<(), LayerErrorKind> {
    match action {
        Action::Opaque | Action::Whiteout => Ok(()),
        Action::Directory(meta) => put_directory(tree, origin, path, meta),
        Action::Leaf(mut meta, leaf) => {
            if matches!(leaf, Leaf::Symlink(_)) {
                meta.mode = 0o777;
            }
            let (directory, name) = ensure_parent_dirs(tree, path)?;
            let inode = tree.add(Inode::leaf(meta, leaf).from(origin));
            tree.link(directory, name, inode);
            Ok(())
        }
        Action::HardLink(target) => {
            let (directory, name) = ensure_parent_dirs(tree, path)?;
            tree.unlink(directory, name);
            let inode = link_target(tree, &target)?;
            tree.link(directory, name, inode);
            Ok(())
        }
    }
}

/// Returns the directory of a path, made if it is missing, and the last name.
fn ensure_parent_dirs<'a>(
    tree: &mut Tree,
    path: &'a [u8],
) -> Result<(InodeId, &'a [u8]), LayerErrorKind> {
    let (directory, name) = split(path);
    Ok((tree.make_directories(directory)?, name))
}

fn put_directory(
    tree: &mut Tree,
    origin: Origin,
    path: &[u8],
    meta: Meta,
) -> Result<(), LayerErrorKind> {
    let inode = if path.is_empty() {
        Tree::ROOT
    } else {
        let (directory, name) = ensure_parent_dirs(tree, path)?;
        // A directory keeps its entries if another one is put over it. Over any other type the directory is new.
        tree.ensure_directory(directory, name)
    };
    tree.set_meta(inode, &meta, origin);
    Ok(())
}

/// Returns the inode at the target of a hard link. If the target is a symbolic link, that link is not followed.
fn link_target(tree: &mut Tree, target: &[u8]) -> Result<InodeId, LayerErrorKind> {
    let refused = |found| {
        let target = String::from_utf8_lossy(target);
        let reason = format!("it is a hard link to {target:?}, which is {found}");
        Err(refused(reason))
    };
    let (directory, name) = split(target);
    let found = tree.find_directory(directory)?.and_then(|it| tree.child(it, name));
    match found {
        None => refused("not there"),
        Some(inode) if tree.inode(inode).names().is_some() => refused("a directory"),
        Some(inode) => Ok(inode),
    }
}
