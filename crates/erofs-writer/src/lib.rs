#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod directory;
mod error;
mod identity;
mod inode;
mod layout;
pub mod read;
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
pub use layout::MAX_INLINE_FILE;
pub use read::{ReadError, read_file};
pub use tree::{ImageBuilder, MAX_NAME, MAX_TARGET, Meta, Node, NodeId};
pub use write::Summary;
pub use xattr::{MAX_XATTR_NAME, is_known_xattr};

/// Bytes of a block, as a length in memory.
const BLOCK: usize = 4096;
/// Bytes of a block, as a distance in the image.
const BLOCK_SIZE: u64 = BLOCK as u64;

/// Gives the writer the bytes of files.
pub trait ContentSource {
    /// Writes the bytes of a content, all `size` of them, to `out`.
    ///
    /// Called once for each distinct content that has any bytes, in an order that only the tree
    /// decides. What is written may come in pieces of any length.
    ///
    /// # Errors
    /// Those of `out`, passed on, and those of the place where the bytes come from.
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()>;
}

/// What follows the written part of an image and belongs to it: contents of files that are stored
/// already, each from the start of a block.
///
/// A content of at most [`MAX_INLINE_FILE`] bytes is not looked for there: it follows its inode, or has blocks of its own.
pub struct Behind<'a> {
    /// The written part is filled with zero bytes up to a multiple of so many bytes: a positive multiple of 4096.
    pub alignment: u64,
    /// How many bytes follow it: a multiple of 4096.
    pub size: u64,
    /// Returns the distance in bytes from the end of the written part to the first byte of a content; `None` for one
    /// that is not there, which is then written.
    pub place: &'a dyn Fn(&Blake3Digest) -> Option<u64>,
}

impl Behind<'_> {
    /// Nothing follows: what is written is the whole image.
    pub const NOTHING: Behind<'static> =
        Behind { alignment: BLOCK_SIZE, size: 0, place: &|_| None };
}

impl std::fmt::Debug for Behind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { alignment, size, .. } = self;
        f.debug_struct("Behind")
            .field("alignment", alignment)
            .field("size", size)
            .finish_non_exhaustive()
    }
}
