//! Writes the members of a tar archive field by field, so that each field can have any content.

use super::bytes::unescape;

/// The size of a block, in bytes.
pub(super) const BLOCK: usize = 512;

/// The offsets and lengths of the fields of a header
/// ([POSIX pax](https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html), "ustar Header Block").
const FIELDS: [(&str, usize, usize); 16] = [
    ("name", 0, 100),
    ("mode", 100, 8),
    ("uid", 108, 8),
    ("gid", 116, 8),
    ("size", 124, 12),
    ("mtime", 136, 12),
    ("sum", 148, 8),
    ("type", 156, 1),
    ("linkname", 157, 100),
    ("magic", 257, 8),
    ("uname", 265, 32),
    ("gname", 297, 32),
    ("devmajor", 329, 8),
    ("devminor", 337, 8),
    ("prefix", 345, 155),
    ("rest", 500, 12),
];

/// A member that is being written.
pub(super) struct Member {
    header: [u8; BLOCK],
    data: Vec<u8>,
    /// Whether the checksum is the sum of the bytes as signed numbers, as in old programs of Sun.
    signed: bool,
    /// The content of the checksum field. `None` for the correct checksum.
    sum: Option<Vec<u8>>,
}

impl Member {
    /// Starts a member in the ustar format, which belongs to root and has the modification time 0.
    pub(super) fn new(kind: u8, name: &[u8], mode: &str, data: &[u8]) -> Self {
        let header = [0; BLOCK];
        let mut member = Self { header, data: data.to_vec(), signed: false, sum: None };
        member.set("type", &[kind]);
        member.set("name", &name[..name.len().min(100)]);
        member.set("mode", mode.as_bytes());
        member.set("size", format!("{:011o}", data.len()).as_bytes());
        for (field, zeros) in [("uid", "0000000"), ("gid", "0000000"), ("mtime", "00000000000")] {
            member.set(field, zeros.as_bytes());
        }
        member.set("magic", b"ustar\x0000");
        member
    }

    /// Sets a field to a value, and fills the rest of the field with zeros.
    ///
    /// # Panics
    /// If there is no field `field`, or it is shorter than the value.
    pub(super) fn set(&mut self, field: &str, value: &[u8]) {
        let (_, start, length) = FIELDS.iter().find(|it| it.0 == field).expect("a field");
        let bytes = &mut self.header[*start..start + length];
        assert!(value.len() <= bytes.len(), "{field} is shorter than {value:?}");
        bytes.fill(0);
        bytes[..value.len()].copy_from_slice(value);
    }

    /// Applies a word such as `size:7` or `sum:signed`. Returns `false` for any other word.
    pub(super) fn apply(&mut self, word: &str) -> bool {
        let Some((field, value)) = word.split_once(':') else { return false };
        match (field, value) {
            ("sum", "signed") => self.signed = true,
            ("sum", value) => self.sum = Some(unescape(value)),
            ("data", value) => self.data = unescape(value),
            // The data keep their size. Only the header has another one.
            ("claims", value) => {
                let claimed: u64 = value.parse().expect("claims: has a number");
                self.set("size", format!("{claimed:011o}").as_bytes());
            }
            (field, value) if FIELDS.iter().any(|it| it.0 == field) => {
                self.set(field, &unescape(value));
            }
            _ => return false,
        }
        true
    }

    /// Returns the header, with its checksum, and the data, padded to whole blocks.
    pub(super) fn bytes(mut self) -> Vec<u8> {
        self.set("sum", b"        ");
        let sum: i64 = if self.signed {
            self.header.iter().map(|byte| i64::from(byte.cast_signed())).sum()
        } else {
            self.header.iter().map(|byte| i64::from(*byte)).sum()
        };
        let sum = self.sum.take().unwrap_or_else(|| format!("{sum:06o}\0 ").into_bytes());
        self.set("sum", &sum);
        let mut bytes = [&self.header[..], &self.data].concat();
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }
}

/// Returns a record of an extended header, `LENGTH KEY=VALUE\n`, in which the length includes itself, such as
/// `11 path=ab\n`.
pub(super) fn record(pair: &[u8]) -> Vec<u8> {
    let rest = pair.len() + 2;
    let mut length = rest + 1;
    while length.to_string().len() + rest != length {
        length = length.to_string().len() + rest;
    }
    [length.to_string().as_bytes(), b" ", pair, b"\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_independent_reader_understands_the_headers() {
        let mut member = Member::new(b'0', b"evil", "0000644", b"hello");
        assert!(member.apply("uid:0000007") && member.apply("prefix:up"));
        assert!(!member.apply("hello") && !member.apply("nothing:1"));
        let bytes = member.bytes();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entry = archive.entries().unwrap().next().unwrap().unwrap();
        assert_eq!(&*entry.path_bytes(), b"up/evil");
        assert_eq!((entry.size(), entry.header().uid().unwrap()), (5, 7));
        assert!(entry.header().entry_type().is_file());
    }

    #[test]
    fn a_record_counts_itself() {
        assert_eq!(record(b"a=b"), b"6 a=b\n");
        assert_eq!(record(b"a=bcdefg"), b"12 a=bcdefg\n");
    }
}
