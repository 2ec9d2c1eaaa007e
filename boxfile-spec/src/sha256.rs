//! A sha256 as a Boxfile writes it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A sha256: 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256(pub [u8; 32]);

/// That a text is not 64 hexadecimal digits in lower case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotSha256;

impl fmt::Display for NotSha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sha256 has 64 hexadecimal digits, in lower case")
    }
}

impl std::error::Error for NotSha256 {}

impl FromStr for Sha256 {
    type Err = NotSha256;

    fn from_str(text: &str) -> Result<Self, NotSha256> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| NotSha256)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0]).ok_or(NotSha256)? << 4 | nibble(pair[1]).ok_or(NotSha256)?;
        }
        Ok(Self(bytes))
    }
}

const fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Sha256 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_in_order_and_nothing_else_is() {
        let text = format!("01ab{}", "f0".repeat(30));
        let read: Sha256 = text.parse().unwrap();
        assert_eq!(read.0[..3], [0x01, 0xab, 0xf0]);
        assert_eq!(read.to_string(), text);
        for bad in ["", &"0".repeat(63), &"0".repeat(65), &"A".repeat(64), &"g".repeat(64)] {
            assert_eq!(bad.parse::<Sha256>(), Err(NotSha256));
        }
    }
}
