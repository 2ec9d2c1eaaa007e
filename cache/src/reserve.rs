//! The disk space that a store leaves to other programs, so that a large build does not fill the host's file system.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::fs::{StatVfs, fstatvfs};

use crate::error::IoContext;
use crate::{Store, StoreError};

/// The reserve is this fraction of the file system: a twentieth.
const PART: u64 = 20;
/// The reserve is at most this many bytes, because a twentieth of a large disk would be too much.
const MAX_RESERVE: u64 = 1 << 30;
/// The number of bytes after which the free space is checked again. Smaller files are written without a check.
const STEP: u64 = 16 << 20;

impl Store {
    /// Checks that the store's file system has room for `needed` more bytes besides the reserve. The space is not allocated, and
    /// is checked again when the bytes are written.
    ///
    /// # Errors
    /// [`StoreError::NoRoom`], and [`StoreError::File`].
    pub fn check_space(&self, needed: u64) -> Result<(), StoreError> {
        let root = self.root();
        let directory = File::open(root).context("open", root)?;
        let Some([size, free]) = space(&directory) else { return Ok(()) };
        let free = free.saturating_sub(reserved(size));
        if needed <= free {
            return Ok(());
        }
        Err(StoreError::NoRoom { root: root.to_owned(), needed, free })
    }
}

/// Writes a file, and fails if less than the reserve stays free.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// The number of bytes since the last check.
    since: u64,
}

impl Reserve {
    /// Writes like [`Write::write`].
    ///
    /// # Errors
    /// An I/O error, also [`io::ErrorKind::StorageFull`] if the reserve would be used.
    pub(crate) fn write(&mut self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        let written = file.write(bytes)?;
        self.since += written as u64;
        if self.since >= STEP {
            self.since = 0;
            check(file)?;
        }
        Ok(written)
    }
}

/// Copies a file, and fails if less than the reserve stays free. [`io::copy`] uses
/// [copy_file_range(2)](https://man7.org/linux/man-pages/man2/copy_file_range.2.html), with which both files can share the bytes
/// on the disk.
///
/// # Errors
/// The errors of [`Reserve::write`].
pub(crate) fn copy(from: &File, mut to: &File) -> io::Result<()> {
    loop {
        let copied = io::copy(&mut from.take(STEP), &mut to)?;
        check(to)?;
        if copied < STEP {
            return Ok(());
        }
    }
}

/// Checks that the reserve of a file's file system is free.
fn check(file: &File) -> io::Result<()> {
    match space(file) {
        Some([size, free]) if free < reserved(size) => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Returns the size and the free space of a file's file system in bytes. Returns `None` if the size is unknown. The file system
/// then reports when it is full.
fn space(file: &File) -> Option<[u64; 2]> {
    let StatVfs { f_blocks, f_bavail, f_frsize, .. } = fstatvfs(file).ok()?;
    let sizes = [f_blocks, f_bavail].map(|it| it.saturating_mul(f_frsize));
    (f_blocks > 0).then_some(sizes)
}

/// Returns the number of bytes to leave free on a file system of `size` bytes.
const fn reserved(size: u64) -> u64 {
    let part = size / PART;
    if part < MAX_RESERVE { part } else { MAX_RESERVE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_stays_free_and_not_more_than_a_gibibyte() {
        assert_eq!([0, 20 << 20, 1 << 40].map(reserved), [0, 1 << 20, 1 << 30]);
    }

    #[test]
    fn what_has_no_room_is_refused_with_both_sizes() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.check_space(0).unwrap();
        store.check_space(1 << 20).unwrap();
        let error = store.check_space(u64::MAX).unwrap_err();
        let [size, all] = space(&File::open(directory.path()).unwrap()).unwrap();
        let StoreError::NoRoom { needed, free, .. } = error else { panic!("{error}") };
        // Other processes write to the same file system.
        assert!(needed == u64::MAX && free > 0 && free.abs_diff(all - reserved(size)) < 1 << 30);
    }
}
