#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod hash;
mod text;

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;

pub use hash::{HashAlgorithm, Hasher};
pub use text::{ParseDigestError, algorithm, hex};

/// A SHA-256: the digest of an OCI document, a blob or a fetched file.
pub type Digest = TypedDigest<Sha256>;

/// A BLAKE3: the digest of a tree, or of a file in a tree.
pub type Blake3Digest = TypedDigest<Blake3>;

/// The digest of some content by the algorithm `A`.
///
/// Its text is the algorithm's name, a colon and 64 lower-case hexadecimal digits, such as `sha256:e3b0…`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypedDigest<A> {
    bytes: [u8; 32],
    algorithm: PhantomData<A>,
}

/// A SHA-256 or BLAKE3 digest. Its text begins with the algorithm's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyDigest {
    /// Written `sha256:` and 64 hexadecimal digits.
    Sha256(Digest),
    /// Written `blake3:` and 64 hexadecimal digits.
    Blake3(Blake3Digest),
}

impl From<Digest> for AnyDigest {
    fn from(digest: Digest) -> Self {
        Self::Sha256(digest)
    }
}

impl From<Blake3Digest> for AnyDigest {
    fn from(digest: Blake3Digest) -> Self {
        Self::Blake3(digest)
    }
}

impl AnyDigest {
    /// Returns the algorithm and the first 12 hexadecimal digits, for messages.
    pub fn short(&self) -> String {
        match self {
            Self::Sha256(digest) => format!("{}:{}", Sha256::NAME, digest.short()),
            Self::Blake3(digest) => format!("{}:{}", Blake3::NAME, digest.short()),
        }
    }
}

/// The algorithm of a [`TypedDigest`]: [`Sha256`] or [`Blake3`].
pub trait Algorithm: Debug + Copy + Ord + Hash + Send + Sync + 'static {
    /// The algorithm's name in the text of a digest, before the colon.
    const NAME: &'static str;
}

/// SHA-256 (FIPS 180-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sha256 {}

/// BLAKE3 with its default output of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blake3 {}

impl Algorithm for Sha256 {
    const NAME: &'static str = "sha256";
}

impl Algorithm for Blake3 {
    const NAME: &'static str = "blake3";
}

impl<A> TypedDigest<A> {
    /// Wraps the 32 bytes of the algorithm's result.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self { bytes, algorithm: PhantomData }
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Returns the 64 hexadecimal digits without the algorithm: the file name in `blobs/sha256/`.
    pub fn hex(&self) -> String {
        hex(&self.bytes)
    }

    /// Returns the first 12 hexadecimal digits, for messages.
    pub fn short(&self) -> String {
        hex(&self.bytes[..6])
    }
}
