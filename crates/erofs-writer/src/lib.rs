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

/// The source of the files' bytes, for example a store.
pub trait ContentSource {
    /// Writes the bytes of a content, all `size` of them, to `out`.
    ///
    /// The writer calls it once for each content above [`MAX_INLINE_FILE`] bytes that is not in [`Behind`], and once for each
    /// file with a smaller content that is not empty. The same tree gives the same order of calls. `copy` may write
    /// the bytes in pieces of any length.
    ///
    /// # Errors
    /// Errors of `out`, passed on, and errors of the source of the bytes.
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()>;
}

/// The part of an image that follows the written part: contents that the caller has already, each from the start of a block.
///
/// The writer does not look up contents of at most [`MAX_INLINE_FILE`] bytes in it, but writes them.
pub struct Behind<'a> {
    /// The written part is padded with zero bytes to a multiple of this, which must be a positive multiple of 4096.
    pub alignment: u64,
    /// How many bytes follow the written part: a multiple of 4096.
    pub size: u64,
    /// Returns the distance in bytes from the end of the written part to the first byte of a content. The writer writes
    /// the contents for which it returns `None`.
    pub place: &'a dyn Fn(&Blake3Digest) -> Option<u64>,
}

impl Behind<'_> {
    /// No contents follow: the written part is the whole image.
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
