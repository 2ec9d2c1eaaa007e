#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod crc;
mod directory;
mod error;
mod fields;
mod group;
mod inode;
mod journal;
mod layout;
mod parts;
mod superblock;

#[doc = include_str!("../FORMAT.md")]
pub mod description {}

use std::fs::File;
use std::os::unix::fs::FileExt as _;

pub use error::Error;

/// Bytes of a block.
const BLOCK: usize = 4096;
/// Bytes of a block, as a distance in the file.
const BLOCK_SIZE: u64 = BLOCK as u64;

/// The least size of a file system without a journal, in bytes.
pub const MIN_SIZE: u64 = 1 << 20;
/// The least size of a file system with a journal, in bytes.
pub const MIN_SIZE_WITH_JOURNAL: u64 = 8 << 20;
/// The largest size of a file system, in bytes: blocks are numbered with 32 bits.
pub const MAX_SIZE: u64 = u32::MAX as u64 * BLOCK_SIZE;

/// The options of a file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The volume's UUID, which must not be nil. It is the seed of checksums and of directory hashes.
    pub uuid: [u8; 16],
    /// Whether there is a journal, for a file system that must survive a sudden stop of the VM.
    pub journal: bool,
    /// The user and the group that own the root directory.
    pub root_owner: (u32, u32),
    /// The permissions of the root directory: at most `0o7777`.
    pub root_mode: u16,
}

/// Makes an empty ext4 file system of `size` bytes in an empty file, which stays sparse.
///
/// The file gets the size, rounded down to a multiple of 4096. The file system may be up to 3 MiB shorter, if its last
/// group would have less than 200 KiB for files.
///
/// # Errors
/// The size or an option is out of range, or the file is not empty: then the file is unchanged. If a write fails, the
/// file contains an incomplete file system.
pub fn format(file: &File, size: u64, options: &Options) -> Result<(), Error> {
    options.check()?;
    let parts = parts::plan(size, options)?;
    let length = file.metadata()?.len();
    if length != 0 {
        return Err(Error::NotEmpty { length });
    }
    file.set_len(size - size % BLOCK_SIZE)?;
    for part in parts {
        file.write_all_at(&part.bytes, u64::from(part.block) * BLOCK_SIZE)?;
    }
    Ok(())
}

impl Options {
    fn check(&self) -> Result<(), Error> {
        if self.uuid == [0; 16] {
            return Err(Error::NilUuid);
        }
        if self.root_mode > 0o7777 {
            return Err(Error::InvalidMode { mode: self.root_mode });
        }
        Ok(())
    }
}
