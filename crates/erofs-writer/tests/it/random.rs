//! Writes random trees, and compares each image with its tree.

use std::collections::BTreeSet;

use erofs_writer::Meta;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::model::{Kind, Link, Tree};
use crate::{reader, tools};

/// An inode to add: its type, and its names. Each name has the index of its directory.
type Growth = (Meta, Kind, Vec<(prop::sample::Index, Vec<u8>)>);

/// Any tree of up to 40 inodes. Some have an additional directory of up to 1000 names.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let growth = (meta(), kind(), vec((any::<prop::sample::Index>(), name()), 1..4));
    let crowd = prop_oneof![3 => Just(0), 1 => 1..1000usize];
    (meta(), vec(growth, 0..40), crowd, 1..=255usize).prop_map(|(root, growths, crowd, length)| {
        let mut tree = grow(root, growths);
        add_crowd(&mut tree, crowd, length);
        tree
    })
}

/// Adds a directory with `count` names of up to `length` bytes. Each is a name of one of three inodes.
fn add_crowd(tree: &mut Tree, count: usize, length: usize) {
    if count == 0 {
        return;
    }
    let meta = crate::model::meta;
    let directory = tree.add(0, b"\x02crowd", meta(), Kind::Directory);
    let kinds = [Kind::Fifo, Kind::File(vec![1; 2048]), Kind::File(b"2".to_vec())];
    for (number, kind) in kinds.into_iter().enumerate() {
        tree.add(directory, format!("\x02{number}"), meta(), kind);
    }
    let first = tree.inodes.len() - 3;
    for number in 0..count {
        let width = 1 + number * 7 % length;
        let name = format!("{number:0width$}").into_bytes();
        tree.links.push(Link { directory, name, inode: first + number % 3 });
    }
}

fn grow(root: Meta, growths: Vec<Growth>) -> Tree {
    let mut tree = Tree { inodes: vec![(root, Kind::Directory)], links: Vec::new() };
    let mut directories: Vec<BTreeSet<Vec<u8>>> = vec![BTreeSet::new()];
    let mut numbers = vec![0];
    for (meta, kind, names) in growths {
        let inode = tree.inodes.len();
        let most = if kind == Kind::Directory { 1 } else { names.len() };
        let mut free = Vec::new();
        for (index, name) in names.into_iter().take(most) {
            let place = index.index(directories.len());
            if directories[place].insert(name.clone()) {
                free.push((place, name));
            }
        }
        if free.is_empty() {
            continue;
        }
        for (place, name) in free {
            tree.links.push(Link { directory: numbers[place], name, inode });
        }
        if kind == Kind::Directory {
            directories.push(BTreeSet::new());
            numbers.push(inode);
        }
        tree.inodes.push((meta, kind));
    }
    tree
}

/// Names of up to 255 bytes, of all bytes that are allowed. Bytes near `.`, and 1 and 255, are more frequent.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let any = (1..=255u8).prop_filter("a slash ends a name", |byte| *byte != b'/');
    let few = prop_oneof![Just(1), Just(b'-'), Just(b'.'), Just(b'0'), b'a'..b'e', Just(0xFF)];
    let byte = prop_oneof![3 => few, 1 => any];
    let name = prop_oneof![4 => vec(byte.clone(), 1..5), 1 => vec(byte, 200..=255)];
    name.prop_filter("`.` and `..` are taken", |name| !matches!(name.as_slice(), b"." | b".."))
}

/// Sizes of files on both sides of every border.
const BORDERS: [usize; 14] =
    [0, 1, 2, 2047, 2048, 2049, 4031, 4032, 4033, 4095, 4096, 4097, 8192, 8193];

fn kind() -> impl Strategy<Value = Kind> {
    let length = prop_oneof![3 => prop::sample::select(&BORDERS), 1 => 0..20000usize];
    // Few distinct bytes and lengths, so that contents are often equal.
    let file = (length, 0..2u8).prop_map(|(length, byte)| Kind::File(vec![byte; length]));
    let target = prop_oneof![1..100usize, 3900..=4095usize];
    prop_oneof![
        4 => Just(Kind::Directory),
        6 => file,
        2 => target.prop_map(|length| Kind::Symlink(vec![b't'; length])),
        1 => (0..4096u32, 0..1u32 << 20).prop_map(|(major, minor)| Kind::CharDevice(major, minor)),
        1 => (0..4096u32, 0..1u32 << 20).prop_map(|(major, minor)| Kind::BlockDevice(major, minor)),
        1 => Just(Kind::Fifo),
        1 => Just(Kind::Socket),
    ]
}

prop_compose! {
    /// Metadata within the limits of the file system to which the images are extracted.
    fn meta()(
        mode in 0..=0o7777u16,
        uid in prop_oneof![Just(0), 65535..70000u32, Just(u32::MAX - 1)],
        gid in prop_oneof![Just(0), 65535..70000u32, Just(u32::MAX - 1)],
        mtime in prop_oneof![Just(0), -(1i64 << 31)..1i64 << 33],
        mtime_nsec in prop_oneof![Just(0), 0..1_000_000_000u32],
        xattrs in xattrs(),
    ) -> Meta {
        Meta { mode, uid, gid, mtime, mtime_nsec, xattrs }
    }
}

fn xattrs() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let name = prop_oneof![
        "(user|trusted|security)\\.[a-c]{1,3}",
        Just("system.posix_acl_access".to_owned()),
        Just("user.".to_owned() + &"n".repeat(250)),
    ];
    let value = prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 3000..5000)];
    let some = btree_map(name.prop_map(String::into_bytes), value, 1..4);
    prop_oneof![3 => Just(Vec::new()), 1 => some.prop_map(|map| map.into_iter().rev().collect())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_image_says_what_its_tree_says(tree in tree()) {
        let (image, _) = tree.image();
        tools::check(&image);
        tools::check_extracted(&tree);
        reader::check(&tree, &image);
    }

    #[test]
    fn an_image_in_parts_says_what_its_tree_says(
        tree in tree(), last in any::<u64>(), behind in any::<u64>(),
    ) {
        let (image, rest) = tree.image_in_parts(last, behind);
        let image = [image, rest].concat();
        tools::check(&image);
        reader::check(&tree, &image);
    }
}
