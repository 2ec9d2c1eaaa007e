//! The text form of [digests](https://github.com/opencontainers/image-spec/blob/main/descriptor.md#digests).

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Algorithm, AnyDigest, Blake3, TypedDigest};

/// The error of a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ParseDigestError {
    /// The text does not begin with the expected algorithm.
    #[error("the digest {text:?} does not start with \"{expected}:\"")]
    Algorithm { text: String, expected: &'static str },
    /// The part after the colon is not 64 lower-case hexadecimal digits.
    #[error("the digest {0:?} does not have 64 lower-case hexadecimal digits after the colon")]
    Hex(String),
}

/// Formats bytes as lower-case hexadecimal digits: `hex(&[10, 255])` is `0aff`, for example.
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

impl<A> TypedDigest<A> {
    /// Reads 64 lower-case hexadecimal digits; returns `None` for any other text.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self::from_bytes(bytes))
    }
}

impl<A: Algorithm> FromStr for TypedDigest<A> {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(A::NAME).and_then(|rest| rest.strip_prefix(':'));
        let Some(digits) = digits else {
            let (text, expected) = (text.to_owned(), A::NAME);
            return Err(ParseDigestError::Algorithm { text, expected });
        };
        Self::from_hex(digits).ok_or_else(|| ParseDigestError::Hex(text.to_owned()))
    }
}

impl<A: Algorithm> fmt::Display for TypedDigest<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", A::NAME, self.hex())
    }
}

impl<A: Algorithm> fmt::Debug for TypedDigest<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A: Algorithm> Serialize for TypedDigest<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, A: Algorithm> Deserialize<'de> for TypedDigest<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// Parses a text that begins with `blake3:` as a BLAKE3, and every other text as a SHA-256.
impl FromStr for AnyDigest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some((Blake3::NAME, _)) => text.parse().map(Self::Blake3),
            _ => text.parse().map(Self::Sha256),
        }
    }
}

impl fmt::Display for AnyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sha256(digest) => digest.fmt(f),
            Self::Blake3(digest) => digest.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for AnyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// Parses inside the deserializer, so that its error has the position of a malformed list element.
struct TextVisitor<T>(PhantomData<T>);

impl<T: FromStr<Err = ParseDigestError>> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

/// Returns the algorithm of a text that looks like a digest, or `None` for other texts. The text must begin with `blake3:`, or
/// with `sha`, a number and a colon (OCI image-spec descriptor.md, "Registered algorithms"). The algorithm may be unsupported,
/// and the text after the colon is not checked: `sha512:12ab` has the algorithm `sha512`.
pub fn algorithm(text: &str) -> Option<&str> {
    let (algorithm, _) = text.split_once(':')?;
    let number = algorithm.strip_prefix("sha").unwrap_or_default();
    let is_sha = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_sha || algorithm == Blake3::NAME).then_some(algorithm)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Blake3Digest, Digest};

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_has_the_digits_of_its_bytes_in_order() {
        let digest: Digest = EMPTY.parse().unwrap();
        assert_eq!(digest.as_bytes()[..2], [0xe3, 0xb0]);
        assert_eq!((digest.hex().as_str(), digest.short().as_str()), (&EMPTY[7..], &EMPTY[7..19]));
    }

    #[test]
    fn what_could_leave_a_directory_or_collide_is_refused() {
        for bad in [
            "",
            "sha256:",
            &EMPTY[7..],
            "sha512:e3b0",
            "sha256:../../../../etc/passwd",
            &EMPTY.to_uppercase(),
            &EMPTY.replace("e3", "E3"),
            &EMPTY.replace("e3", "é"),
            &format!("{EMPTY}0"),
            &format!(" {EMPTY}"),
            &EMPTY[..70],
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad:?} was accepted");
            assert!(bad.parse::<AnyDigest>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn a_text_that_is_meant_as_a_digest_has_an_algorithm() {
        for (text, expected) in [
            (EMPTY, Some("sha256")),
            ("sha512:12ab", Some("sha512")),
            ("sha256:not hexadecimal", Some("sha256")),
            ("blake3:", Some("blake3")),
            ("sha256", None),
            ("shanghai.example:5000", None),
            ("sha:1", None),
            ("localhost:5000", None),
        ] {
            assert_eq!(algorithm(text), expected, "{text}");
        }
    }

    #[test]
    fn one_algorithm_is_not_taken_for_another() {
        let error = EMPTY.parse::<Blake3Digest>().unwrap_err().to_string();
        assert_eq!(error, format!("the digest {EMPTY:?} does not start with \"blake3:\""));
    }

    proptest! {
        #[test]
        fn a_digest_reads_back(bytes: [u8; 32]) {
            let digest = Digest::from_bytes(bytes);
            prop_assert_eq!(digest.to_string().parse(), Ok(digest));
            prop_assert_eq!(Digest::from_hex(&digest.hex()), Some(digest));
            let json = serde_json::to_string(&digest).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
            for any in [digest.into(), AnyDigest::from(Blake3Digest::from_bytes(bytes))] {
                prop_assert_eq!(any.to_string().parse(), Ok(any));
            }
        }
    }
}
