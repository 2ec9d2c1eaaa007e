//! The words of a command: its arguments, its variables and its working directory, which need not be UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use serde::ser::{Error as _, SerializeSeq as _};
use serde::{Deserialize as _, Deserializer, Serializer};

/// Serializes words as strings.
///
/// # Errors
/// A word is not UTF-8.
pub(super) fn serialize<S: Serializer>(words: &[OsString], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(words.len()))?;
    for word in words {
        list.serialize_element(text(word).map_err(S::Error::custom)?)?;
    }
    list.end()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<OsString>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?.into_iter().map(OsString::from).collect())
}

fn text(word: &OsStr) -> Result<&str, &'static str> {
    word.to_str().ok_or("a word is not UTF-8")
}

/// Serializes one word that can be absent.
pub(super) mod one {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(
        word: &Option<OsString>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match word {
            Some(word) => to.serialize_some(text(word).map_err(S::Error::custom)?),
            None => to.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<OsString>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(OsString::from))
    }
}

/// Appends words, each with a NUL byte at its end. Returns `false` if a word has a NUL byte.
pub(super) fn join<'a>(words: impl Iterator<Item = &'a OsString>, to: &mut Vec<u8>) -> bool {
    words.into_iter().all(|word| {
        to.extend_from_slice(word.as_bytes());
        to.push(0);
        !word.as_bytes().contains(&0)
    })
}

/// What a program's stack has for each word in addition to its bytes: the NUL byte at its end, and its address.
pub(super) const WORD: usize = 1 + 8;

/// Returns how many bytes of a program's stack words need that have this number of bytes together.
pub(super) const fn size(words: usize, bytes: usize) -> usize {
    words.saturating_mul(WORD).saturating_add(bytes)
}

/// Returns the words that [`join`] has appended. `None` if the last one has no end.
pub(super) fn split(joined: &[u8]) -> Option<impl Iterator<Item = OsString>> {
    let is_ended = joined.last().is_none_or(|it| *it == 0);
    let words = joined.split_inclusive(|it| *it == 0);
    is_ended.then(|| words.map(|it| OsString::from_vec(it[..it.len() - 1].to_vec())))
}

/// The digits of [base64](https://www.rfc-editor.org/rfc/rfc4648#section-4).
const DIGITS: [u8; 64] = *b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns bytes in base64 with padding. The box-init program has no other use of base64, so it needs no crate for it.
pub(super) fn base64(bytes: &[u8]) -> String {
    let group = |group: &[u8]| {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digit = move |at: usize| DIGITS[(bits >> (18 - 6 * at)) as usize % DIGITS.len()];
        let digits = group.len() + 1;
        (0..4).map(move |at| if at < digits { char::from(digit(at)) } else { '=' })
    };
    bytes.chunks(3).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_the_standard_one() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(b"\xFB\xFF\xBF"), "+/+/");
    }
}
