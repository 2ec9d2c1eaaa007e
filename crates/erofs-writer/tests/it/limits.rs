//! The greatest number that the format can express, and one more.

use erofs_writer::{Error, ImageBuilder, Meta, Node};

use crate::boundaries::check;
use crate::model::{Kind, Link, Tree, meta};
use crate::{reader, tools};

/// A tree with a file that has `names` names.
fn linked(names: usize) -> Tree {
    let mut tree = Tree::flat([(b"file".to_vec(), Kind::File(vec![3; 5000]))]);
    let directory = tree.add(0, b"directory", meta(), Kind::Directory);
    for number in 1..names {
        let name = format!("{number}").into_bytes();
        tree.links.push(Link { directory, name, inode: 1 });
    }
    tree
}

/// The compact form of inodes, which is not written, has only 16 bits for the number of names.
#[test]
fn hard_links_are_counted_beyond_16_bits() {
    for names in [65_535, 65_536, 65_537] {
        let (image, summary) = linked(names).image();
        assert_eq!((summary.inodes, summary.shared_bytes), (3, 0));
        tools::check(&image);
        let found = reader::paths(&reader::open(&image));
        let file = found[b"/file".as_slice()];
        assert_eq!(file.nlink() as usize, names);
        assert_eq!(found.len(), 2 + names);
        let aliases = found.values().filter(|inode| inode.id() == file.id());
        assert_eq!(aliases.count(), names);
    }
}

#[test]
fn subdirectories_are_counted_beyond_16_bits() {
    let names = (0..65_536).map(|number| format!("{number:x}").into_bytes());
    let tree = Tree::flat(names.map(|name| (name, Kind::Directory)));
    let (image, _) = tree.image();
    tools::check(&image);
    let found = reader::paths(&reader::open(&image));
    assert_eq!(found[b"".as_slice()].nlink(), 2 + 65_536);
    assert_eq!(found.len(), 1 + 65_536);
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
    // `erofs-rs` finds the name with a binary search, so the entries are sorted.
    let last = image.get_inode(found[b"/entry-99999".as_slice()].id()).unwrap();
    assert!(image.xattrs("/entry-99999").unwrap().is_empty());
    assert_eq!(last.nlink(), 1);
}

/// 100,000 names of 255 bytes: 25 MiB of one directory.
#[test]
fn a_directory_of_100_000_of_the_longest_names() {
    let names = (0..100_000).map(|number| format!("{number:0255}").into_bytes());
    let mut tree = Tree::flat([]);
    let inode = tree.add(0, b"fifo", meta(), Kind::Fifo);
    tree.links.extend(names.map(|name| Link { directory: 0, name, inode }));
    let (image, _) = tree.image();
    tools::check(&image);
    let image = reader::open(&image);
    let root = image.get_inode(image.super_block().root_inode_id()).unwrap();
    // 15 entries fit into a block.
    assert_eq!(root.data_size().div_ceil(4096), 100_000_u64.div_ceil(15));
    for number in [0, 14, 15, 49_999, 99_999] {
        assert!(image.xattrs(format!("/{number:0255}")).unwrap().is_empty());
    }
    assert!(image.xattrs(format!("/{:0255}", 100_000)).is_err());
}

#[test]
fn a_name_of_256_bytes_is_refused() {
    let mut builder = ImageBuilder::new(meta()).unwrap();
    let fifo = builder.add(meta(), Node::Fifo).unwrap();
    let error = builder.link(builder.root(), &[b'n'; 256], fifo).unwrap_err();
    assert!(matches!(error, Error::InvalidName { .. }), "{error}");
    builder.link(builder.root(), &[b'n'; 255], fifo).unwrap();
}

fn pair(name: &str, length: usize) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), vec![b'v'; length])
}

#[test]
fn extended_attributes_of_every_namespace_and_size() {
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

/// A tree of a directory, a file, a symlink and a pipe with these attributes.
fn bearers(xattrs: &[(Vec<u8>, Vec<u8>)]) -> Tree {
    let mut tree = Tree::flat([]);
    let meta = Meta { xattrs: xattrs.to_vec(), ..meta() };
    tree.inodes[0].0 = meta.clone();
    for (name, kind) in [
        ("d", Kind::Directory),
        ("f", Kind::File(b"behind them".to_vec())),
        ("l", Kind::Symlink(b"target".to_vec())),
        ("p", Kind::Fifo),
    ] {
        tree.add(0, name, meta.clone(), kind);
    }
    tree
}

fn refusal(xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Error {
    let mut builder = ImageBuilder::new(meta()).unwrap();
    builder.add(Meta { xattrs, ..meta() }, Node::Fifo).unwrap_err()
}

#[test]
fn attribute_names_have_at_most_255_bytes() {
    for prefix in ["user.", "trusted.", "security."] {
        let name = |length| format!("{prefix}{}", "n".repeat(length - prefix.len()));
        check(&bearers(&[pair(&name(255), 1), pair(&name(prefix.len() + 1), 0)]));
        let error = refusal(vec![pair(&name(256), 1)]);
        assert!(matches!(error, Error::InvalidXattr { .. }), "{error}");
        let error = refusal(vec![pair(prefix, 1)]);
        assert!(matches!(error, Error::InvalidXattr { .. }), "{error}");
    }
}

#[test]
fn attribute_values_have_at_most_65535_bytes() {
    for length in [0, 1, 4095, 4096, 4097, 65_534, 65_535] {
        check(&bearers(&[pair("user.value", length)]));
    }
    let error = refusal(vec![pair("user.value", 65_536)]);
    assert!(matches!(error, Error::InvalidXattr { .. }), "{error}");
}

/// `i_xattr_icount` counts to 65535: a header of 12 bytes and 65534 times 4 bytes.
#[test]
fn the_attributes_of_an_inode_have_at_most_262148_bytes() {
    // A head of 4 bytes, a name of 1 byte after its prefix and this value: 65536 bytes.
    let three = ["user.a", "user.b", "user.c"].map(|name| pair(name, 65_531));
    let with = |last| [three.as_slice(), &[pair("user.d", last)]].concat();
    let most = 262_148 - 12 - 3 * 65_536 - 5;
    for last in [most - 4, most] {
        check(&bearers(&with(last)));
    }
    let error = refusal(with(most + 1));
    assert!(matches!(error, Error::XattrsTooLarge { size: 262_152 }), "{error}");
    // Many small attributes: each has a head of 4 bytes, a name of 4 bytes after its prefix, and no value.
    let many = |count| (0..count).map(|n| pair(&format!("user.{n:04x}"), 0)).collect::<Vec<_>>();
    check(&bearers(&many(32_767)));
    let error = refusal(many(32_768));
    assert!(matches!(error, Error::XattrsTooLarge { size: 262_156 }), "{error}");
}
