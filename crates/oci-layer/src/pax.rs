//! The records of extended headers (POSIX pax(1), "pax Extended Header").

use std::collections::BTreeMap;

use super::LayerErrorKind;
use crate::error::{malformed, twice};

/// The prefix of the keys of extended attributes.
pub(super) const XATTR: &[u8] = b"SCHILY.xattr.";
/// The keys that this reader uses. Readers disagree about an empty value.
const OURS: [&[u8]; 6] = [b"path", b"linkpath", b"size", b"uid", b"gid", b"mtime"];
/// The prefixes of keys with which some readers change a member.
const MEANT: [&[u8]; 5] = [b"GNU.", b"SCHILY.", b"SUN.", b"LIBARCHIVE.", b"RHT."];

/// The records of one member. None has an empty value.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Vec<u8>, Vec<u8>>);

impl Records {
    /// Adds the records of an extended header. Ignores a record with an empty value, if its key is not in [`OURS`].
    ///
    /// # Errors
    /// A record that is malformed or repeated, or an empty value for a key in [`OURS`].
    pub(super) fn add(&mut self, mut body: &[u8]) -> Result<(), LayerErrorKind> {
        while !body.is_empty() {
            let record = split(body).ok_or_else(|| malformed("extended header"))?;
            body = record.rest;
            if record.value.is_empty() {
                if OURS.contains(&record.key) {
                    return Err(malformed("extended header"));
                }
                continue;
            }
            if self.0.insert(record.key.to_vec(), record.value.to_vec()).is_some() {
                return Err(twice("record of an extended header"));
            }
        }
        Ok(())
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// Removes a key, and returns its value.
    pub(super) fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        self.0.remove(key.as_bytes())
    }

    /// Returns whether the records describe a sparse file, in the format of GNU, Solaris or star.
    pub(super) fn is_sparse(&self) -> bool {
        let keys = ["SUN.holesdata", "SCHILY.realsize"];
        self.with_prefix(b"GNU.sparse.").next().is_some()
            || keys.iter().any(|key| self.get(key).is_some())
    }

    /// Lists the records whose key has this prefix: the rest of the key, and the value.
    pub(super) fn with_prefix<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value.as_slice())))
    }
}

/// Checks that a global extended header changes no member: readers differ in which records they apply.
/// `git archive` writes a comment there.
///
/// # Errors
/// A record that is malformed, or is neither a comment nor a vendor's note.
pub(super) fn check_global(mut body: &[u8]) -> Result<(), LayerErrorKind> {
    while !body.is_empty() {
        let record = split(body).ok_or_else(|| malformed("global extended header"))?;
        if !is_harmless(record.key) {
            return Err(malformed("global extended header"));
        }
        body = record.rest;
    }
    Ok(())
}

/// Vendors' keys contain a dot, POSIX keys do not.
fn is_harmless(key: &[u8]) -> bool {
    let is_meant = MEANT.iter().any(|prefix| key.starts_with(prefix));
    key == b"comment" || (key.contains(&b'.') && !is_meant)
}

struct Record<'a> {
    key: &'a [u8],
    value: &'a [u8],
    rest: &'a [u8],
}

/// Splits the first record off: `LENGTH KEY=VALUE\n`. `LENGTH` is the length of the whole record, e.g.
/// `12 path=abc\n`.
fn split(body: &[u8]) -> Option<Record<'_>> {
    let space = body.iter().position(|byte| !byte.is_ascii_digit())?;
    let digits = std::str::from_utf8(&body[..space]).ok()?;
    if digits.starts_with('0') {
        return None;
    }
    let (record, rest) = body.split_at_checked(digits.parse().ok()?)?;
    let pair = record.get(space..)?.strip_prefix(b" ")?.strip_suffix(b"\n")?;
    let equals = pair.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
    Some(Record { key: &pair[..equals], value: &pair[equals + 1..], rest })
}
