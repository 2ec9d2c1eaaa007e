//! The ends of every range.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use erofs_rs::types::Layout;
use erofs_writer::{ContentId, Contents, ImageBuilder, Meta, Node};
use tempfile::NamedTempFile;

use crate::model::{Kind, Link, Store, Tree, meta};
use crate::{reader, tools};

fn check(tree: &Tree) -> Vec<u8> {
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
    // Small ones too: they share a block and do not follow their inodes.
    let small = Tree::flat((0..50).map(|n| (format!("{n}").into_bytes(), Kind::File(vec![2; 9]))));
    let (image, summary) = small.image();
    assert_eq!((summary.shared_bytes, image.len()), (49 * 9, 3 * 4096));
    check(&small);
    check(&files(&["a", "b", "c"]));
}

#[test]
fn hard_links_are_one_inode() {
    let mut tree = Tree::flat([(b"file".to_vec(), Kind::File(vec![3; 5000]))]);
    let directory = tree.add(0, b"directory", meta(), Kind::Directory);
    for number in 0..70_000 {
        let name = format!("{number}").into_bytes();
        tree.links.push(Link { directory, name, inode: 1 });
    }
    let (image, summary) = tree.image();
    assert_eq!((summary.inodes, summary.shared_bytes), (3, 0));
    tools::check(&image);
    let found = reader::paths(&reader::open(&image));
    assert_eq!(found[b"/file".as_slice()].nlink(), 70_001);
    assert_eq!(found[b"/directory/69999".as_slice()].id(), found[b"/file".as_slice()].id());
    assert_eq!(found.len(), 70_003);
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
    // `.` and `..` take 27 bytes and 14 names of 241 take 3542: 527 are left, for two entries of
    // 12 bytes and two names, of 251 and up to 252 bytes.
    for last in 240..=255 {
        let mut names: Vec<_> = (0..14).map(|n| format!("{n:0241}")).collect();
        names.push("x".repeat(251));
        names.push("y".repeat(last));
        let tree = Tree::flat(names.into_iter().map(|name| (name.into_bytes(), Kind::Fifo)));
        let image = check(&tree);
        let root = reader::paths(&reader::open(&image))[b"".as_slice()];
        let expected = if last <= 252 { 3844 + last as u64 } else { 4096 + 12 + last as u64 };
        assert_eq!(root.data_size(), expected, "{last}");
        // A whole block has no tail, and what is longer than 4032 bytes does not fit its inode.
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
fn a_directory_of_100_000_entries() {
    let names = (0..100_000).map(|number| format!("entry-{number}").into_bytes());
    let tree = Tree::flat(names.map(|name| (name, Kind::Fifo)));
    let (image, _) = tree.image();
    tools::check(&image);
    let image = reader::open(&image);
    let found = reader::paths(&image);
    assert!(found.keys().eq(tree.paths().keys()));
    // Finds it by its name, so by the order of the entries.
    let last = image.get_inode(found[b"/entry-99999".as_slice()].id()).unwrap();
    assert!(image.xattrs("/entry-99999").unwrap().is_empty());
    assert_eq!(last.nlink(), 1);
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
    // fsck.erofs recurses and cannot check the deeper one.
    tools::check(&chain(300));
    let depth = 100_000;
    let image = chain(depth);
    let image = reader::open(&image);
    let super_block = image.super_block();
    assert_eq!(super_block.inos, depth as u64 + 1);
    // Each directory follows its parent: `.`, `..` and `d` in 64 + 40 bytes, so 4 slots.
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

#[test]
fn extended_attributes_of_every_namespace_and_size() {
    let pair = |name: &str, length| (name.as_bytes().to_vec(), vec![b'v'; length]);
    let sets = [
        vec![pair("user.b", 1), pair("user.a", 0), pair("security.capability", 20)],
        vec![pair("trusted.overlay.opaque", 1), pair("system.posix_acl_access", 28)],
        vec![pair("system.posix_acl_default", 28), pair(&format!("user.{:0250}", 0), 300)],
        vec![pair("user.block", 4096), pair("user.most", 65535), pair("user.small", 1)],
    ];
    let mut tree = Tree::flat([]);
    for (number, xattrs) in (0..).zip(sets) {
        for (kind, letter) in [
            (Kind::Directory, 'd'),
            (Kind::File(vec![number; 100]), 'f'),
            (Kind::Symlink(vec![b'x'; 3000]), 'l'),
            (Kind::Fifo, 'p'),
        ] {
            let meta = Meta { xattrs: xattrs.clone(), ..meta() };
            tree.add(0, format!("{letter}{number}"), meta, kind);
        }
    }
    check(&tree);
}

/// Every number of inodes up to two blocks of them, so that one ends where its block does.
#[test]
fn images_that_end_with_an_inode() {
    for count in 0..130 {
        let names = (0..count).map(|number| format!("{number:03}").into_bytes());
        tools::check(&Tree::flat(names.map(|name| (name, Kind::Fifo))).image().0);
    }
}

/// A file that leaves out the blocks of zero bytes.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() < ZEROS.len() {
            return self.0.write(bytes);
        }
        self.0.seek(SeekFrom::Current(bytes.len() as i64))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

/// Zero bytes, and an `x` at the end.
struct Zeros;

impl Contents for Zeros {
    fn copy(&mut self, _: &ContentId, size: u64, out: &mut dyn Write) -> io::Result<()> {
        for _ in 0..size / ZEROS.len() as u64 {
            out.write_all(&ZEROS)?;
        }
        out.write_all(b"x")
    }
}

#[test]
fn a_file_over_4_gib() {
    let size = (5 << 30) + 1;
    let mut builder = ImageBuilder::new(meta());
    for (name, size, id) in [(b"big", size, 1), (b"end", (1 << 20) + 1, 2)] {
        let node = Node::File { size, content: ContentId([id; 32]) };
        let id = builder.add(meta(), node).unwrap();
        builder.link(builder.root(), name, id).unwrap();
    }
    let image = NamedTempFile::new().unwrap();
    let mut out = Sparse(image.reopen().unwrap());
    let summary = builder.write(&mut out, &mut Zeros).unwrap();
    assert_eq!(summary.size, out.0.metadata().unwrap().len());
    tools::check_file(image.path());
    let text = tools::run("dump.erofs", &["--path=/big".as_ref(), image.path().as_ref()]);
    assert!(text.contains(&format!("Size: {size} ")), "{text}");
    let text =
        tools::run("dump.erofs", &["-e".as_ref(), "--path=/end".as_ref(), image.path().as_ref()]);
    let start = 2 * 4096 + size.next_multiple_of(4096);
    assert!(text.contains(&format!("{start}..")), "{text}");
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

/// The store of the model is what the other tests rely on.
#[test]
fn equal_bytes_have_one_id() {
    let mut store = Store::default();
    assert_eq!(store.put(b"a"), store.put(b"a"));
    assert_ne!(store.put(b"a"), store.put(b"b"));
}
