//! Space that a store and its copies leave to others: one large build must not fill the file system of a machine.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::fs::fstatvfs;

/// The space that stays free is this part of the file system ...
const PART: u64 = 20;
/// ... but not more than this: a twentieth of a large disk is more than anybody has to keep.
const MOST: u64 = 1 << 30;
/// After so many bytes the free space is looked at again. What is smaller is written as long as there is space.
const STEP: u64 = 16 << 20;

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
    // Some file systems do not know how large they are; a full one says so itself.
    let Ok(state) = fstatvfs(file) else { return Ok(()) };
    let [size, free] = [state.f_blocks, state.f_bavail].map(|it| it.saturating_mul(state.f_frsize));
    if is_enough(size, free) { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
}

const fn is_enough(size: u64, free: u64) -> bool {
    let part = size / PART;
    free >= if part < MOST { part } else { MOST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_stays_free_and_not_more_than_a_gibibyte() {
        assert!(is_enough(20 << 20, 1 << 20) && !is_enough(20 << 20, (1 << 20) - 1));
        assert!(is_enough(1 << 40, 1 << 30) && !is_enough(1 << 40, (1 << 30) - 1));
        assert!(is_enough(0, 0));
    }
}
