//! erofs-utils: `fsck.erofs` and `dump.erofs`, which the tests need.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use tempfile::{NamedTempFile, TempDir};

use crate::model::{Kind, Tree};

/// Runs a program of erofs-utils and returns its output. The program must succeed.
pub(crate) fn run(program: &str, arguments: &[&OsStr]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| {
        panic!("{program} could not be run ({error}): install erofs-utils 1.5 or later")
    });
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {}\n{text}", output.status);
    text
}

/// Checks an image with `fsck.erofs`.
pub(crate) fn check(image: &[u8]) {
    check_file(file(image).path());
}

/// Checks an image in a file with `fsck.erofs`, which must not even warn.
pub(crate) fn check_file(image: &Path) {
    let text = run("fsck.erofs", &["-d3".as_ref(), image.as_os_str()]);
    assert!(text.lines().all(|line| line.starts_with("<I>")), "{text}");
    assert!(text.ends_with("No errors found\n"), "{text}");
}

/// Extracts a tree's image with `fsck.erofs`, and compares the files with the tree.
///
/// Only root can restore owners and devices, and read files without read permission. For other users, the function adds
/// read permission to all files, and does not compare owners and devices. [`crate::reader`] always compares them.
pub(crate) fn check_extracted(tree: &Tree) {
    let target = TempDir::new().unwrap();
    let privileged = target.path().metadata().unwrap().uid() == 0;
    let tree = if privileged { tree.clone() } else { readable(tree.clone()) };
    let root = target.path().join("root");
    let mut extract = OsString::from("--extract=");
    extract.push(&root);
    let image = file(&tree.image().0);
    run("fsck.erofs", &[&extract, "--preserve-perms".as_ref(), image.path().as_ref()]);
    for (path, inode) in tree.paths() {
        let path = OsString::from_vec([root.as_os_str().as_bytes(), &path].concat());
        compare(&tree, inode, path.as_ref(), privileged);
    }
}

fn readable(mut tree: Tree) -> Tree {
    tree.inodes.iter_mut().for_each(|(meta, _)| meta.mode |= 0o700);
    tree
}

fn compare(tree: &Tree, inode: usize, path: &Path, privileged: bool) {
    let (meta, kind) = &tree.inodes[inode];
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(_) if !privileged && is_device(kind) => return,
        Err(error) => panic!("{path:?}: {error}"),
    };
    compare_kind(kind, &found, path);
    assert_eq!((found.mtime(), found.mtime_nsec()), (meta.mtime, meta.mtime_nsec.into()));
    if !found.is_symlink() {
        // Not compared: the set-id bits, which a change of the owner clears.
        assert_eq!(found.mode() & 0o1777, u32::from(meta.mode) & 0o1777, "{path:?}");
    }
    if privileged {
        assert_eq!((found.uid(), found.gid()), (meta.uid, meta.gid), "{path:?}");
    }
}

/// Joins a device's numbers as makedev(3) does.
fn device(major: u32, minor: u32) -> u64 {
    let (major, minor) = (u64::from(major), u64::from(minor));
    (minor & !0xFF) << 12 | major << 8 | minor & 0xFF
}

fn is_device(kind: &Kind) -> bool {
    matches!(kind, Kind::CharDevice(..) | Kind::BlockDevice(..))
}

fn compare_kind(kind: &Kind, found: &fs::Metadata, path: &Path) {
    let file_type = found.file_type();
    match kind {
        Kind::Directory => assert!(file_type.is_dir(), "{path:?}"),
        Kind::File(bytes) => {
            assert!(file_type.is_file(), "{path:?}");
            assert!(fs::read(path).unwrap() == *bytes, "{path:?}");
        }
        Kind::Symlink(target) => {
            assert_eq!(fs::read_link(path).unwrap().as_os_str().as_bytes(), target);
        }
        Kind::CharDevice(major, minor) => {
            assert!(file_type.is_char_device(), "{path:?}");
            assert_eq!(found.rdev(), device(*major, *minor), "{path:?}");
        }
        Kind::BlockDevice(major, minor) => {
            assert!(file_type.is_block_device(), "{path:?}");
            assert_eq!(found.rdev(), device(*major, *minor), "{path:?}");
        }
        Kind::Fifo => assert!(file_type.is_fifo(), "{path:?}"),
        Kind::Socket => assert!(file_type.is_socket(), "{path:?}"),
    }
}

/// Writes an image to a file that is deleted when the value is dropped.
pub(crate) fn file(image: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(image).unwrap();
    file
}
