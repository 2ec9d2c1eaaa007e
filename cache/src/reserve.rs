//! Space that a store and its copies leave to others: one large build must not fill the file system of a machine.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::fs::{StatVfs, fstatvfs};

use crate::error::IoContext;
use crate::{Store, StoreError};

/// The space that stays free is this part of the file system ...
const PART: u64 = 20;
/// ... but not more than this: a twentieth of a large disk is more than anybody has to keep.
const MAX_RESERVE: u64 = 1 << 30;
/// After so many bytes the free space is looked at again. What is smaller is written as long as there is space.
const STEP: u64 = 16 << 20;

impl Store {
    /// Checks that the store's file system has room for so many further bytes besides the space that stays free for others. Nothing
    /// is kept for them: who writes them counts once more.
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

/// Writes a file as long as enough space stays free.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Bytes since the free space was looked at.
    since: u64,
}

impl Reserve {
    /// Writes as [`Write::write`] does.
    ///
    /// # Errors
    /// The operating system's; [`io::ErrorKind::StorageFull`] also if too little space stays free.
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

/// Copies what is in a file to another one, by the kernel and without its bytes where that can be, as long as enough space stays
/// free.
///
/// # Errors
/// Those of [`Reserve::write`].
pub(crate) fn copy(from: &File, mut to: &File) -> io::Result<()> {
    loop {
        let copied = io::copy(&mut from.take(STEP), &mut to)?;
        check(to)?;
        if copied < STEP {
            return Ok(());
        }
    }
}

/// Checks the free space of the file system that a file is on.
fn check(file: &File) -> io::Result<()> {
    match space(file) {
        Some([size, free]) if free < reserved(size) => Err(io::ErrorKind::StorageFull.into()),
        _ => Ok(()),
    }
}

/// Returns the size and the free space of the file system that a file is on, in bytes; `None` for one that does not know how large
/// it is: once it is full, it says so itself.
fn space(file: &File) -> Option<[u64; 2]> {
    let StatVfs { f_blocks, f_bavail, f_frsize, .. } = fstatvfs(file).ok()?;
    let sizes = [f_blocks, f_bavail].map(|it| it.saturating_mul(f_frsize));
    (f_blocks > 0).then_some(sizes)
}

/// Returns the bytes that stay free on a file system of so many.
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
        // Others write to the same file system.
        assert!(needed == u64::MAX && free > 0 && free.abs_diff(all - reserved(size)) < 1 << 30);
    }
}
