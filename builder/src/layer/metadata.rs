//! The metadata of an archive's entry, from its header and its PAX extensions (POSIX pax(1)).

use std::collections::BTreeMap;
use std::io::Read;

use tar::Entry;

use super::{LayerErrorKind, Limits};
use crate::tree::Meta;

const XATTR: &str = "SCHILY.xattr.";

/// What PAX extensions say beyond what the tar reader applies itself.
#[derive(Debug, Default)]
struct Extensions {
    mtime: Option<(i64, u32)>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Returns the metadata of an entry.
///
/// # Errors
/// A number or an extended header that does not read, a sparse file, attributes beyond the limit
/// or reserved ones.
pub(super) fn metadata(
    entry: &mut Entry<'_, impl Read>,
    limits: &Limits,
) -> Result<Meta, LayerErrorKind> {
    let extensions = extensions(entry, limits)?;
    let header = entry.header();
    let mode = header.mode().map_err(|_| LayerErrorKind::Malformed("mode"))?;
    let (mtime, mtime_nsec) = match extensions.mtime {
        Some(mtime) => mtime,
        None => (header_mtime(header)?, 0),
    };
    Ok(Meta {
        mode: u16::try_from(mode & 0o7777).map_err(|_| LayerErrorKind::Malformed("mode"))?,
        uid: number(header.uid(), "owner")?,
        gid: number(header.gid(), "group")?,
        mtime,
        mtime_nsec,
        xattrs: extensions.xattrs,
    })
}

fn number(field: std::io::Result<u64>, name: &'static str) -> Result<u32, LayerErrorKind> {
    let value = field.map_err(|_| LayerErrorKind::Malformed(name))?;
    u32::try_from(value).map_err(|_| LayerErrorKind::Malformed(name))
}

fn header_mtime(header: &tar::Header) -> Result<i64, LayerErrorKind> {
    let malformed = LayerErrorKind::Malformed("modification time");
    match header.mtime() {
        Ok(seconds) => i64::try_from(seconds).map_err(|_| malformed),
        Err(_) => Err(malformed),
    }
}

fn extensions(
    entry: &mut Entry<'_, impl Read>,
    limits: &Limits,
) -> Result<Extensions, LayerErrorKind> {
    let malformed = |_| LayerErrorKind::Malformed("extended header");
    let mut found = Extensions::default();
    let Some(pairs) = entry.pax_extensions().map_err(malformed)? else { return Ok(found) };
    let mut xattr_bytes = 0;
    for pair in pairs {
        let pair = pair.map_err(malformed)?;
        let key = pair.key().map_err(|_| LayerErrorKind::Malformed("extended header"))?;
        match key {
            "mtime" => found.mtime = Some(decimal_time(pair.value_bytes())?),
            key if key.starts_with("GNU.sparse.") => return Err(LayerErrorKind::Sparse),
            key => {
                if let Some(name) = key.strip_prefix(XATTR) {
                    xattr_bytes += name.len() + pair.value_bytes().len();
                    check_xattr(name, xattr_bytes, limits)?;
                    found.xattrs.insert(name.as_bytes().to_vec(), pair.value_bytes().to_vec());
                }
            }
        }
    }
    Ok(found)
}

fn check_xattr(name: &str, bytes: usize, limits: &Limits) -> Result<(), LayerErrorKind> {
    if name.starts_with("trusted.overlay.") || name.starts_with("user.overlay.") {
        return Err(LayerErrorKind::OverlayAttribute(name.to_owned()));
    }
    if name.is_empty() || name.len() > 255 {
        return Err(LayerErrorKind::Malformed("extended attribute's name"));
    }
    if bytes > limits.xattr_bytes {
        let limit = limits.xattr_bytes as u64;
        return Err(LayerErrorKind::TooLarge { what: "bytes of extended attributes", limit });
    }
    Ok(())
}

/// Reads a time such as `1700000000.123456789` or `-1.5`: seconds, rounded down, and nanoseconds.
fn decimal_time(text: &[u8]) -> Result<(i64, u32), LayerErrorKind> {
    parse_time(text).ok_or(LayerErrorKind::Malformed("modification time"))
}

fn parse_time(text: &[u8]) -> Option<(i64, u32)> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
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
        for bad in ["", ".", "x", "1.x", "1.2.3", "99999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
