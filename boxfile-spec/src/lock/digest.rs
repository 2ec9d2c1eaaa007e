//! The digests that a lock holds.

use std::fmt;
use std::str::FromStr;

use crate::Sha256;

/// What a digest must look like.
pub(super) const FORM: &str = "`sha256:` or `blake3:` and 64 lower-case hex digits";

/// The digest of some content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// The sha256 of a file, or of an image's manifest: `sha256:` and 64 hexadecimal digits.
    Sha256([u8; 32]),
    /// The BLAKE3 of a directory's tree: `blake3:` and 64 hexadecimal digits.
    Blake3([u8; 32]),
}

impl Digest {
    /// Returns the algorithm as it is written before the colon.
    pub const fn algorithm(&self) -> &'static str {
        match self {
            Self::Sha256(_) => "sha256",
            Self::Blake3(_) => "blake3",
        }
    }

    /// Returns the 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        match self {
            Self::Sha256(bytes) | Self::Blake3(bytes) => bytes,
        }
    }
}

/// Writes the algorithm, a colon and 64 lower-case hexadecimal digits.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.algorithm())?;
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The error of a text that is not a [`Digest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedDigest;

impl fmt::Display for MalformedDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a digest is {FORM}")
    }
}

impl std::error::Error for MalformedDigest {}

impl FromStr for Digest {
    type Err = MalformedDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (algorithm, digits) = text.split_once(':').ok_or(MalformedDigest)?;
        // Both are 32 bytes, written alike.
        let Sha256(bytes) = digits.parse().map_err(|_| MalformedDigest)?;
        match algorithm {
            "sha256" => Ok(Self::Sha256(bytes)),
            "blake3" => Ok(Self::Blake3(bytes)),
            _ => Err(MalformedDigest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_digest_has_one_form() {
        let digits = "0123456789abcdef".repeat(4);
        let upper = digits.to_uppercase();
        for text in [
            "",
            "sha256:",
            &digits,
            &format!("sha512:{digits}"),
            &format!("SHA256:{digits}"),
            &format!("sha256:{upper}"),
            &format!("sha256:{digits}0"),
            &format!("sha256:{}", &digits[1..]),
            &format!(" sha256:{digits}"),
            &format!("sha256:{}é", &digits[2..]),
        ] {
            assert_eq!(text.parse::<Digest>(), Err(MalformedDigest), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(bytes: [u8; 32]) {
            for digest in [Digest::Sha256(bytes), Digest::Blake3(bytes)] {
                prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            }
        }
    }
}
