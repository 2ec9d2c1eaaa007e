//! Extended attributes, which follow their inode.
//!
//! `struct erofs_xattr_ibody_header` and `struct erofs_xattr_entry`: [`crate::format`].

use crate::Error;
use crate::error::printable;

/// Bytes of `struct erofs_xattr_ibody_header`.
const HEADER: usize = 12;
/// The alignment of attributes, and the unit of `i_xattr_icount`, in bytes.
const UNIT: usize = 4;
/// The greatest size that `i_xattr_icount` can express, in bytes.
const MAX_SIZE: usize = HEADER + UNIT * (u16::MAX as usize - 1);
/// The longest name of an extended attribute with its prefix, such as `user.comment`, in bytes (`XATTR_NAME_MAX` of Linux).
pub const MAX_XATTR_NAME: usize = 255;

/// A prefix and its `e_name_index`.
struct Prefix {
    text: &'static [u8],
    index: u8,
    /// Whether the prefix is the whole name, as `system.posix_acl_access` is.
    whole: bool,
}

const PREFIXES: [Prefix; 5] = [
    Prefix { text: b"user.", index: 1, whole: false },
    Prefix { text: b"system.posix_acl_access", index: 2, whole: true },
    Prefix { text: b"system.posix_acl_default", index: 3, whole: true },
    Prefix { text: b"trusted.", index: 4, whole: false },
    Prefix { text: b"security.", index: 6, whole: false },
];

/// Encodes the attributes of one inode. Returns an empty vector if there are none.
///
/// # Errors
/// [`Error::InvalidXattr`], [`Error::DuplicateXattr`], [`Error::XattrsTooLarge`].
pub(crate) fn encode(mut xattrs: Vec<(Vec<u8>, Vec<u8>)>) -> Result<Vec<u8>, Error> {
    if xattrs.is_empty() {
        return Ok(Vec::new());
    }
    xattrs.sort();
    if let Some(pair) = xattrs.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::DuplicateXattr { name: printable(&pair[0].0) });
    }
    let mut body = vec![0; HEADER];
    for (name, value) in &xattrs {
        encode_entry(&mut body, name, value)
            .map_err(|problem| Error::InvalidXattr { name: printable(name), problem })?;
    }
    if body.len() > MAX_SIZE {
        return Err(Error::XattrsTooLarge { size: body.len() });
    }
    Ok(body)
}

/// Returns the `i_xattr_icount` of an encoded body: one for the header and one for each 4 bytes
/// after it.
pub(crate) fn count(body: &[u8]) -> u16 {
    let units = body.len().saturating_sub(HEADER - UNIT) / UNIT;
    u16::try_from(units).expect("encode() refuses what i_xattr_icount cannot count")
}

/// Returns the length of the body with this `i_xattr_icount`: the inverse of [`count`].
pub(crate) const fn length(count: u16) -> usize {
    match count {
        0 => 0,
        count => HEADER + (count as usize - 1) * UNIT,
    }
}

fn encode_entry(body: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    let (index, rest) = split(name)?;
    let name_len = u8::try_from(rest.len()).map_err(|_| "is longer than 255 bytes")?;
    let value_size = u16::try_from(value.len()).map_err(|_| "has a value of over 65535 bytes")?;
    body.extend_from_slice(&[name_len, index]);
    body.extend_from_slice(&value_size.to_le_bytes());
    body.extend_from_slice(rest);
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(UNIT), 0);
    Ok(())
}

/// Splits a full name into the `e_name_index` of its prefix and the name after the prefix.
fn split(name: &[u8]) -> Result<(u8, &[u8]), &'static str> {
    if name.len() > MAX_XATTR_NAME {
        return Err("is longer than 255 bytes");
    }
    if name.contains(&0) {
        return Err("has a NUL byte");
    }
    known(name).ok_or(
        "has no name that EROFS can store: user.*, trusted.*, security.*, \
         system.posix_acl_access, system.posix_acl_default",
    )
}

fn known(name: &[u8]) -> Option<(u8, &[u8])> {
    PREFIXES.iter().find_map(|prefix| {
        let rest = name.strip_prefix(prefix.text)?;
        (rest.is_empty() == prefix.whole).then_some((prefix.index, rest))
    })
}

/// Returns whether EROFS has the prefix of this extended attribute: `true` for `user.comment`, `false` for
/// `com.apple.provenance`. The length is not checked.
pub fn is_known_xattr(name: &[u8]) -> bool {
    known(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &[u8], value: &[u8]) -> (Vec<u8>, Vec<u8>) {
        (name.to_vec(), value.to_vec())
    }

    #[test]
    fn no_attributes_take_no_bytes() {
        assert_eq!(encode(Vec::new()).unwrap(), []);
        assert_eq!(count(&[]), 0);
    }

    #[test]
    fn attributes_are_sorted_prefixed_and_padded() {
        let body = encode(vec![
            pair(b"user.b", b"12345"),
            pair(b"system.posix_acl_default", b""),
            pair(b"security.capability", b"\x01"),
        ])
        .unwrap();
        let expected: [&[u8]; 4] = [
            &[0; 12],
            b"\x0a\x06\x01\x00capability\x01\0",
            b"\x00\x03\x00\x00",
            b"\x01\x01\x05\x00b12345\0\0",
        ];
        assert_eq!(body, expected.concat());
        assert_eq!(usize::from(count(&body)), 1 + (body.len() - 12) / 4);
    }

    #[test]
    fn every_prefix_has_the_kernels_index() {
        for (name, index) in [
            (b"user.x".as_slice(), 1),
            (b"system.posix_acl_access", 2),
            (b"system.posix_acl_default", 3),
            (b"trusted.overlay.opaque", 4),
            (b"security.selinux", 6),
        ] {
            assert_eq!(encode(vec![pair(name, b"")]).unwrap()[13], index);
        }
    }

    #[test]
    fn names_that_cannot_be_stored_are_refused() {
        for name in [
            b"".as_slice(),
            b"user.",
            b"user",
            b"system.nfs4_acl",
            b"system.posix_acl_access2",
            b"user.a\0b",
            &[b"user.".as_slice(), &[b'x'; 251]].concat(),
        ] {
            let error = encode(vec![pair(name, b"")]).unwrap_err();
            assert!(matches!(error, Error::InvalidXattr { .. }), "{error}");
        }
        assert!(encode(vec![pair(&[b"user.".as_slice(), &[b'x'; 250]].concat(), b"")]).is_ok());
    }

    #[test]
    fn what_the_counters_cannot_count_is_refused() {
        let big = vec![1; 65535];
        assert!(encode(vec![pair(b"user.a", &big)]).is_ok());
        let error = encode(vec![pair(b"user.a", &[1; 65536])]).unwrap_err();
        assert!(matches!(error, Error::InvalidXattr { .. }), "{error}");
        // An entry with a name of 1 byte and a value of 65531 takes 65536 bytes. 262148 - 12 bytes are available.
        let fill = |last: usize| {
            encode(vec![
                pair(b"user.a", &[1; 65531]),
                pair(b"user.b", &[1; 65531]),
                pair(b"user.c", &[1; 65531]),
                pair(b"user.d", &vec![1; last]),
            ])
        };
        assert_eq!(count(&fill(65523).unwrap()), u16::MAX);
        let error = fill(65524).unwrap_err();
        assert!(matches!(error, Error::XattrsTooLarge { size: 262_152 }), "{error}");
    }

    #[test]
    fn a_name_given_twice_is_refused() {
        let error = encode(vec![pair(b"user.a", b"1"), pair(b"user.a", b"2")]).unwrap_err();
        assert!(matches!(error, Error::DuplicateXattr { .. }), "{error}");
    }
}
