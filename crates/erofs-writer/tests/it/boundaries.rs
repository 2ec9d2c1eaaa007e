//! Both sides of every boundary of the format.

use erofs_rs::types::Layout;
use erofs_writer::Meta;

use crate::model::{Kind, Store, Tree, meta};
use crate::{reader, tools};

/// Writes the image, and compares it with the tree with `fsck.erofs` and with `erofs-rs`.
pub(crate) fn check(tree: &Tree) -> Vec<u8> {
    let (image, _) = tree.image();
    tools::check(&image);
    tools::check_extracted(tree);
    reader::check(tree, &image);
    image
}

#[test]
fn the_smallest_image_has_two_blocks() {
    assert_eq!(check(&Tree::flat([])).len(), 2 * 4096);
}

#[test]
fn files_around_the_limits_of_blocks_and_of_inline_data() {
    let sizes = [0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193];
    let file = |size| (format!("{size:05}").into_bytes(), Kind::File(vec![b'0'; size]));
    let image = check(&Tree::flat(sizes.map(file)));
    let found = reader::paths(&reader::open(&image));
    let inline: Vec<_> = sizes
        .into_iter()
        .filter(|size| {
            let layout = found[format!("/{size:05}").as_bytes()].layout();
            layout == Some(Layout::FlatInline)
        })
        .collect();
    assert_eq!(inline, [1, 2047, 2048]);
}

#[test]
fn equal_contents_are_stored_once() {
    let files = |names: &[&str]| {
        Tree::flat(names.iter().map(|name| (name.as_bytes().to_vec(), Kind::File(vec![1; 9000]))))
    };
    let (one, two) = (files(&["a"]).image(), files(&["a", "b"]).image());
    assert_eq!((one.1.shared_bytes, two.1.shared_bytes), (0, 9000));
    assert_eq!((one.0.len(), two.0.len()), (5 * 4096, 5 * 4096));
    // Small files follow their inodes, and are stored once for each inode: one in the root's block, and then two in
    // each block.
    let small =
        Tree::flat((0..50).map(|n| (format!("{n}").into_bytes(), Kind::File(vec![2; 1900]))));
    let (image, summary) = small.image();
    assert_eq!((summary.shared_bytes, image.len()), (0, 27 * 4096));
    check(&small);
    check(&files(&["a", "b", "c"]));
}

#[test]
fn symlink_targets_up_to_the_longest_that_linux_follows() {
    let lengths = [1, 59, 60, 4031, 4032, 4033, 4094, 4095];
    let link = |length| (format!("{length}").into_bytes(), Kind::Symlink(vec![b'x'; length]));
    let image = check(&Tree::flat(lengths.map(link)));
    let found = reader::paths(&reader::open(&image));
    assert_eq!(found[b"/4032".as_slice()].layout(), Some(Layout::FlatInline));
    assert_eq!(found[b"/4033".as_slice()].layout(), Some(Layout::FlatPlain));
}

#[test]
fn directories_around_the_size_of_a_block() {
    // `.` and `..` take 27 bytes, and 14 names of 241 bytes take 3542. 527 bytes are left for two entries of 12 bytes
    // and two names, of 251 and up to 252 bytes.
    for last in 240..=255 {
        let mut names: Vec<_> = (0..14).map(|n| format!("{n:0241}")).collect();
        names.push("x".repeat(251));
        names.push("y".repeat(last));
        let tree = Tree::flat(names.into_iter().map(|name| (name.into_bytes(), Kind::Fifo)));
        let image = check(&tree);
        let root = reader::paths(&reader::open(&image))[b"".as_slice()];
        let expected = if last <= 252 { 3844 + last as u64 } else { 4096 + 12 + last as u64 };
        assert_eq!(root.data_size(), expected, "{last}");
        // A whole block has no tail, and a tail of more than 4032 bytes does not fit its inode's block.
        let inline = last > 252;
        assert_eq!(root.layout() == Some(Layout::FlatInline), inline, "{last}");
    }
}

#[test]
fn names_of_every_byte_and_length() {
    let bytes = (1..=255).filter(|byte| !b"./".contains(byte)).map(|byte| vec![byte]);
    let lengths = (2..=255).map(|length| vec![b'n'; length]);
    let dots = [b"...".to_vec(), b".a".to_vec(), b"..a".to_vec(), b".-".to_vec()];
    let names = bytes.chain(lengths).chain(dots);
    check(&Tree::flat(names.map(|name| (name, Kind::Fifo))));
}

#[test]
fn trees_are_as_deep_as_they_like() {
    let chain = |depth: usize| {
        let mut tree = Tree::flat([]);
        for parent in 0..depth {
            tree.add(parent, b"d", meta(), Kind::Directory);
        }
        tree.image().0
    };
    // `fsck.erofs` recurses, and cannot check a tree of 100,000 directories.
    tools::check(&chain(300));
    let depth = 100_000;
    let image = chain(depth);
    let image = reader::open(&image);
    let super_block = image.super_block();
    assert_eq!(super_block.inos, depth as u64 + 1);
    // Each directory follows its parent. Its inode and `.`, `..` and `d` take 64 + 40 bytes, so 4 slots.
    let deepest = image.get_inode(super_block.root_inode_id() + 4 * depth as u64);
    let deepest = deepest.unwrap();
    assert_eq!((deepest.nlink(), deepest.data_size()), (2, 27));
}

#[test]
fn owners_times_and_modes_take_their_whole_range() {
    let mut tree = Tree::flat([]);
    for (number, mtime) in [i64::MIN, -1, 0, i64::MAX].into_iter().enumerate() {
        let all = Meta { mode: 0o7777, uid: u32::MAX, gid: u32::MAX, mtime, ..meta() };
        let all = Meta { mtime_nsec: 999_999_999, ..all };
        tree.add(0, format!("{number}"), all, Kind::Directory);
    }
    tree.add(0, b"c", meta(), Kind::CharDevice(4095, 1_048_575));
    tree.add(0, b"b", meta(), Kind::BlockDevice(0, 256));
    let (image, _) = tree.image();
    tools::check(&image);
    reader::check(&tree, &image);
}

/// Images with up to two blocks of inodes, so that in some the last inode ends with its block.
#[test]
fn images_that_end_with_an_inode() {
    for count in 0..130 {
        let names = (0..count).map(|number| format!("{number:03}").into_bytes());
        tools::check(&Tree::flat(names.map(|name| (name, Kind::Fifo))).image().0);
    }
}

#[test]
fn dump_erofs_shows_the_superblock() {
    let tree = Tree::flat([(b"a".to_vec(), Kind::File(vec![1; 5000]))]);
    let (image, _) = tree.image();
    let file = tools::file(&image);
    let text = tools::run("dump.erofs", &["-s".as_ref(), file.path().as_ref()]);
    for line in [
        "Filesystem blocks: 4",
        "Filesystem root nid: 128",
        "Filesystem inode count: 2",
        "Filesystem created: Thu Jan 1 00:00:00 1970",
        "Filesystem features: sb_csum mtime",
    ] {
        let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(squeezed.contains(line), "{line}: {text}");
    }
}

/// The other tests rely on this property of the model's store.
#[test]
fn equal_bytes_have_one_id() {
    let mut store = Store::default();
    assert_eq!(store.put(b"a"), store.put(b"a"));
    assert_ne!(store.put(b"a"), store.put(b"b"));
}
