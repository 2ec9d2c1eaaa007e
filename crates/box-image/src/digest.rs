//! Content digests as OCI writes them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A sha256 content digest, written `sha256:` and 64 lower-case hexadecimal digits.
///
/// The text form is the OCI image-spec's (descriptor.md, "Digests"). Other algorithms are refused:
/// everything that boxbuild reads or writes names its content by sha256. A parsed digest is safe
/// to use as a file name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is not a [`Digest`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDigestError {
    /// The part before the colon is not `sha256`.
    #[error("the digest {0:?} does not start with \"sha256:\"")]
    Algorithm(String),
    /// The part behind the colon is not 64 lower-case hexadecimal digits.
    #[error("the digest {0:?} does not have 64 lower-case hexadecimal digits behind \"sha256:\"")]
    Hex(String),
}

impl Digest {
    /// Wraps the 32 bytes of a sha256 result.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the first 12 hexadecimal digits, which tell two digests apart for a person.
    pub fn short(&self) -> String {
        hex(&self.0[..6])
    }

    /// Returns the 64 hexadecimal digits without the algorithm: the file name in `blobs/sha256/`.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Writes bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text
            .strip_prefix("sha256:")
            .ok_or_else(|| ParseDigestError::Algorithm(text.to_owned()))?;
        parse_hex(digits).map(Self).ok_or_else(|| ParseDigestError::Hex(text.to_owned()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_reads_back_as_it_was_written() {
        let digest: Digest = EMPTY.parse().unwrap();
        assert_eq!(digest.to_string(), EMPTY);
        assert_eq!(digest.as_bytes()[..2], [0xe3, 0xb0]);
    }

    #[test]
    fn what_could_leave_a_directory_or_collide_is_refused() {
        for bad in [
            "",
            "sha256:",
            "sha512:e3b0",
            "sha256:../../../../etc/passwd",
            &EMPTY.to_uppercase(),
            &EMPTY.replace("e3", "E3"),
            &format!("{EMPTY}0"),
            &EMPTY[..70],
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad:?} was accepted");
        }
    }
}
