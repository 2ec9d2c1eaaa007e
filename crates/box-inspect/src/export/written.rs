//! Counts and hashes the bytes that are written.

use std::io::{self, Write};

use box_digest::{Digest, Hasher, Sha256};

use crate::error::ExportError;

/// The digest and length of bytes that were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The sha256 of the bytes.
    pub digest: Digest,
    /// The number of bytes.
    pub size: u64,
}

impl Written {
    /// Returns the digest and length of the bytes that `fill` writes to `out`.
    ///
    /// # Errors
    /// The error of `fill`.
    pub(super) fn count(
        out: &mut dyn Write,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
    ) -> Result<Self, ExportError> {
        let mut counting = Counting { out, hasher: Hasher::default() };
        fill(&mut counting)?;
        Ok(Self { digest: counting.hasher.digest(), size: counting.hasher.count() })
    }

    /// Returns the digest and length of `bytes`.
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), size: bytes.len() as u64 }
    }
}

struct Counting<'a> {
    out: &'a mut dyn Write,
    hasher: Hasher<Sha256>,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
