use box_tree::{Content, Kind, entries};

use super::*;
use crate::Change;

/// Builds a layer from a few words: `d PATH [MODE]`, `f PATH CONTENT`, `s PATH TARGET`,
/// `h PATH TARGET`, `w PATH` (whiteout), `o PATH` (opaque).
fn layer(lines: &[&str]) -> LayerIndex {
    let change = |line: &&str| {
        let words: Vec<_> = line.split(' ').collect();
        let word = |at: usize| words.get(at).copied().unwrap_or("").as_bytes();
        let mode = words.get(2).and_then(|mode| u16::from_str_radix(mode, 8).ok());
        let action = match words[0] {
            "d" => Action::Directory(Meta::root_owned(mode.unwrap_or(0o700))),
            "f" => Action::Leaf(Meta::root_owned(0o644), Leaf::File(Content::of(word(2)))),
            "s" => Action::Leaf(Meta::root_owned(0o755), Leaf::Symlink(word(2).to_vec())),
            "h" => Action::HardLink(word(2).to_vec()),
            "w" => Action::Whiteout,
            _ => Action::Opaque,
        };
        Change { path: word(1).to_vec(), action }
    };
    LayerIndex { changes: lines.iter().map(change).collect(), ..LayerIndex::default() }
}

fn flat(layers: &[&[&str]]) -> Result<Tree, LayerErrorKind> {
    let layers: Vec<_> = layers.iter().map(|lines| layer(lines)).collect();
    let digest = Digest::from_bytes([0; 32]);
    flatten(ComponentName::Agent, layers.iter().map(|layer| (digest, layer)))
        .map_err(|error| *error.kind)
}

/// Lists a tree without its root: each path, and the type of a leaf.
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

/// Returns the number of the layer from which the entry at a path came.
fn origin(tree: &Tree, path: &str) -> Option<u32> {
    let (directory, name) = split(path.as_bytes());
    let inode = tree.child(tree.lookup(directory).unwrap(), name).unwrap();
    match tree.inode(inode).origin {
        Origin::Layer(ComponentName::Agent, number) => Some(number),
        _ => None,
    }
}

#[test]
fn a_directory_over_a_directory_takes_its_attributes_and_keeps_its_children() {
    let tree = flat(&[&["d d 755", "f d/a 1"], &["d d 711"]]).unwrap();
    assert_eq!(list(&tree), ["/d/", "/d/a =1"]);
    let d = tree.lookup(b"d").unwrap();
    assert_eq!(tree.inode(d).meta, Meta::root_owned(0o711));
    assert_eq!((origin(&tree, "d"), origin(&tree, "d/a")), (Some(1), Some(0)));
}

#[test]
fn anything_else_replaces_what_was_there() {
    check(&[&["f d/a 1"], &["f d 1"]], &["/d =1"]);
    check(&[&["f d/a 1"], &["s d x"]], &["/d >x"]);
    check(&[&["f d/a 1", "f x 1"], &["h d x"]], &["/d =1", "/x =1"]);
    check(&[&["f d 1"], &["d d", "f d/a 1"]], &["/d/", "/d/a =1"]);
    check(&[&["f real/a 1", "s d real"], &["d d"]], &["/d/", "/real/", "/real/a =1"]);
    let tree = flat(&[&["f a 1"], &["s a b"], &["f a 22"]]).unwrap();
    assert_eq!((list(&tree), origin(&tree, "a")), (vec!["/a =2".to_owned()], Some(2)));
}

#[test]
fn the_last_of_equal_paths_wins() {
    check(&[&["f a 1", "f a 22"]], &["/a =2"]);
    check(&[&["d a", "f a/b 1", "f a 22"]], &["/a =2"]);
    check(&[&["f a 1", "d a", "f a/b 1"]], &["/a/", "/a/b =1"]);
    let tree = flat(&[&["d a 700", "f a/b 1", "d a 711"]]).unwrap();
    assert_eq!(list(&tree), ["/a/", "/a/b =1"]);
    assert_eq!(tree.inode(tree.lookup(b"a").unwrap()).meta.mode, 0o711);
}

#[test]
fn a_whiteout_hides_what_is_below_it() {
    check(&[&["f a 1", "f b 1"], &["w a"]], &["/b =1"]);
    check(&[&["f d/a/b 1", "f d/b 1"], &["w d"]], &[]);
    check(&[&["f d/a 1", "f d/b 1"], &["w d/a"]], &["/d/", "/d/b =1"]);
    check(&[&["f a 1", "f b 1"], &["w a"], &["f a 22"]], &["/a =2", "/b =1"]);
}

#[test]
fn a_whiteout_never_hides_its_own_layer() {
    check(&[&["f a 1"], &["f a 22", "w a"]], &["/a =2"]);
    check(&[&["f a 1"], &["w a", "f a 22"]], &["/a =2"]);
    check(&[&["f d/a 1"], &["f d/b 1", "w d"]], &["/d/", "/d/b =1"]);
    let tree = flat(&[&["d d 711", "f d/a 1"], &["f d/b 1", "w d"]]).unwrap();
    let made = tree.inode(tree.lookup(b"d").unwrap());
    assert_eq!((made.meta.mode, made.origin), (0o755, Origin::Generated), "it is another one");
}

#[test]
fn an_opaque_marker_hides_all_that_is_below() {
    let lower: &[&str] = &["f d/a 1", "f d/b/c 1", "f e 1"];
    check(&[lower, &["o d", "f d/c 1"]], &["/d/", "/d/c =1", "/e =1"]);
    check(&[lower, &["o "]], &[]);
    check(&[lower, &["o ", "f e 22"]], &["/e =2"]);
    let tree = flat(&[&["d d 711", "f d/a 1"], &["o d"]]).unwrap();
    assert_eq!((list(&tree), origin(&tree, "d")), (vec!["/d/".to_owned()], Some(0)));
}

#[test]
fn the_order_of_markers_means_nothing() {
    // The example of layer.md: a/b is deleted and made again.
    let lower: &[&str] = &["d a", "d a/b", "d a/b/c", "f a/b/c/bar 1"];
    let expected: &[&str] = &["/a/", "/a/b/", "/a/b/c/", "/a/b/c/foo =1"];
    check(&[lower, &["d a", "o a", "d a/b", "d a/b/c", "f a/b/c/foo 1"]], expected);
    check(&[lower, &["d a", "d a/b", "d a/b/c", "f a/b/c/foo 1", "o a"]], expected);
    // Deep and shallow markers, and markers through links that are hidden themselves.
    let lower: &[&str] = &["f real/a 1", "f real/b 1", "s d/l /real", "s m d/l", "f d/x 1"];
    for changes in [["w d", "w m/a", "o d/l"], ["o d/l", "w m/a", "w d"], ["w m/a", "w d", "o d/l"]]
    {
        check(&[lower, &changes], &["/m >d/l", "/real/", "/real/a =1", "/real/b =1"]);
    }
}

#[test]
fn markers_follow_links_that_the_layer_keeps() {
    let lower: &[&str] = &["f real/a 1", "f real/b 1", "s d real"];
    check(&[lower, &["w d/a"]], &["/d >real", "/real/", "/real/b =1"]);
    check(&[lower, &["o d"]], &["/d >real", "/real/"]);
    check(&[lower, &["o d", "f d/c 1"]], &["/d >real", "/real/", "/real/c =1"]);
    check(&[&["f etc/a 1", "s l /../etc"], &["w l/a"]], &["/etc/", "/l >/../etc"]);
    // Here `d` is a directory of this layer, and the target of the lower layer's link is another
    // directory.
    let kept: &[&str] = &["/d/", "/d/c =1", "/real/", "/real/a =1", "/real/b =1"];
    for marker in ["o d", "w d/a", "o d/a"] {
        check(&[lower, &[marker, "d d", "f d/c 1"]], kept);
        check(&[lower, &["d d", "f d/c 1", marker]], kept);
        check(&[lower, &["w d", marker, "f d/c 1"]], kept);
    }
    // Nor does a link of the same layer lead to entries of the lower layers.
    let own = &["/d/", "/d/a =1", "/l >d"];
    check(&[&["f d/a 1", "f l/b 1"], &["s l d", "w l/a", "o l"]], own);
    // Entries before the one that replaces a link still lead through it.
    check(
        &[lower, &["f d/c 1", "d d", "o d"]],
        &["/d/", "/real/", "/real/a =1", "/real/b =1", "/real/c =1"],
    );
    // A link that is both hidden and replaced does not come back.
    check(&[lower, &["w d", "o ", "s d x"]], &["/d >x"]);
}

#[test]
fn a_marker_of_nothing_hides_nothing() {
    let lower: &[&str] = &["f a 1", "s loop loop", "s gone x/y"];
    for marker in ["w nothing", "w no/thing", "o nothing", "w a/b", "o a", "w gone/x", "o gone"] {
        check(&[lower, &[marker]], &["/a =1", "/gone >x/y", "/loop >loop"]);
    }
    check(&[&["w nothing", "o ", "f a 1"]], &["/a =1"]);
    for marker in ["w loop/x", "o loop"] {
        refused(flat(&[lower, &[marker]]), "cannot be reached");
    }
}

#[test]
fn paths_through_links_stay_inside_the_image() {
    let lib = &["d usr/lib", "s lib usr/lib"];
    check(&[lib, &["f lib/a 1"]], &["/lib >usr/lib", "/usr/", "/usr/lib/", "/usr/lib/a =1"]);
    let out = &["s out ../../../../etc"];
    check(&[out, &["f out/passwd 1"]], &["/etc/", "/etc/passwd =1", "/out >../../../../etc"]);
    let over = &["d real", "s l absent/../real"];
    check(&[over, &["f l/a 1"]], &["/l >absent/../real", "/real/", "/real/a =1"]);
}

#[test]
fn hard_links_name_one_inode() {
    let tree = flat(&[&["f a 1", "f b 22"], &["h b a", "h new/c a"]]).unwrap();
    let one = tree.lookup(b"a");
    assert_eq!([tree.lookup(b"b"), tree.lookup(b"new/c")], [one, one]);
    assert_eq!([origin(&tree, "b"), origin(&tree, "new")], [Some(0), None]);
    check(&[&["s a target", "h b a"]], &["/a >target", "/b >target"]);
    check(&[&["s l d", "f d/a 1"], &["h b l/a"]], &["/b =1", "/d/", "/d/a =1", "/l >d"]);
}

#[test]
fn a_hard_link_outlives_other_names() {
    check(&[&["f a 1"], &["h b a"], &["f a 22"]], &["/a =2", "/b =1"]);
    check(&[&["f a 1", "h b a"], &["w a"]], &["/b =1"]);
    check(&[&["f d/a 1", "h b d/a"], &["s d x"]], &["/b =1", "/d >x"]);
    check(&[&["f a 1", "h b a", "f a 22", "h c a"]], &["/a =2", "/b =1", "/c =2"]);
    let tree = flat(&[&["f a 1"], &["h b a"], &["f a 22"]]).unwrap();
    assert_eq!((origin(&tree, "a"), origin(&tree, "b")), (Some(2), Some(0)));
}

#[track_caller]
fn refused(built: Result<Tree, LayerErrorKind>, reason: &str) {
    let error = built.unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn impossible_links_and_paths_are_errors() {
    refused(flat(&[&["h b a"]]), "not there");
    refused(flat(&[&["h b a", "f a 1"]]), "not there");
    refused(flat(&[&["f a 1", "h a a"]]), "not there");
    refused(flat(&[&["f a/b 1", "h a a/b"]]), "not there");
    let hidden: &[&[&str]] = &[&["f a 1"], &["h b a", "w a"]];
    refused(flat(hidden), "not there");
    refused(flat(&[&["d a", "h b a"]]), "a directory");
    refused(flat(&[&["f a 1", "f a/b 1"]]), "cannot be reached");
    refused(flat(&[&["f a 1"], &["f a/b 1"]]), "cannot be reached");
    refused(flat(&[&["s a a", "f a/b 1"]]), "cannot be reached");
}

#[test]
fn directories_that_no_entry_names_are_made() {
    let tree = flat(&[&["f a/b/c 1"]]).unwrap();
    let made = tree.inode(tree.lookup(b"a/b").unwrap());
    assert_eq!((&made.meta, made.origin), (&Meta::root_owned(0o755), Origin::Generated));
    let tree = flat(&[&["f a/b/c 1", "d a/b 711"]]).unwrap();
    assert_eq!((origin(&tree, "a"), origin(&tree, "a/b")), (None, Some(0)));
    assert_eq!(list(&tree), ["/a/", "/a/b/", "/a/b/c =1"]);
}

#[test]
fn the_root_takes_its_own_entry() {
    let tree = flat(&[&["d "]]).unwrap();
    let root = tree.inode(Tree::ROOT);
    assert_eq!(root.meta.mode, 0o700);
    assert_eq!(root.origin, Origin::Layer(ComponentName::Agent, 0));
    let tree = flat(&[&["f a 1"], &["o "]]).unwrap();
    let root = tree.inode(Tree::ROOT);
    assert_eq!((&root.meta, root.origin), (&Meta::root_owned(0o755), Origin::Generated));
}

#[test]
fn a_symbolic_link_has_the_permissions_of_linux() {
    let tree = flat(&[&["s a b"]]).unwrap();
    let link = tree.child(Tree::ROOT, b"a").unwrap();
    assert_eq!(tree.inode(link).meta.mode, 0o777);
}

#[test]
fn links_into_the_metadata_of_aufs_have_a_target() {
    let layer: &[&str] = &["f .wh..wh.plnk/1.2 1", "h a .wh..wh.plnk/1.2", "h b a"];
    let tree = flat(&[layer]).unwrap();
    assert_eq!(list(&tree), ["/a =1", "/b =1"]);
    assert_eq!((tree.lookup(b"a"), origin(&tree, "a")), (tree.lookup(b"b"), Some(0)));
    let below: &[&[&str]] = &[layer, &["h c .wh..wh.plnk/1.2"]];
    refused(flat(below), "not there");
}

#[test]
fn directories_that_no_entry_names_are_bounded() {
    // Each entry makes 251 inodes; a layer may have 150 times as many entries.
    let deep = "a/".repeat(249);
    let lines: Vec<_> = (0..2600).map(|at| format!("f {at}/{deep}f 1")).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let (lower, upper) = lines.split_at(1300);
    assert!(flat(&[lower]).is_ok());
    // All layers of an image together.
    for layers in [&[lines.as_slice()][..], &[lower, upper]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(
                flat(layers).unwrap_err(),
                @"with the other layers, it has too much: the layers need more than 335544320 bytes of memory for their entries and directories together"
            );
        }
    }
}
