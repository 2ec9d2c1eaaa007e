//! Where the bytes of files come from.

use std::fmt;
use std::io::{self, Write};

/// The caller's hash of a file's bytes: equal ids promise equal bytes.
///
/// The writer compares ids and never the bytes; any hash without collisions will do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; 32]);

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

/// Gives the writer the bytes of files.
pub trait Contents {
    /// Writes the bytes of a content, all `size` of them, to `out`.
    ///
    /// Called once for each distinct content that has any bytes, in an order that only the tree
    /// decides. What is written may come in pieces of any length.
    ///
    /// # Errors
    /// Those of `out`, passed on, and those of the place where the bytes come from.
    fn copy(&mut self, content: &ContentId, size: u64, out: &mut dyn Write) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_prints_as_hexadecimal_digits() {
        let mut bytes = [0; 32];
        bytes[0] = 0xAB;
        let text = ContentId(bytes).to_string();
        assert_eq!(text.len(), 64);
        assert!(text.starts_with("ab00"));
    }
}
