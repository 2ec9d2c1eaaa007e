//! Reads an image back with the crate `erofs-rs`, and compares it with the tree.

use std::collections::{BTreeMap, HashMap};

use erofs_rs::EroFS;
use erofs_rs::backend::SliceImage;
use erofs_rs::types::Inode;

use crate::model::{Kind, Tree};

type Image<'a> = EroFS<SliceImage<'a>>;

/// Opens an image.
pub(crate) fn open(image: &[u8]) -> Image<'_> {
    EroFS::new(SliceImage::new(image)).unwrap()
}

/// Returns the inode of each path. The root's path is empty.
pub(crate) fn paths(image: &Image<'_>) -> BTreeMap<Vec<u8>, Inode> {
    let root = image.get_inode(image.super_block().root_inode_id()).unwrap();
    let below = image.walk_dir("/").unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.dir_entry.path().into_vec(), entry.inode)
    });
    [(Vec::new(), root)].into_iter().chain(below).collect()
}

/// Compares an image with its tree.
pub(crate) fn check(tree: &Tree, bytes: &[u8]) {
    let image = open(bytes);
    let found = paths(&image);
    let expected = tree.paths();
    assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
    let mut numbers = HashMap::new();
    for (path, &inode) in &expected {
        let read = found[path];
        assert_eq!(*numbers.entry(inode).or_insert(read.id()), read.id(), "{path:?}");
        compare(tree, inode, &image, read);
    }
    let mut distinct: Vec<_> = numbers.into_values().collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), tree.inodes.len());
}

fn compare(tree: &Tree, inode: usize, image: &Image<'_>, read: Inode) {
    let (meta, kind) = &tree.inodes[inode];
    assert_eq!(read.permissions(), meta.mode);
    assert_eq!((read.uid(), read.gid()), (meta.uid, meta.gid));
    assert_eq!(read.modified_unix(), (meta.mtime, meta.mtime_nsec));
    assert_eq!(read.nlink() as usize, tree.nlink(inode));
    assert!(image.xattrs_inode(read).unwrap().into_iter().eq(sorted(&meta.xattrs)));
    assert_eq!(read.file_type().as_raw_mode(), file_type(kind));
    match kind {
        Kind::File(bytes) => assert!(content(image, read) == *bytes),
        Kind::Symlink(target) => {
            assert_eq!(image.read_link_inode(read).unwrap().as_bytes(), target);
        }
        Kind::CharDevice(major, minor) | Kind::BlockDevice(major, minor) => {
            assert_eq!(read.device(), Some((*major, *minor)));
        }
        Kind::Directory | Kind::Fifo | Kind::Socket => {}
    }
}

fn file_type(kind: &Kind) -> u32 {
    match kind {
        Kind::Directory => 0o040_000,
        Kind::File(_) => 0o100_000,
        Kind::Symlink(_) => 0o120_000,
        Kind::CharDevice(..) => 0o020_000,
        Kind::BlockDevice(..) => 0o060_000,
        Kind::Fifo => 0o010_000,
        Kind::Socket => 0o140_000,
    }
}

fn sorted(xattrs: &[(Vec<u8>, Vec<u8>)]) -> BTreeMap<Vec<u8>, Vec<u8>> {
    xattrs.iter().cloned().collect()
}

fn content(image: &Image<'_>, inode: Inode) -> Vec<u8> {
    let file = image.open_inode_file(inode).unwrap();
    let mut bytes = vec![0; usize::try_from(inode.data_size()).unwrap()];
    let mut read = 0;
    while read < bytes.len() {
        read += file.read_at(&mut bytes[read..], read as u64).unwrap();
    }
    bytes
}
