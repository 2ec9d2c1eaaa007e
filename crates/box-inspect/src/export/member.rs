//! The headers of a tar archive's members.
//!
//! A header is a ustar header of POSIX
//! ([pax](https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html)). A value that does
//! not fit its field is in a PAX extended header before it: `path` and `linkpath` of more than 100
//! bytes, `uid`, `gid`, `size` and `mtime` that are too large, fractions of seconds, and extended
//! attributes as `SCHILY.xattr.NAME`, as star writes them. If a path among the records is not
//! UTF-8, `hdrcharset=BINARY` precedes it. The records are sorted by key. The header's field is
//! then 0, or the first 100 bytes of the path.
//!
//! Nothing depends on the user who exports: there are no user and group names, and every extended
//! header has the same name and time.

use box_tree::Meta;
use oci_layer::TAR_BLOCK as BLOCK;

const PATH: usize = 100;
/// The largest numbers that fit the octal digits of a header's fields.
const MAX_ID: u64 = 0o777_7777;
const MAX_LONG: u64 = 0o777_7777_7777;

/// The type flag of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    File = b'0' as isize,
    HardLink = b'1' as isize,
    Symlink = b'2' as isize,
    CharDevice = b'3' as isize,
    BlockDevice = b'4' as isize,
    Directory = b'5' as isize,
    Fifo = b'6' as isize,
}

/// A member of an archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member<'a> {
    /// The path. A directory's path ends with a slash.
    pub(super) path: &'a [u8],
    pub(super) flag: Flag,
    /// The target of a link. Empty for all other types.
    pub(super) target: &'a [u8],
    /// The size of the data in bytes.
    pub(super) size: u64,
    /// Major and minor number of a device.
    pub(super) device: (u32, u32),
    pub(super) meta: &'a Meta,
}

impl Member<'_> {
    /// Returns the blocks before the member's data.
    ///
    /// # Errors
    /// The property that an archive cannot represent.
    pub(super) fn encode(&self) -> Result<Vec<u8>, &'static str> {
        let records = self.records()?;
        let mut blocks = Vec::new();
        if !records.is_empty() {
            let header = Header::new(b'x', b"././@PaxHeader", records.len() as u64);
            blocks.extend_from_slice(&header.finish());
            blocks.extend_from_slice(&records);
            blocks.resize(blocks.len().next_multiple_of(BLOCK), 0);
        }
        blocks.extend_from_slice(&self.header());
        Ok(blocks)
    }

    fn header(&self) -> [u8; BLOCK] {
        let fitting = |value, limit| if value <= limit { value } else { 0 };
        let id = |id| fitting(u64::from(id), MAX_ID);
        let mtime = u64::try_from(self.meta.mtime).unwrap_or_default();
        let mut header = Header::new(self.flag as u8, self.path, fitting(self.size, MAX_LONG));
        header.octal(100..108, self.meta.mode.into());
        header.octal(108..116, id(self.meta.uid));
        header.octal(116..124, id(self.meta.gid));
        header.octal(136..148, fitting(mtime, MAX_LONG));
        header.bytes(157, self.target);
        // The numbers fit: the EROFS writer refuses major numbers beyond 12 bits and minor numbers beyond 20 bits.
        header.octal(329..337, id(self.device.0));
        header.octal(337..345, id(self.device.1));
        header.finish()
    }

    fn records(&self) -> Result<Vec<u8>, &'static str> {
        let mut records = Vec::new();
        let mut put = |key: &[u8], value: &[u8]| records.push(record(key, value));
        for (name, value) in self.xattrs() {
            check_xattr(name, value)?;
            put(&[b"SCHILY.xattr.", name.as_slice()].concat(), value);
        }
        let long = |path: &[u8]| path.len() > PATH;
        let binary = |path: &[u8]| long(path) && std::str::from_utf8(path).is_err();
        let meta = self.meta;
        let number = |value: u64| value.to_string().into_bytes();
        let mtime = u64::try_from(meta.mtime).is_ok_and(|mtime| mtime <= MAX_LONG);
        for (key, needed, value) in [
            ("gid", u64::from(meta.gid) > MAX_ID, number(meta.gid.into())),
            ("hdrcharset", binary(self.path) || binary(self.target), b"BINARY".to_vec()),
            ("linkpath", long(self.target), self.target.to_vec()),
            ("mtime", !mtime || meta.mtime_nsec > 0, time(meta).into_bytes()),
            ("path", long(self.path), self.path.to_vec()),
            ("size", self.size > MAX_LONG, number(self.size)),
            ("uid", u64::from(meta.uid) > MAX_ID, number(meta.uid.into())),
        ] {
            if needed {
                put(key.as_bytes(), &value);
            }
        }
        Ok(records.concat())
    }

    /// Returns the extended attributes. A hard link has none: they are at its first name.
    fn xattrs(&self) -> impl Iterator<Item = (&Vec<u8>, &Vec<u8>)> {
        self.meta.xattrs.iter().filter(|_| self.flag != Flag::HardLink)
    }
}

fn check_xattr(name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    if value.is_empty() {
        return Err("an extended attribute without a value");
    }
    if name.contains(&b'=') {
        return Err("an extended attribute with `=` in its name");
    }
    Ok(())
}

/// Writes `LENGTH KEY=VALUE\n`. `LENGTH` is the length of the whole record, including its digits.
fn record(key: &[u8], value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length = length.to_string().len() + rest;
    }
    [length.to_string().as_bytes(), b" ", key, b"=", value, b"\n"].concat()
}

/// Writes seconds since 1970, with as many decimal places as are needed.
fn time(meta: &Meta) -> String {
    const SECOND: u128 = 1_000_000_000;
    let all = i128::from(meta.mtime) * 1_000_000_000 + i128::from(meta.mtime_nsec);
    let sign = if all < 0 { "-" } else { "" };
    let (seconds, rest) = (all.unsigned_abs() / SECOND, all.unsigned_abs() % SECOND);
    let text = format!("{sign}{seconds}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A ustar header being filled.
struct Header([u8; BLOCK]);

impl Header {
    fn new(flag: u8, path: &[u8], size: u64) -> Self {
        let mut header = Self([0; BLOCK]);
        header.bytes(0, path);
        for (field, value) in [(100..108, 0o644), (108..116, 0), (116..124, 0), (136..148, 0)] {
            header.octal(field, value);
        }
        header.octal(124..136, size);
        header.0[156] = flag;
        header.0[257..265].copy_from_slice(b"ustar\x0000");
        header.octal(329..337, 0);
        header.octal(337..345, 0);
        header
    }

    /// Writes at most 100 bytes.
    fn bytes(&mut self, at: usize, bytes: &[u8]) {
        let length = bytes.len().min(PATH);
        self.0[at..at + length].copy_from_slice(&bytes[..length]);
    }

    /// Writes octal digits and a NUL.
    fn octal(&mut self, field: std::ops::Range<usize>, value: u64) {
        let digits = format!("{value:0width$o}\0", width = field.len() - 1);
        self.0[field].copy_from_slice(digits.as_bytes());
    }

    /// Writes the checksum: the sum of all bytes, with the checksum field counted as spaces.
    fn finish(mut self) -> [u8; BLOCK] {
        self.0[148..156].fill(b' ');
        let sum: u64 = self.0.iter().map(|byte| u64::from(*byte)).sum();
        self.0[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(path: &'a [u8], meta: &'a Meta) -> Member<'a> {
        Member { path, flag: Flag::File, target: b"", size: 3, device: (0, 0), meta }
    }

    /// Returns the records of a member as text.
    fn records(member: Member<'_>) -> String {
        member.records().unwrap().escape_ascii().to_string()
    }

    #[test]
    fn what_fits_a_header_has_no_records() {
        let meta = Meta { uid: 0o777_7777, mtime: 0o777_7777_7777, ..Meta::root_owned(0o4755) };
        let path = [b'n'; 100];
        let member = file(&path, &meta);
        assert_eq!(records(member), "");
        let blocks = member.encode().unwrap();
        let header = tar::Header::from_byte_slice(&blocks);
        assert_eq!((header.path_bytes().as_ref(), header.size().unwrap()), (path.as_slice(), 3));
        assert_eq!((header.mode().unwrap(), header.uid().unwrap()), (0o4755, 0o777_7777));
        assert_eq!(header.mtime().unwrap(), 0o777_7777_7777);
        let mut summed = header.clone();
        summed.set_cksum();
        assert_eq!(header.cksum().unwrap(), summed.cksum().unwrap());
    }

    #[test]
    fn what_does_not_fit_is_in_records() {
        let mut meta = Meta::root_owned(0o644);
        (meta.uid, meta.gid, meta.mtime) = (0o1000_0000, u32::MAX, 0o1000_0000_0000);
        let member = Member { size: 8 << 30, ..file(b"name", &meta) };
        assert_eq!(
            records(member),
            "18 gid=4294967295\\n20 mtime=8589934592\\n19 size=8589934592\\n15 uid=2097152\\n"
        );
        let blocks = member.encode().unwrap();
        assert_eq!(blocks.len(), 3 * BLOCK);
        let header = tar::Header::from_byte_slice(&blocks[2 * BLOCK..]);
        assert_eq!((header.size().unwrap(), header.uid().unwrap()), (0, 0));
    }

    #[test]
    fn a_path_of_raw_bytes_says_so_where_it_is_in_a_record() {
        let meta = Meta::root_owned(0o644);
        assert_eq!(records(file(b"\xff", &meta)), "");
        let (long, raw) = ([b'n'; 101], [b'\xff'; 101]);
        assert!(records(file(&long, &meta)).starts_with("111 path=nnn"));
        assert!(records(file(&raw, &meta)).starts_with("21 hdrcharset=BINARY\\n111 path="));
        let link = Member { target: &raw, flag: Flag::Symlink, ..file(b"link", &meta) };
        assert!(records(link).starts_with("21 hdrcharset=BINARY\\n115 linkpath="));
    }

    #[test]
    fn times_are_exact() {
        for (mtime, mtime_nsec, text) in [
            (0, 1, "0.000000001"),
            (1, 500_000_000, "1.5"),
            (-1, 0, "-1"),
            (-2, 750_000_000, "-1.25"),
            (-1, 750_000_000, "-0.25"),
            (10, 0, "10"),
            (i64::MIN, 0, "-9223372036854775808"),
        ] {
            assert_eq!(time(&Meta { mtime, mtime_nsec, ..Meta::root_owned(0) }), text);
        }
    }

    #[test]
    fn attributes_that_no_record_can_hold_are_refused() {
        let with = |name: &[u8], value: &[u8]| {
            let mut meta = Meta::root_owned(0o644);
            meta.xattrs.insert(name.to_vec(), value.to_vec());
            file(b"file", &meta).encode()
        };
        assert!(with(b"user.a", b"b=\n").is_ok());
        assert!(with(b"user.a", b"").is_err());
        assert!(with(b"user.a=b", b"c").is_err());
    }
}
