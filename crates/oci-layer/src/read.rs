//! Readers that count, hash and bound what passes through them.

use std::io::{self, Read};

use box_digest::{Digest, Hasher, Sha256};

/// Hashes and counts the bytes that are read through it.
pub(super) struct HashingReader<R> {
    inner: R,
    hasher: Hasher<Sha256>,
    limit: u64,
}

impl<R: Read> HashingReader<R> {
    /// Makes a reader of at most `limit` bytes. More bytes are an error.
    pub(super) fn new(inner: R, limit: u64) -> Self {
        Self { inner, hasher: Hasher::default(), limit }
    }

    /// Reads the rest of the stream, up to the first error.
    pub(super) fn finish(mut self) -> Finished {
        let drained = io::copy(&mut self, &mut io::sink()).map(|_| ());
        Finished { drained, digest: self.hasher.digest(), count: self.hasher.count() }
    }
}

/// The result of reading a stream to its end or to an error.
pub(super) struct Finished {
    /// Whether the stream could be read to its end.
    pub(super) drained: io::Result<()>,
    /// The sha256 of the bytes.
    pub(super) digest: Digest,
    /// How many bytes were read.
    pub(super) count: u64,
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        hash(&mut self.hasher, &buffer[..read], self.limit)?;
        Ok(read)
    }
}

/// Hashes further bytes of a stream, which may have at most `limit` bytes.
pub(super) fn hash(hasher: &mut Hasher<Sha256>, bytes: &[u8], limit: u64) -> io::Result<()> {
    hasher.update(bytes);
    if hasher.count() > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "over the limit"));
    }
    Ok(())
}
