//! The records of extended headers (POSIX pax(1), "pax Extended Header").

use std::collections::BTreeMap;

use super::LayerErrorKind;

/// The prefix of the keys of extended attributes.
pub(super) const XATTR: &[u8] = b"SCHILY.xattr.";
/// The prefix of the keys of sparse files.
pub(super) const SPARSE: &[u8] = b"GNU.sparse.";

/// The records that hold for one member: none has an empty value.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Vec<u8>, Vec<u8>>);

impl Records {
    /// Adds the records of an extended header; each goes over earlier ones of its key, and an
    /// empty value deletes them.
    ///
    /// # Errors
    /// A record that is malformed.
    pub(super) fn add(&mut self, mut body: &[u8]) -> Result<(), LayerErrorKind> {
        while !body.is_empty() {
            let record = split(body).ok_or(LayerErrorKind::Malformed("extended header"))?;
            if record.value.is_empty() {
                self.0.remove(record.key);
            } else {
                self.0.insert(record.key.to_vec(), record.value.to_vec());
            }
            body = record.rest;
        }
        Ok(())
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&[u8]> {
        self.0.get(key.as_bytes()).map(Vec::as_slice)
    }

    /// Takes the value of a key out.
    pub(super) fn take(&mut self, key: &str) -> Option<Vec<u8>> {
        self.0.remove(key.as_bytes())
    }

    /// Lists what has a key with this prefix: the rest of the key, and the value.
    pub(super) fn with_prefix<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.0.iter().filter_map(|(key, value)| Some((key.strip_prefix(prefix)?, value.as_slice())))
    }
}

/// Checks that a global extended header changes no member: readers differ in what they apply.
/// `git archive` writes a comment there.
///
/// # Errors
/// A record that is malformed or says more than a comment or a vendor's note.
pub(super) fn check_global(mut body: &[u8]) -> Result<(), LayerErrorKind> {
    while !body.is_empty() {
        let record = split(body).filter(|record| is_harmless(record.key));
        body = record.ok_or(LayerErrorKind::Malformed("global extended header"))?.rest;
    }
    Ok(())
}

/// Keys of vendors hold a dot, those of POSIX do not.
fn is_harmless(key: &[u8]) -> bool {
    key == b"comment"
        || (key.contains(&b'.') && !key.starts_with(XATTR) && !key.starts_with(SPARSE))
}

struct Record<'a> {
    key: &'a [u8],
    value: &'a [u8],
    rest: &'a [u8],
}

/// Splits the first record off: `LENGTH KEY=VALUE\n`, where the length counts all of it.
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
