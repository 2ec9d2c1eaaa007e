//! Reads each form of an export into a tree.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read, sink};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree::{Content, Leaf, Meta, Tree};
use erofs_rs::EroFS;
use erofs_rs::backend::SliceImage;
use oci_image::{Access, open};
use oci_layer::{Action, Change, Compression, LayerIndex, LayerSource, Limits, decode, flatten};

/// Makes a tree of entries. Each directory must come before its entries.
fn tree(changes: Vec<Change>) -> Tree {
    applied(&LayerIndex { changes, ..LayerIndex::default() })
}

fn applied(index: &LayerIndex) -> Tree {
    flatten(ComponentName::Agent, [(Digest::from_bytes([0; 32]), index)]).unwrap()
}

/// Reads a tar archive, as a layer.
pub(crate) fn of_tar(archive: &[u8]) -> Tree {
    let digest = box_digest::Digest::of(archive);
    let (size, compression) = (archive.len() as u64, Compression::None);
    of_layer(&LayerSource { digest, size, compression, diff_id: digest }, archive)
}

fn of_layer(layer: &LayerSource, blob: impl Read + Send) -> Tree {
    applied(&decode(layer, blob, &mut sink(), &mut sink(), &Limits::default()).unwrap())
}

/// Reads the image `latest`, which must have one layer, of an OCI layout.
pub(crate) fn of_oci(layout: &Path) -> Tree {
    let (path, tag) = (layout.display().to_string(), Some("latest".to_owned()));
    let reference = ImageRef::OciLayout { path, tag, digest: None };
    let access = Access { base: Path::new(""), registries: None };
    let image = open(&reference, None, Platform::LinuxAmd64, &access).unwrap();
    let [layer] = image.layers.as_slice() else { panic!("{:?}", image.layers) };
    of_layer(layer, image.open_layer(layer).unwrap())
}

/// Collects the entries of a file system, in which hard links share an inode number.
#[derive(Default)]
struct Entries {
    changes: Vec<Change>,
    first: HashMap<u64, Vec<u8>>,
}

impl Entries {
    /// Adds an entry. The second and further names of an inode become hard links to the first.
    fn add(&mut self, path: &[u8], inode: u64, action: impl FnOnce() -> Action) {
        let action = match self.first.get(&inode) {
            Some(first) => Action::HardLink(first.clone()),
            None => action(),
        };
        self.first.entry(inode).or_insert_with(|| path.to_vec());
        self.changes.push(Change { path: path.to_vec(), action });
    }
}

/// Reads an EROFS image with `erofs-rs`.
pub(crate) fn of_erofs(bytes: &[u8]) -> Tree {
    let image = EroFS::new(SliceImage::new(bytes)).unwrap();
    let root = image.get_inode(image.super_block().root_inode_id()).unwrap();
    let below = image.walk_dir("/").unwrap().map(|entry| {
        let entry = entry.unwrap();
        (entry.dir_entry.path().into_vec(), entry.inode)
    });
    let all: BTreeMap<Vec<u8>, _> = [(Vec::new(), root)].into_iter().chain(below).collect();
    let mut entries: Vec<_> = all.into_iter().collect();
    // Sorts each directory before its entries, and names bytewise.
    entries.sort_by(|(a, _), (b, _)| a.split(|c| *c == b'/').cmp(b.split(|c| *c == b'/')));
    let mut found = Entries::default();
    for (path, inode) in entries {
        let path = path.strip_prefix(b"/").unwrap_or(&path);
        let (mtime, mtime_nsec) = inode.modified_unix();
        let meta = Meta {
            mode: inode.permissions(),
            uid: inode.uid(),
            gid: inode.gid(),
            mtime,
            mtime_nsec,
            xattrs: image.xattrs_inode(inode).unwrap().into_iter().collect(),
        };
        let data = || {
            let file = image.open_inode_file(inode).unwrap();
            let mut bytes = vec![0; usize::try_from(inode.data_size()).unwrap()];
            let mut read = 0;
            while read < bytes.len() {
                read += file.read_at(&mut bytes[read..], read as u64).unwrap();
            }
            bytes
        };
        let device = || inode.device().unwrap();
        found.add(path, inode.id(), || match inode.file_type().as_raw_mode() {
            0o040_000 => Action::Directory(meta),
            0o100_000 => Action::Leaf(meta, Leaf::File(Content::of(&data()))),
            0o120_000 => {
                let target = image.read_link_inode(inode).unwrap().as_bytes().to_vec();
                Action::Leaf(meta, Leaf::Symlink(target))
            }
            0o020_000 => Action::Leaf(meta, Leaf::CharDevice(device().0, device().1)),
            0o060_000 => Action::Leaf(meta, Leaf::BlockDevice(device().0, device().1)),
            other => {
                assert_eq!(other, 0o010_000);
                Action::Leaf(meta, Leaf::Fifo)
            }
        });
    }
    tree(found.changes)
}

/// Reads a directory of the host.
pub(crate) fn of_directory(root: &Path) -> Tree {
    let mut entries = Entries::default();
    walk(root, b"", &mut entries);
    tree(entries.changes)
}

fn walk(root: &Path, path: &[u8], entries: &mut Entries) {
    let here = root.join(OsStr::from_bytes(path));
    let metadata = fs::symlink_metadata(&here).unwrap();
    let kind = metadata.file_type();
    let meta = Meta {
        mode: u16::try_from(metadata.mode() & 0o7777).unwrap(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime: metadata.mtime(),
        mtime_nsec: u32::try_from(metadata.mtime_nsec()).unwrap(),
        xattrs: xattrs(&here),
    };
    let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    entries.add(path, metadata.ino(), || {
        let leaf = match kind {
            kind if kind.is_dir() => return Action::Directory(meta),
            kind if kind.is_file() => Leaf::File(Content::of(&fs::read(&here).unwrap())),
            kind if kind.is_symlink() => {
                Leaf::Symlink(fs::read_link(&here).unwrap().as_os_str().as_bytes().to_vec())
            }
            kind if kind.is_char_device() => Leaf::CharDevice(major, minor),
            kind if kind.is_block_device() => Leaf::BlockDevice(major, minor),
            kind => {
                assert!(kind.is_fifo(), "{kind:?}");
                Leaf::Fifo
            }
        };
        Action::Leaf(meta, leaf)
    });
    if kind.is_dir() {
        let names = fs::read_dir(&here).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        for name in names {
            let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
            walk(root, &[path, slash, name.as_bytes()].concat(), entries);
        }
    }
}

fn xattrs(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 1 << 16];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap();
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let mut value = vec![0; 1 << 16];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}

/// Asserts that two trees are equal. The message shows the first entry that differs.
pub(crate) fn assert_same(found: &Tree, expected: &Tree) {
    let (found_lines, expected_lines) = (lines(found), lines(expected));
    let differing = found_lines.iter().zip(&expected_lines).find(|(a, b)| a != b);
    assert_eq!(differing, None);
    assert_eq!(found_lines.len(), expected_lines.len());
    assert_eq!(found.digest(), expected.digest());
}

fn lines(tree: &Tree) -> Vec<String> {
    let line = |(path, id): (Vec<u8>, _)| {
        let inode = tree.inode(id);
        let kind = match &inode.kind {
            box_tree::Kind::Directory(_) => "directory".to_owned(),
            box_tree::Kind::Leaf(leaf) => format!("{leaf:?}"),
        };
        format!("{} {:?} {kind}", path.escape_ascii(), inode.meta)
    };
    box_tree::entries(tree).map(line).collect()
}
