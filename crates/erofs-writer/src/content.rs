//! Where the bytes of files come from.

use std::io::{self, Write};

use box_digest::Blake3Digest;

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
