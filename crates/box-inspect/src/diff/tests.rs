//! Differences, and their order.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use box_contract::ComponentName;
use box_tree::listing::{ImageOrigin, Listing, Origins};
use box_tree::{Content, Inode, InodeId, Leaf, Meta, Origin, Tree};
use proptest::prelude::*;

use super::*;

fn side(kind: SideKind, tree: Tree) -> Side {
    let image = ImageOrigin {
        component: ComponentName::Agent,
        layers: vec![box_digest::Digest::from_bytes([2; 32])],
    };
    let origins = Origins { images: vec![image], ..Origins::default() };
    Side::new(kind, Listing { tree, origins }, Vec::new())
}

fn boxed(tree: Tree) -> Side {
    side(SideKind::Box(box_digest::Digest::from_bytes([0; 32])), tree)
}

fn put(tree: &mut Tree, path: &str, leaf: Leaf) -> InodeId {
    let (directory, name) = path.rsplit_once('/').unwrap();
    let directory = tree.make_directories(directory.as_bytes()).unwrap();
    let inode = Inode::leaf(Meta::root_owned(0o644), leaf);
    let inode = tree.add(inode.from(Origin::Layer(ComponentName::Agent, 0)));
    tree.link(directory, name.as_bytes(), inode);
    inode
}

fn file(tree: &mut Tree, path: &str, data: &str) -> InodeId {
    put(tree, path, Leaf::File(Content::of(data.as_bytes())))
}

fn sample() -> Tree {
    let mut tree = Tree::default();
    file(&mut tree, "/etc/passwd", "root\n");
    file(&mut tree, "/etc-more", "x");
    put(&mut tree, "/dev/null", Leaf::CharDevice(1, 3));
    put(&mut tree, "/link", Leaf::Symlink(b"etc".to_vec()));
    let one = file(&mut tree, "/a/one", "linked");
    let a = tree.lookup(b"/a").unwrap();
    tree.link(a, b"two", one);
    tree
}

/// Formats each difference as `PATH FIELD`, or with `+` or `-`.
fn shown(a: &Tree, b: &Tree, path: &str, ignored: &[Field]) -> Vec<String> {
    let (a, b) = (boxed(a.clone()), boxed(b.clone()));
    let tell = |difference: Difference<'_>| {
        let path = String::from_utf8_lossy(&difference.path);
        match difference.change {
            Change::Added(_) => format!("+{path}"),
            Change::Removed(_) => format!("-{path}"),
            Change::Changed(field, ..) => format!("{path} {}", field.name()),
        }
    };
    compare(&a, &b, path.as_bytes(), ignored).map(tell).collect()
}

#[test]
fn a_tree_does_not_differ_from_itself() {
    assert_eq!(shown(&sample(), &sample(), "/", &[]), [""; 0]);
}

#[test]
fn entries_of_one_side_are_reported_in_order() {
    let mut other = sample();
    other.unlink(Tree::ROOT, b"etc");
    file(&mut other, "/etc.d/x", "");
    let shown = |path| shown(&sample(), &other, path, &[]);
    assert_eq!(shown("/"), ["-/etc", "-/etc/passwd", "+/etc.d", "+/etc.d/x"]);
    assert_eq!(shown("etc"), ["-/etc", "-/etc/passwd"]);
    assert_eq!(shown("/etc.d/x"), ["+/etc.d/x"]);
    assert_eq!(shown("/dev"), [""; 0]);
}

#[test]
fn the_first_field_that_differs_is_reported() {
    type Edit = fn(&mut Tree);
    fn done<T>(_: T) {}
    fn meta<'t>(tree: &'t mut Tree, path: &str) -> &'t mut Meta {
        let (directory, name) = path.rsplit_once('/').unwrap();
        let directory = tree.lookup(directory.as_bytes()).unwrap();
        let id = tree.child(directory, name.as_bytes()).unwrap();
        &mut tree.inode_mut(id).meta
    }
    let edits: [(Edit, &str); 12] = [
        (|it| done(file(it, "/link", "")), "/link type"),
        (|it| meta(it, "/etc/passwd").mode = 0o600, "/etc/passwd mode"),
        (|it| meta(it, "/link").mode = 0o777, "/link mode"),
        (|it| meta(it, "/dev/null").uid = 1, "/dev/null uid"),
        (|it| meta(it, "/etc").gid = 1, "/etc gid"),
        (|it| done(file(it, "/etc-more", "xy")), "/etc-more size"),
        (|it| done(file(it, "/etc-more", "y")), "/etc-more content"),
        (|it| done(put(it, "/link", Leaf::Symlink(b"a".to_vec()))), "/link target"),
        (|it| done(put(it, "/dev/null", Leaf::CharDevice(1, 5))), "/dev/null device"),
        (|it| done(meta(it, "/etc").xattrs.insert(vec![b'x'], vec![])), "/etc xattrs"),
        (|it| meta(it, "/etc").mtime_nsec = 7, "/etc mtime"),
        (|it| done(put(it, "/dev/null", Leaf::BlockDevice(1, 3))), "/dev/null type"),
    ];
    for (edit, expected) in edits {
        let mut other = sample();
        edit(&mut other);
        assert_eq!(shown(&sample(), &other, "/", &[]), [expected]);
        assert_eq!(shown(&other, &sample(), "/", &[]), [expected]);
        let ignored: Vec<Field> =
            Field::ALL.into_iter().filter(|it| expected.ends_with(it.name())).collect();
        assert!(shown(&sample(), &other, "/", &ignored).len() < 2);
    }
}

#[test]
fn copies_are_no_hard_links() {
    let mut other = sample();
    file(&mut other, "/a/two", "linked");
    assert_eq!(shown(&sample(), &other, "/", &[]), ["/a/one hard-links", "/a/two hard-links"]);
    assert_eq!(shown(&sample(), &other, "/a/two", &[]), ["/a/two hard-links"]);
    assert_eq!(shown(&sample(), &other, "/", &[Field::HardLinks]), [""; 0]);
}

#[test]
fn the_attribute_that_differs_is_named() {
    let with = |pairs: &[(&str, &str)]| {
        let mut tree = Tree::default();
        let xattrs = &mut tree.inode_mut(Tree::ROOT).meta.xattrs;
        let bytes = |text: &str| text.as_bytes().to_vec();
        xattrs.extend(pairs.iter().map(|(name, value)| (bytes(name), bytes(value))));
        boxed(tree)
    };
    let named = |a: &[_], b: &[_]| {
        let (a, b) = (with(a), with(b));
        let found: Vec<_> = compare(&a, &b, b"/", &[]).collect();
        let Change::Changed(Field::Xattrs, a, b) = &found[0].change else { panic!("{found:?}") };
        a.inode.meta.differing_xattr(&b.inode.meta).map(<[u8]>::to_vec)
    };
    assert_eq!(named(&[("a", "1"), ("b", "1")], &[("a", "1"), ("b", "2")]), Some(vec![b'b']));
    assert_eq!(named(&[("b", "1")], &[("a", "1")]), Some(vec![b'a']));
    assert_eq!(named(&[("a", "1")], &[("a", "1"), ("c", "")]), Some(vec![b'c']));
}

#[test]
fn a_directory_of_the_host_is_a_tree() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir(path("sub")).unwrap();
    fs::write(path("sub/file"), "data").unwrap();
    fs::set_permissions(path("sub/file"), fs::Permissions::from_mode(0o4711)).unwrap();
    fs::hard_link(path("sub/file"), path("again")).unwrap();
    symlink("/nowhere", path("link")).unwrap();
    let side = Side::of_directory(directory.path()).unwrap();
    let entries: Vec<_> = side.entries(b"/", None).collect();
    let facts = entries.iter().map(|(path, entry)| {
        let target = entry.inode.target().map(String::from_utf8_lossy).unwrap_or_default();
        format!(
            "{} {} {} {target}",
            String::from_utf8_lossy(path),
            entry.inode.type_name(),
            entry.names
        )
    });
    let expected = ["/ directory 1 ", "/again file 2 ", "/link symlink 1 /nowhere"];
    let expected = [&expected[..], &["/sub directory 1 ", "/sub/file file 2 "]].concat();
    assert_eq!(facts.collect::<Vec<_>>(), expected);
    let (_, file) = &entries[4];
    assert_eq!((file.inode.content(), file.inode.meta.mode), (Some(&Content::of(b"data")), 0o4711));
    assert_eq!(file.first_name.map(|it| it.path()), Some(b"/again".to_vec()));
    assert!(file.origin.is_none());
}

#[test]
fn sockets_and_what_is_not_there_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let missing = Side::of_directory(&directory.path().join("missing")).unwrap_err();
    assert_eq!(missing.source.kind(), std::io::ErrorKind::NotFound);
    let path = directory.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let socket = Side::of_directory(directory.path()).unwrap_err();
    assert!(socket.source.to_string().starts_with("it is a socket"), "{}", socket.source);
}

#[test]
fn links_of_the_host_have_no_permissions() {
    let tree = |mode| {
        let mut tree = Tree::default();
        let link = put(&mut tree, "/link", Leaf::Symlink(b"x".to_vec()));
        tree.inode_mut(link).meta.mode = mode;
        tree
    };
    let (image, host) = (boxed(tree(0o755)), side(SideKind::Directory, tree(0o777)));
    assert_eq!(compare(&image, &host, b"/", &[]).count(), 0);
    assert_eq!(compare(&image, &boxed(tree(0o777)), b"/", &[]).count(), 1);
}

/// The possible entries of a generated tree.
fn leaf() -> impl Strategy<Value = Leaf> {
    prop_oneof![
        "[ab]{0,2}".prop_map(|data| Leaf::File(Content::of(data.as_bytes()))),
        "[ab]".prop_map(|target| Leaf::Symlink(target.into_bytes())),
        Just(Leaf::Fifo),
    ]
}

/// Generates trees from few names, so that two of them have much in common.
fn tree() -> impl Strategy<Value = Tree> {
    let entry = ("(/[ab]|/[ab]-|/d/[ab]|/d/e/[ab])", leaf(), any::<bool>());
    prop::collection::vec(entry, 0..8).prop_map(|entries| {
        let (mut tree, mut last) = (Tree::default(), None);
        for (path, leaf, linked) in entries {
            let id = put(&mut tree, &path, leaf);
            if let Some(last) = last.filter(|_| linked) {
                let (directory, name) = path.rsplit_once('/').unwrap();
                let directory = tree.make_directories(directory.as_bytes()).unwrap();
                tree.link(directory, name.as_bytes(), last);
            }
            last = Some(id);
        }
        tree
    })
}

proptest! {
    #[test]
    fn trees_differ_where_their_digests_do(a in tree(), b in tree()) {
        let same = a.digest() == b.digest();
        let forth = shown(&a, &b, "/", &[]);
        prop_assert_eq!(forth.is_empty(), same, "{:?}", forth);
        let back = shown(&b, &a, "/", &[]);
        let swapped = |it: &String| match it.split_at(1) {
            ("+", path) => format!("-{path}"),
            ("-", path) => format!("+{path}"),
            _ => it.clone(),
        };
        prop_assert_eq!(forth, back.iter().map(swapped).collect::<Vec<_>>());
    }
}
