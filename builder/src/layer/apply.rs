//! Applying layers on each other (OCI image-spec, layer.md, "Applying Changesets").

use box_image::{ComponentName, Digest};

use super::path::split;
use super::{Action, LayerError, LayerErrorKind, LayerIndex};
use crate::tree::{Inode, InodeId, Origin, Tree};

/// Applies the layers of a component's image on an empty tree, the lowest first.
///
/// # Errors
/// [`LayerError`] for a hard link without its target, or a path through something that is not a
/// directory.
pub fn flatten<'a>(
    component: ComponentName,
    layers: impl IntoIterator<Item = (Digest, &'a LayerIndex)>,
) -> Result<Tree, LayerError> {
    let mut tree = Tree::default();
    for (number, (layer, index)) in (0..).zip(layers) {
        apply(&mut tree, Origin::Layer(component, number), layer, index)?;
    }
    Ok(tree)
}

/// Applies one layer. What it hides is hidden first, wherever in the archive it says so: a layer
/// never hides its own entries.
fn apply(
    tree: &mut Tree,
    origin: Origin,
    layer: Digest,
    index: &LayerIndex,
) -> Result<(), LayerError> {
    for change in &index.changes {
        let result = match &change.action {
            Action::Opaque => hide_children(tree, &change.path),
            Action::Whiteout => hide(tree, &change.path),
            _ => Ok(()),
        };
        result.map_err(|kind| blame(layer, &change.path, kind))?;
    }
    for change in &index.changes {
        let result = put(tree, origin, &change.path, &change.action);
        result.map_err(|kind| blame(layer, &change.path, kind))?;
    }
    Ok(())
}

fn blame(layer: Digest, path: &[u8], kind: LayerErrorKind) -> LayerError {
    LayerError { layer, entry: Some((path.to_vec(), None)), kind: Box::new(kind) }
}

fn hide_children(tree: &mut Tree, path: &[u8]) -> Result<(), LayerErrorKind> {
    if path.is_empty() {
        tree.clear(Tree::ROOT);
        return Ok(());
    }
    // The directory itself must be one: what a link points to is not hidden.
    let (directory, name) = split(path);
    if let Ok(Some(directory)) = tree.find_directory(directory)
        && let Some(child) = tree.child(directory, name)
    {
        tree.clear(child);
    }
    Ok(())
}

fn hide(tree: &mut Tree, path: &[u8]) -> Result<(), LayerErrorKind> {
    let (directory, name) = split(path);
    if let Ok(Some(directory)) = tree.find_directory(directory) {
        tree.unlink(directory, name);
    }
    Ok(())
}

fn put(
    tree: &mut Tree,
    origin: Origin,
    path: &[u8],
    action: &Action,
) -> Result<(), LayerErrorKind> {
    match action {
        Action::Opaque | Action::Whiteout => Ok(()),
        Action::Directory(meta) if path.is_empty() => {
            tree.dress(Tree::ROOT, meta, origin);
            Ok(())
        }
        Action::Directory(meta) => {
            let (directory, name) = split(path);
            let directory = tree.make_directories(directory)?;
            // A directory over a directory keeps what is in it; over anything else it is new.
            let inode = tree.ensure_directory(directory, name);
            tree.dress(inode, meta, origin);
            Ok(())
        }
        Action::Leaf(meta, leaf) => {
            let inode = tree.add(Inode::leaf(meta.clone(), leaf.clone()).from(origin));
            link(tree, path, inode)
        }
        Action::HardLink(target) => {
            let inode = link_target(tree, target)?;
            link(tree, path, inode)
        }
    }
}

fn link(tree: &mut Tree, path: &[u8], inode: InodeId) -> Result<(), LayerErrorKind> {
    let (directory, name) = split(path);
    let directory = tree.make_directories(directory)?;
    tree.link(directory, name, inode);
    Ok(())
}

/// Returns the inode that a hard link names; a link to a symbolic link is a link to that link.
fn link_target(tree: &mut Tree, target: &[u8]) -> Result<InodeId, LayerErrorKind> {
    let shown = || String::from_utf8_lossy(target).into_owned();
    let (directory, name) = split(target);
    let found = match tree.find_directory(directory)? {
        Some(directory) => tree.child(directory, name),
        None => None,
    };
    match found {
        None => Err(LayerErrorKind::MissingTarget(shown())),
        Some(inode) if tree.inode(inode).names().is_some() => {
            Err(LayerErrorKind::DirectoryTarget(shown()))
        }
        Some(inode) => Ok(inode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Change;
    use crate::tree::{Content, Kind, Leaf, Meta, entries};

    /// Builds a layer from a few words: `d PATH`, `f PATH CONTENT`, `s PATH TARGET`,
    /// `h PATH TARGET`, `w PATH` (whiteout), `o PATH` (opaque).
    fn layer(lines: &[&str]) -> LayerIndex {
        let change = |line: &&str| {
            let words: Vec<_> = line.split(' ').collect();
            let word = |at: usize| words.get(at).copied().unwrap_or("").as_bytes();
            let action = match words[0] {
                "d" => Action::Directory(Meta::root_owned(0o700)),
                "f" => Action::Leaf(Meta::root_owned(0o644), Leaf::File(Content::of(word(2)))),
                "s" => Action::Leaf(Meta::root_owned(0o777), Leaf::Symlink(word(2).to_vec())),
                "h" => Action::HardLink(word(2).to_vec()),
                "w" => Action::Whiteout,
                _ => Action::Opaque,
            };
            Change { path: word(1).to_vec(), action }
        };
        LayerIndex { changes: lines.iter().map(change).collect(), contents: Vec::new() }
    }

    fn flat(layers: &[&[&str]]) -> Result<Tree, LayerErrorKind> {
        let layers: Vec<_> = layers.iter().map(|lines| layer(lines)).collect();
        let digest = Digest::from_bytes([0; 32]);
        flatten(ComponentName::Agent, layers.iter().map(|layer| (digest, layer)))
            .map_err(|error| *error.kind)
    }

    /// Lists a tree but its root: the path, and for a leaf what it is.
    fn list(tree: &Tree) -> Vec<String> {
        let show = |(path, id): (Vec<u8>, InodeId)| {
            let path = String::from_utf8(path).unwrap();
            match &tree.inode(id).kind {
                Kind::Directory(_) => format!("{path}/"),
                Kind::Leaf(Leaf::File(content)) => format!("{path} ={}", content.size),
                Kind::Leaf(Leaf::Symlink(to)) => format!("{path} >{}", String::from_utf8_lossy(to)),
                Kind::Leaf(_) => path,
            }
        };
        entries(tree).skip(1).map(show).collect()
    }

    fn check(layers: &[&[&str]], expected: &[&str]) {
        assert_eq!(list(&flat(layers).unwrap()), expected, "{layers:?}");
    }

    #[test]
    fn a_whiteout_hides_what_is_below_and_never_its_own_layer() {
        check(&[&["f a 1", "f b 1"], &["w a"]], &["/b =1"]);
        check(&[&["f a 1"], &["f a 22", "w a"]], &["/a =2"]);
        check(&[&["f a 1"], &["w a", "f a 22"]], &["/a =2"]);
        check(&[&["f d/a 1", "f d/b 1"], &["w d"]], &[]);
        check(&[&["w nothing", "f a 1"]], &["/a =1"]);
    }

    #[test]
    fn an_opaque_directory_hides_what_is_below_wherever_it_says_so() {
        let lower: &[&str] = &["f d/a 1", "f d/b 1", "f e 1"];
        check(&[lower, &["o d", "f d/c 1"]], &["/d/", "/d/c =1", "/e =1"]);
        check(&[lower, &["f d/c 1", "o d"]], &["/d/", "/d/c =1", "/e =1"]);
        check(&[lower, &["o "]], &[]);
        check(&[&["f real/a 1", "s d real"], &["o d"]], &["/d >real", "/real/", "/real/a =1"]);
    }

    #[test]
    fn a_directory_over_a_directory_keeps_its_children() {
        check(&[&["f d/a 1"], &["d d"]], &["/d/", "/d/a =1"]);
        check(&[&["f d/a 1"], &["f d 1"]], &["/d =1"]);
        check(&[&["f d 1"], &["d d", "f d/a 1"]], &["/d/", "/d/a =1"]);
        check(&[&["d real", "s d real"], &["d d"]], &["/d/", "/real/"]);
    }

    #[test]
    fn paths_through_links_stay_inside_the_image() {
        let lib = &["d usr/lib", "s lib usr/lib"];
        check(&[lib, &["f lib/a 1"]], &["/lib >usr/lib", "/usr/", "/usr/lib/", "/usr/lib/a =1"]);
        let out = &["s out ../../../../etc"];
        check(&[out, &["f out/passwd 1"]], &["/etc/", "/etc/passwd =1", "/out >../../../../etc"]);
        check(&[&["f etc/a 1", "s l /etc"], &["w l/a"]], &["/etc/", "/l >/etc"]);
    }

    #[test]
    fn hard_links_are_one_inode_in_every_case() {
        let tree = flat(&[&["f a 1"], &["h b a"], &["f a 22"]]).unwrap();
        assert_eq!(list(&tree), ["/a =2", "/b =1"], "replacing one name keeps the other");
        let tree = flat(&[&["f a 1", "f b 22"], &["h b a"]]).unwrap();
        assert_eq!(tree.child(Tree::ROOT, b"a"), tree.child(Tree::ROOT, b"b"));
        let tree = flat(&[&["s a target", "h b a", "h b b"]]).unwrap();
        assert_eq!(list(&tree), ["/a >target", "/b >target"], "a link to a link is that link");
        let tree = flat(&[&["f a 1", "h b a"], &["w a"]]).unwrap();
        assert_eq!(list(&tree), ["/b =1"]);
    }

    #[test]
    fn impossible_links_and_paths_are_errors() {
        assert!(matches!(flat(&[&["h b a"]]), Err(LayerErrorKind::MissingTarget(_))));
        assert!(matches!(flat(&[&["h b a", "f a 1"]]), Err(LayerErrorKind::MissingTarget(_))));
        assert!(matches!(flat(&[&["d a", "h b a"]]), Err(LayerErrorKind::DirectoryTarget(_))));
        assert!(matches!(flat(&[&["f a 1", "f a/b 1"]]), Err(LayerErrorKind::Unreachable(_))));
    }

    #[test]
    fn directories_that_no_entry_names_are_made() {
        let tree = flat(&[&["f a/b/c 1"]]).unwrap();
        let made = tree.lookup(b"a/b").unwrap();
        assert_eq!(tree.inode(made).meta, Meta::root_owned(0o755));
    }

    #[test]
    fn the_root_takes_its_own_entry() {
        let tree = flat(&[&["d "]]).unwrap();
        assert_eq!(tree.inode(Tree::ROOT).meta.mode, 0o700);
    }
}
