#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod directory;
mod error;
mod identity;
mod inode;
mod layout;
mod read;
mod sink;
mod superblock;
mod tree;
mod walk;
mod write;
mod xattr;

#[doc = include_str!("../FORMAT.md")]
pub mod format {}

use std::io::{self, Write};

use box_digest::Blake3Digest;

pub use error::Error;
pub use read::{ReadError, read_file};
pub use tree::{ImageBuilder, MAX_NAME, MAX_TARGET, Meta, Node, NodeId};
pub use write::Summary;
pub use xattr::{MAX_XATTR_NAME, is_known_xattr};

/// Bytes of a block, as a length in memory.
const BLOCK: usize = 4096;
/// Bytes of a block, as a distance in the image.
const BLOCK_SIZE: u64 = BLOCK as u64;

/// Gives the writer the bytes of files.
pub trait Contents {
    /// Writes the bytes of a content, all `size` of them, to `out`.
    ///
    /// Called once for each distinct content that has any bytes, in an order that only the tree
    /// decides. What is written may come in pieces of any length.
    ///
    /// # Errors
    /// Those of `out`, passed on, and those of the place where the bytes come from.
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()>;
}
