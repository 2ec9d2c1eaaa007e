//! Flushing to the disk.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::parent::{flush, flush_names, open_directory, parent_of};

/// The maximum number of files and directories that are flushed one by one. For more, flushing the file system once is faster.
const MAX_EACH: usize = 512;

/// Makes a directory and its missing ancestors, with the permissions `mode`, masked by the umask, and flushes their
/// names.
///
/// # Errors
/// The operating system's error.
pub fn create_directories(path: &Path, mode: u32) -> io::Result<()> {
    if path == Path::new("") || path.is_dir() {
        return Ok(());
    }
    match create_directory(path, mode) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_directories(parent_of(path), mode)?;
            create_directory(path, mode)
        }
        made => made,
    }
}

fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        // Another process made it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        made => made.and_then(|()| flush_names(parent_of(path))),
    }
}

/// Flushes all files in a directory, and each directory after its entries.
///
/// If there are more than [`MAX_EACH`] entries, or one cannot be opened, it flushes the whole file system instead.
pub(super) fn flush_tree(root: &File) -> io::Result<()> {
    let mut left = MAX_EACH;
    if each(root.as_fd(), &mut left)? { Ok(()) } else { Ok(rustix::fs::syncfs(root)?) }
}

/// Flushes the entries of a directory and then the directory. Returns `false` if it has more than `left` entries or one
/// cannot be opened.
fn each(parent: BorrowedFd<'_>, left: &mut usize) -> io::Result<bool> {
    let Ok(entries) = Dir::read_from(parent) else { return Ok(false) };
    for entry in entries {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type());
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if *left == 0 {
            return Ok(false);
        }
        *left -= 1;
        let whole = match kind {
            FileType::Directory => match open_directory(parent, name) {
                Ok(opened) => each(opened.as_fd(), left)?,
                Err(_) => false,
            },
            FileType::RegularFile => flush_file(parent, name)?,
            FileType::Unknown => false,
            // Skip links, devices and pipes: they have no data apart from their directory entries.
            _ => true,
        };
        if !whole {
            return Ok(false);
        }
    }
    flush(parent).map(|()| true)
}

/// Flushes a regular file. Returns `false` if it cannot be opened.
fn flush_file(parent: BorrowedFd<'_>, name: &std::ffi::CStr) -> io::Result<bool> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(file) => Ok(rustix::fs::fsync(file).map(|()| true)?),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn small_and_large_trees_are_flushed() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("a/b");
        create_directories(&below, 0o700).unwrap();
        create_directories(&below, 0o700).unwrap();
        std::os::unix::fs::symlink("nowhere", below.join("link")).unwrap();
        let root = File::open(directory.path()).unwrap();
        for (files, whole) in [(10, true), (MAX_EACH, false)] {
            (0..files).for_each(|n| fs::write(below.join(n.to_string()), "").unwrap());
            assert_eq!(each(root.as_fd(), &mut MAX_EACH.clone()).unwrap(), whole);
            flush_tree(&root).unwrap();
        }
    }

    #[test]
    fn directories_cannot_be_made_below_a_file() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        let error = create_directories(&directory.path().join("file/a/b"), 0o700).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }
}
