//! Unpacks an image with umoci, and lists the tree.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::sync::Once;

use box_digest::Blake3Digest;
use rustix::fs::{lgetxattr, llistxattr, major, minor};
use testbed::prerequisites::{Package, packages};
use testbed::program;

use crate::listing::{Entry, Kind, Listing, with_first_names};

/// Unpacks an image and lists the result. An error contains umoci's message.
pub(crate) fn unpacked(layout: &Path, tag: &str) -> Result<Listing, String> {
    let directory = tempfile::tempdir().unwrap();
    let rootfs = directory.path().join("rootfs");
    unpack(layout, tag, &rootfs)?;
    Ok(walk(&rootfs))
}

/// Unpacks an image into a new directory.
///
/// The umask is set to 022, because umoci applies it to directories without an entry.
pub(crate) fn unpack(layout: &Path, tag: &str, rootfs: &Path) -> Result<(), String> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| packages(&[Package::Umoci], &mut |line| println!("{line}")).unwrap());
    let image = format!("{}:{tag}", layout.display());
    let mut umoci = Command::new("sh");
    umoci.args(["-c", "umask 022; exec umoci raw unpack --image \"$0\" \"$1\"", &image]);
    program::run(umoci.arg(rootfs)).map(drop).map_err(|error| error.to_string())
}

/// Lists a directory on the disk.
pub(crate) fn walk(root: &Path) -> Listing {
    let mut found = BTreeMap::new();
    let mut pending = vec![b"/".to_vec()];
    while let Some(path) = pending.pop() {
        let file = root.join(OsStr::from_bytes(&path[1..]));
        let metadata = fs::symlink_metadata(&file).unwrap();
        if metadata.is_dir() {
            let below = fs::read_dir(&file).unwrap().map(|entry| {
                let directory = path.strip_suffix(b"/").unwrap_or(&path);
                [directory, b"/", entry.unwrap().file_name().as_bytes()].concat()
            });
            pending.extend(below);
        }
        found.insert(path, (entry(&file, &metadata), metadata.ino()));
    }
    with_first_names(found)
}

fn entry(file: &Path, metadata: &Metadata) -> Entry {
    let kind = kind(metadata);
    let is_device = matches!(kind, Kind::CharDevice | Kind::BlockDevice);
    Entry {
        kind,
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        size: if kind == Kind::File { metadata.size() } else { 0 },
        target: match kind {
            Kind::Symlink => fs::read_link(file).unwrap().into_os_string().as_bytes().to_vec(),
            _ => Vec::new(),
        },
        xattrs: xattrs(file),
        device: match metadata.rdev() {
            number if is_device => (major(number), minor(number)),
            _ => (0, 0),
        },
        content: (kind == Kind::File).then(|| content(file)),
        first_name: Vec::new(),
    }
}

fn kind(metadata: &Metadata) -> Kind {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => Kind::Directory,
        () if kind.is_file() => Kind::File,
        () if kind.is_symlink() => Kind::Symlink,
        () if kind.is_char_device() => Kind::CharDevice,
        () if kind.is_block_device() => Kind::BlockDevice,
        () if kind.is_fifo() => Kind::Fifo,
        () => Kind::Other,
    }
}

fn content(file: &Path) -> Blake3Digest {
    Blake3Digest::of_reader(File::open(file).unwrap()).unwrap().0
}

fn xattrs(file: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let length = llistxattr(file, &mut names[..]).unwrap();
    let names = names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let value = |name: &[u8]| {
        let mut value = vec![0; 64 << 10];
        let length = lgetxattr(file, CString::new(name).unwrap(), &mut value[..]).unwrap();
        value.truncate(length);
        (name.to_vec(), value)
    };
    names.map(value).collect()
}
