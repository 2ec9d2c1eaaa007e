//! Computes digests.

use std::io::{self, BufReader, Read, Write};

use crate::{Algorithm, TypedDigest};

/// The size of the buffer for reading, in bytes.
const BUFFER: usize = 256 << 10;

/// An [`Algorithm`] that this build can compute: `Sha256` with the feature `sha256`, `Blake3` with
/// the feature `blake3`.
pub trait HashAlgorithm: Algorithm {
    /// The state of a computation.
    type State: Clone + Default + std::fmt::Debug;

    /// Adds bytes to the computation.
    fn update(state: &mut Self::State, bytes: &[u8]);

    /// Returns the digest of the bytes that were added.
    fn finish(state: &Self::State) -> [u8; 32];
}

#[cfg(feature = "sha256")]
impl HashAlgorithm for crate::Sha256 {
    type State = sha2::Sha256;

    fn update(state: &mut Self::State, bytes: &[u8]) {
        sha2::Digest::update(state, bytes);
    }

    fn finish(state: &Self::State) -> [u8; 32] {
        sha2::Digest::finalize(state.clone()).into()
    }
}

#[cfg(feature = "blake3")]
impl HashAlgorithm for crate::Blake3 {
    type State = blake3::Hasher;

    fn update(state: &mut Self::State, bytes: &[u8]) {
        state.update(bytes);
    }

    fn finish(state: &Self::State) -> [u8; 32] {
        *state.finalize().as_bytes()
    }
}

/// Hashes and counts bytes that arrive in pieces.
#[derive(Debug, Clone)]
pub struct Hasher<A: HashAlgorithm> {
    state: A::State,
    count: u64,
}

impl<A: HashAlgorithm> Default for Hasher<A> {
    fn default() -> Self {
        Self { state: A::State::default(), count: 0 }
    }
}

impl<A: HashAlgorithm> Hasher<A> {
    /// Hashes and counts further bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        A::update(&mut self.state, bytes);
        self.count += bytes.len() as u64;
    }

    /// Returns the number of bytes that were added.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the digest of the bytes that were added.
    pub fn digest(&self) -> TypedDigest<A> {
        TypedDigest::from_bytes(A::finish(&self.state))
    }
}

impl<A: HashAlgorithm> Write for Hasher<A> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<A: HashAlgorithm> TypedDigest<A> {
    /// Returns the digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.digest()
    }

    /// Hashes all bytes of a reader, without loading them into memory at once. Returns the digest and
    /// the number of bytes.
    ///
    /// # Errors
    /// The reader's error.
    pub fn of_reader(reader: impl Read) -> io::Result<(Self, u64)> {
        let mut hasher = Hasher::default();
        io::copy(&mut BufReader::with_capacity(BUFFER, reader), &mut hasher)?;
        Ok((hasher.digest(), hasher.count()))
    }
}

#[cfg(all(test, feature = "sha256", feature = "blake3"))]
mod tests {
    use super::*;
    use crate::{Blake3Digest, Digest};

    #[test]
    fn the_algorithms_are_the_standard_ones() {
        let sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let blake3 = "blake3:6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(Digest::of(b"abc").to_string(), sha256);
        assert_eq!(Blake3Digest::of(b"abc").to_string(), blake3);
    }

    #[test]
    fn a_reader_is_hashed_to_its_end() {
        let bytes = vec![7; BUFFER + 1];
        let found = Digest::of_reader(bytes.as_slice()).unwrap();
        assert_eq!(found, (Digest::of(&bytes), bytes.len() as u64));
    }
}
