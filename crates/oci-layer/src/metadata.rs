//! The metadata of a member: the fields of its header, and the extended headers that override them.

use std::collections::BTreeMap;

use box_tree::{Leaf, MAX_XATTR_NAME, Meta, is_known_xattr};
use tar::{EntryType, Header};

use super::archive::Extensions;
use super::pax::{Records, XATTR};
use super::{LayerErrorKind, Limits};
use crate::error::{malformed, refused, too_large, twice};

/// The maximum length of an extended attribute's value, in bytes: the disk image has 16 bits for the length.
const MAX_XATTR_VALUE: usize = 65_535;
/// Attributes for overlayfs's bookkeeping, which do not affect what is read (Linux, `fs/overlayfs/overlayfs.h`). For
/// example, rootless podman has left them in layers. Other attributes of overlayfs hide, redirect or replace entries,
/// and are refused.
const OVERLAY_NOTES: [&[u8]; 6] = [b"origin", b"impure", b"nlink", b"upper", b"uuid", b"protattr"];
/// The largest size that fits a header's octal digits, in bytes: 8 GiB minus one.
const MAX_OCTAL: u64 = (1 << 33) - 1;
/// Linux has 12 bits for the major and 20 for the minor number of a device.
const MAJORS: i64 = 1 << 12;
const MINORS: i64 = 1 << 20;

/// One member of an archive, with the fields of its extended headers.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) kind: EntryType,
    /// The path as the archive spells it.
    pub(super) path: Vec<u8>,
    /// The target of a link.
    pub(super) target: Option<Vec<u8>>,
    /// The length of the data, in bytes.
    pub(super) size: u64,
    /// Owner, permissions, time, attributes.
    pub(super) meta: Meta,
    header: Header,
}

impl Member {
    /// Returns the path from the records, or else from a GNU long name, or else from the header.
    pub(super) fn path_of(header: &Header, extensions: &Extensions) -> Vec<u8> {
        let record = extensions.records.as_ref().and_then(|records| records.get("path"));
        let path = record.or(extensions.path.as_deref());
        path.map_or_else(|| header.path_bytes().into_owned(), <[u8]>::to_vec)
    }

    /// Reads the headers. `path` is the result of [`Member::path_of`].
    ///
    /// # Errors
    /// A malformed number, a sparse file, attributes beyond the limit or reserved ones, and headers that readers
    /// interpret differently.
    pub(super) fn new(
        header: Header,
        extensions: Extensions,
        path: Vec<u8>,
        limits: &Limits,
    ) -> Result<Self, LayerErrorKind> {
        let Extensions { records, target, path: long_path } = extensions;
        let mut records = records.unwrap_or_default();
        let kind = header.entry_type();
        check_kind(kind, &records)?;
        for (key, long) in [("path", &long_path), ("linkpath", &target)] {
            if long.is_some() && records.get(key).is_some() {
                return Err(twice("name"));
            }
        }
        let is_extended = long_path.is_some() || records.get("path").is_some();
        if is_file_with_slash(&header, &path, is_extended) {
            let reason = "it is a file, but its name ends with a slash, as a directory's does";
            return Err(refused(reason));
        }
        let size = size(&header, &records)?;
        let meta = metadata(&header, &records, limits)?;
        let in_header = || header.link_name_bytes().map(std::borrow::Cow::into_owned);
        let target = records.take("linkpath").or(target).or_else(in_header);
        Ok(Self { kind, path, target, size, meta, header })
    }

    /// Returns the device that the member describes.
    ///
    /// # Errors
    /// Numbers that are malformed or larger than Linux allows.
    pub(super) fn device(&self) -> Result<Leaf, LayerErrorKind> {
        let header = &self.header;
        let fields = match (header.as_ustar(), header.as_gnu()) {
            (Some(ustar), _) => Some((ustar.dev_major, ustar.dev_minor)),
            (None, gnu) => gnu.map(|gnu| (gnu.dev_major, gnu.dev_minor)),
        };
        let malformed = malformed("device number");
        let Some((major, minor)) = fields else { return Err(malformed) };
        let below = |field: &[u8], limit| {
            let value = number(field).filter(|value| *value < limit)?;
            u32::try_from(value).ok()
        };
        match (below(&major, MAJORS), below(&minor, MINORS)) {
            (Some(major), Some(minor)) if self.kind == EntryType::Char => {
                Ok(Leaf::CharDevice(major, minor))
            }
            (Some(major), Some(minor)) => Ok(Leaf::BlockDevice(major, minor)),
            _ => Err(malformed),
        }
    }
}

/// Returns whether a header is in the format of POSIX (ustar, pax), of GNU, or of Version 7, which has no magic and no
/// prefix. Readers interpret other formats differently.
pub(super) fn is_known(header: &Header) -> bool {
    let fields = &header.as_bytes()[257..];
    fields.starts_with(b"ustar\x0000")
        || fields.starts_with(b"ustar  \0")
        || fields[..8].iter().chain(&fields[88..]).all(|byte| *byte == 0)
}

/// Refuses a member of a type that an image cannot have.
fn check_kind(kind: EntryType, records: &Records) -> Result<(), LayerErrorKind> {
    if kind == EntryType::GNUSparse || records.is_sparse() {
        return Err(LayerErrorKind::Sparse);
    }
    if !is_of_files(kind) {
        let kind = char::from(kind.as_byte());
        return Err(refused(format!("entries of tar type {kind:?} do not belong in an image")));
    }
    Ok(())
}

/// Returns whether `kind` is a type of entry in a file system.
fn is_of_files(kind: EntryType) -> bool {
    use EntryType::{Block, Char, Continuous, Directory, Fifo, Link, Regular, Symlink};
    matches!(kind, Regular | Continuous | Directory | Symlink | Link | Char | Block | Fifo)
}

/// Returns whether some readers interpret the member as a file and others as a directory. In archives
/// older than POSIX, members have no type, and only the slash after its name marks a directory.
fn is_file_with_slash(header: &Header, path: &[u8], is_extended: bool) -> bool {
    let is_old = header.as_old().linkflag == [0] && !is_extended;
    let is_file = matches!(header.entry_type(), EntryType::Regular | EntryType::Continuous);
    is_file && !is_old && path.ends_with(b"/")
}

/// Returns the size of a member's data: from the records, or else from the header. A record is needed if the size does
/// not fit the header; otherwise both must agree
/// ([RUSTSEC-2025-0110](https://rustsec.org/advisories/RUSTSEC-2025-0110.html)).
fn size(header: &Header, records: &Records) -> Result<u64, LayerErrorKind> {
    let Some(text) = records.get("size") else { return header_size(header) };
    let size = decimal(text).ok_or_else(|| malformed("size"))?;
    if size <= MAX_OCTAL && header_size(header)? != size {
        return Err(twice("size"));
    }
    Ok(size)
}

/// Returns the length of the data after a header, as the header itself has it.
///
/// # Errors
/// A malformed number.
pub(super) fn header_size(header: &Header) -> Result<u64, LayerErrorKind> {
    let size = number(&header.as_old().size).and_then(|size| u64::try_from(size).ok());
    size.ok_or_else(|| malformed("size"))
}

/// Reads a number of a header: octal digits after spaces, or, with the first bit set, the rest of
/// the field in two's complement (GNU base-256). A field without any digit is 0.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    match field.first() {
        Some(first) if first & 0x80 != 0 => {
            let sign = if first & 0x40 == 0 { 0 } else { -1 };
            // The longest field has 12 bytes.
            let fold = |value, byte: &u8| (value << 8) | i128::from(*byte);
            let rest = field[1..].iter().fold((sign << 7) | i128::from(first & 0x7f), fold);
            i64::try_from(rest).ok()
        }
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Option<i64> {
    let blank = |byte: &u8| matches!(byte, 0 | b' ');
    let start = field.iter().position(|byte| !blank(byte)).unwrap_or(field.len());
    // Some readers see an empty field, some continue after the NUL.
    if start < field.len() && field[..start].contains(&0) {
        return None;
    }
    let text = field[start..].split(|byte| *byte == 0).next().unwrap_or(&[]);
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    text[..end].iter().try_fold(0i64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 8)?;
        value.checked_mul(8)?.checked_add(i64::from(digit))
    })
}

/// Reads a number of an extended header.
fn decimal<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

fn metadata(header: &Header, records: &Records, limits: &Limits) -> Result<Meta, LayerErrorKind> {
    let fields = header.as_old();
    let (mtime, mtime_nsec) = match records.get("mtime") {
        Some(text) => parse_time(text),
        None => number(&fields.mtime).map(|seconds| (seconds, 0)),
    }
    .ok_or_else(|| malformed("modification time"))?;
    let mode = number(&fields.mode).and_then(|mode| u32::try_from(mode).ok());
    let mode = mode.and_then(|mode| u16::try_from(mode & 0o7777).ok());
    Ok(Meta {
        mode: mode.ok_or_else(|| malformed("mode"))?,
        uid: id(records.get("uid"), &fields.uid).ok_or_else(|| malformed("owner"))?,
        gid: id(records.get("gid"), &fields.gid).ok_or_else(|| malformed("group"))?,
        mtime,
        mtime_nsec,
        xattrs: xattrs(records, limits)?,
    })
}

fn id(record: Option<&[u8]>, field: &[u8]) -> Option<u32> {
    match record {
        Some(text) => decimal(text),
        None => number(field).and_then(|id| u32::try_from(id).ok()),
    }
}

fn xattrs(
    records: &Records,
    limits: &Limits,
) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, LayerErrorKind> {
    let mut found = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in records.with_prefix(XATTR) {
        check_xattr_name(name)?;
        if !is_kept(name) {
            continue;
        }
        bytes += name.len() + value.len();
        for (what, bytes, limit) in [
            ("bytes in one extended attribute", value.len(), MAX_XATTR_VALUE),
            ("bytes of extended attributes", bytes, limits.xattr_bytes),
        ] {
            if bytes > limit {
                return Err(too_large(what, limit));
            }
        }
        found.insert(name.to_vec(), value.to_vec());
    }
    Ok(found)
}

fn check_xattr_name(name: &[u8]) -> Result<(), LayerErrorKind> {
    if of_overlay(name).is_some_and(|it| !OVERLAY_NOTES.contains(&it)) {
        return Err(LayerErrorKind::OverlayAttribute(String::from_utf8_lossy(name).into_owned()));
    }
    if name.is_empty() || name.len() > MAX_XATTR_NAME || name.contains(&0) {
        return Err(malformed("extended attribute's name"));
    }
    Ok(())
}

/// Returns whether the guest gets an attribute. As in other programs that unpack images on Linux, attributes of other
/// systems (e.g. `com.apple.provenance`) are dropped, and so is overlayfs's bookkeeping.
fn is_kept(name: &[u8]) -> bool {
    is_known_xattr(name) && of_overlay(name).is_none()
}

/// Returns the name of an attribute of overlayfs, without the prefix. `None` for other attributes.
fn of_overlay(name: &[u8]) -> Option<&[u8]> {
    let prefixes: [&[u8]; 2] = [b"trusted.overlay.", b"user.overlay."];
    prefixes.into_iter().find_map(|prefix| name.strip_prefix(prefix))
}

/// Reads a time such as `1700000000.123456789` or `-1.5`: seconds, rounded down, and nanoseconds.
fn parse_time(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if !digits.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let seconds: i64 = whole.parse().ok()?;
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanoseconds: u32 = digits.parse().ok()?;
    if whole.starts_with('-') && nanoseconds > 0 {
        return Some((seconds.checked_sub(1)?, 1_000_000_000 - nanoseconds));
    }
    Some((seconds, nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_exactly() {
        let read = |text: &str| parse_time(text.as_bytes());
        assert_eq!(read("1700000000"), Some((1_700_000_000, 0)));
        assert_eq!(read("1.5"), Some((1, 500_000_000)));
        assert_eq!(read("1.1234567899"), Some((1, 123_456_789)));
        assert_eq!(read("-1.25"), Some((-2, 750_000_000)));
        assert_eq!(read("-0.25"), Some((-1, 750_000_000)));
        for bad in ["", "-", ".", "x", "+1", "1.x", "1.2.3", "99999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn numbers_of_headers_read() {
        for (field, value) in [
            (b"0000644\0".as_slice(), Some(0o644)),
            (b"  644 \0\0", Some(0o644)),
            (b"77777777", Some(0o7777_7777)),
            (b"\0\0\0", Some(0)),
            (b"   ", Some(0)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\xff\xff\xff\xff\x80\0\0\0\0\0\0\0", Some(i64::MIN)),
            (b"\x80\0\0\0\x80\0\0\0\0\0\0\0", None),
            (b"0000008\0", None),
            (b"1 2", None),
            (b"\x00000644", None),
            (b"-1", None),
            (b"+1", None),
            (b"0x1", None),
        ] {
            assert_eq!(number(field), value, "{field:?}");
        }
    }

    #[test]
    fn attributes_are_those_that_linux_has() {
        let read = |name: &str, value: usize| {
            let pair = format!(" SCHILY.xattr.{name}={}\n", "v".repeat(value));
            let length = (1..9).map(|digits| pair.len() + digits);
            let length = length.into_iter().find(|all| all.to_string().len() + pair.len() == *all);
            let mut records = Records::default();
            records.add(format!("{}{pair}", length.unwrap()).as_bytes()).unwrap();
            xattrs(&records, &Limits::default())
        };
        for fine in ["user.a", "trusted.a", "security.capability", "system.posix_acl_access"] {
            assert_eq!(read(fine, 65_535).unwrap().len(), 1, "{fine}");
        }
        for foreign in ["com.apple.provenance", "system.nfs4_acl", "user.", "a"] {
            assert!(read(foreign, 1).unwrap().is_empty(), "{foreign}");
        }
        for note in ["user.overlay.origin", "trusted.overlay.impure", "user.overlay.nlink"] {
            assert!(read(note, 1).unwrap().is_empty(), "{note}");
        }
        let large = read("user.a", 65_536);
        assert!(matches!(large, Err(LayerErrorKind::TooLarge { limit: 65_535, .. })));
        let overlay = read("user.overlay.opaque", 1);
        assert!(overlay.is_err_and(|it| it.to_string().ends_with("is reserved for overlayfs")));
    }
}
