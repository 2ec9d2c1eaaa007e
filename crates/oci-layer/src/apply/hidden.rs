//! The entries of lower layers that a layer hides (layer.md, "Whiteouts" and "Opaque Whiteout").

use box_tree::path::split;
use box_tree::{InodeId, Kind, Leaf, LookupError, Tree};

use super::super::{Action, Change, LayerIndex};

/// Applies the layer's whiteouts, wherever in the archive they are.
///
/// A marker's directory is looked up in the lower layers, and symbolic links are followed, as for
/// an entry: if `lib` is a link to `usr/lib`, `lib/.wh.a` hides `usr/lib/a`. A link that the layer
/// itself hides or replaces is not followed: the paths below it are not in the directory of this
/// layer. A marker whose directory does not exist, or is not a directory, hides nothing.
///
/// # Errors
/// The marker's path and [`LookupError`] if its links form a cycle.
pub(super) fn hide<'a>(
    tree: &mut Tree,
    index: &'a LayerIndex,
) -> Result<(), (&'a [u8], LookupError)> {
    if !index.changes.iter().any(|change| is_marker(&change.action)) {
        return Ok(());
    }
    let mut looks: Vec<&Change> = index.changes.iter().collect();
    looks.sort_by_cached_key(|change| {
        let hidden_below = usize::from(change.action == Action::Opaque);
        // Markers come before entries.
        (depth(&change.path) + hidden_below, !is_marker(&change.action), &change.path)
    });
    let mut replaced = Vec::new();
    for Change { path, action } in looks {
        let hidden = match action {
            Action::Opaque => hide_names(tree, path),
            Action::Whiteout => hide_name(tree, path),
            _ => {
                replaced.extend(take_link(tree, path));
                Ok(())
            }
        };
        hidden.map_err(|error| (path.as_slice(), error))?;
    }
    // An entry replaces a link only when the entry is applied. The paths of earlier entries may lead through the link.
    for (directory, name, link) in replaced {
        tree.link(directory, name, link);
    }
    Ok(())
}

const fn is_marker(action: &Action) -> bool {
    matches!(action, Action::Whiteout | Action::Opaque)
}

/// Returns the number of names in a path: 0 for the root.
fn depth(path: &[u8]) -> usize {
    if path.is_empty() { 0 } else { 1 + path.iter().filter(|byte| **byte == b'/').count() }
}

fn hide_names(tree: &mut Tree, path: &[u8]) -> Result<(), LookupError> {
    if let Some(directory) = directory_of(tree, path)? {
        tree.clear(directory);
    }
    Ok(())
}

fn hide_name(tree: &mut Tree, path: &[u8]) -> Result<(), LookupError> {
    let (directory, name) = split(path);
    if let Some(directory) = directory_of(tree, directory)? {
        tree.unlink(directory, name);
    }
    Ok(())
}

/// Finds a marker's directory; `None` if it does not exist.
fn directory_of(tree: &mut Tree, path: &[u8]) -> Result<Option<InodeId>, LookupError> {
    match tree.find_directory(path) {
        Err(LookupError::NotADirectory(_)) => Ok(None),
        found => found,
    }
}

/// Removes and returns the symbolic link that an entry at `path` replaces. `None` if it replaces no link.
fn take_link<'a>(tree: &mut Tree, path: &'a [u8]) -> Option<(InodeId, &'a [u8], InodeId)> {
    let (directory, name) = split(path);
    let directory = tree.find_directory(directory).ok()??;
    let link = tree.child(directory, name)?;
    if !matches!(tree.inode(link).kind, Kind::Leaf(Leaf::Symlink(_))) {
        return None;
    }
    tree.unlink(directory, name);
    Some((directory, name, link))
}
