//! What was written.

use std::io::{self, Write};

use box_image::Digest;
use sha2::{Digest as _, Sha256};

use super::ExportError;

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// sha256 of the bytes.
    pub digest: Digest,
    /// How many they are.
    pub size: u64,
}

impl Written {
    /// Says what passes through to `out` while `fill` writes.
    ///
    /// # Errors
    /// Those of `fill`.
    pub(super) fn count(
        out: &mut dyn Write,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), ExportError>,
    ) -> Result<Self, ExportError> {
        let mut counting = Counting { out, hasher: Sha256::new(), size: 0 };
        fill(&mut counting)?;
        let digest = Digest::from_bytes(counting.hasher.finalize().into());
        Ok(Self { digest, size: counting.size })
    }

    /// Says what bytes are.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let digest = Digest::from_bytes(Sha256::digest(bytes).into());
        Self { digest, size: bytes.len() as u64 }
    }
}

struct Counting<'a> {
    out: &'a mut dyn Write,
    hasher: Sha256,
    size: u64,
}

impl Write for Counting<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
