//! The bounded memory of a stream: its beginning and its end.

use std::collections::VecDeque;

/// The first and the last bytes of a stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// How many bytes between them were left out.
    left_out: u64,
}

impl Kept {
    /// Adds bytes of the stream. Keeps `limit` bytes: a half of the beginning, and a half of the end.
    pub(super) fn push(&mut self, data: &[u8], limit: usize) {
        let half = limit / 2;
        let room = (limit - half).saturating_sub(self.first.len());
        let (first, rest) = data.split_at(data.len().min(room));
        self.first.extend_from_slice(first);
        let rest_kept = &rest[rest.len().saturating_sub(half)..];
        self.last.extend(rest_kept);
        let excess = self.last.len().saturating_sub(half);
        self.last.drain(..excess);
        self.left_out += (rest.len() - rest_kept.len() + excess) as u64;
    }

    /// Returns whether bytes were left out.
    pub(super) const fn is_truncated(&self) -> bool {
        self.left_out > 0
    }

    /// Returns the bytes, with a line that counts those that were left out. A character that is kept in part counts to these.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let last: Vec<u8> = self.last.iter().copied().collect();
        if !self.is_truncated() {
            return [self.first.as_slice(), &last].concat();
        }
        let (first, last) = (before_cut(&self.first), after_cut(&last));
        let cut = self.first.len() - first.len() + self.last.len() - last.len();
        if first.is_empty() && last.is_empty() {
            return Vec::new();
        }
        let start = if first.ends_with(b"\n") { "" } else { "\n" };
        let count = self.left_out + cut as u64;
        let unit = if count == 1 { "byte" } else { "bytes" };
        let note = format!("{start}[… {count} {unit} left out …]\n");
        [first, note.as_bytes(), last].concat()
    }
}

/// The length of the longest character in UTF-8 without its last byte.
const MAX_PART: usize = 3;

/// Returns bytes without the part of a character at their end.
fn before_cut(bytes: &[u8]) -> &[u8] {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Returns bytes without the part of a character at their beginning.
fn after_cut(bytes: &[u8]) -> &[u8] {
    let is_part = |byte: &&u8| **byte & 0xc0 == 0x80;
    &bytes[bytes.iter().take(MAX_PART).take_while(is_part).count()..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(pieces: &[&[u8]], limit: usize) -> Kept {
        let mut kept = Kept::default();
        pieces.iter().for_each(|it| kept.push(it, limit));
        kept
    }

    fn text(pieces: &[&[u8]], limit: usize) -> String {
        String::from_utf8(kept(pieces, limit).bytes()).unwrap()
    }

    #[test]
    fn of_a_long_stream_both_ends_are_kept() {
        assert_eq!(text(&[b"abc", b"def"], 6), "abcdef");
        assert_eq!(text(&[b"abcde", b"fgh"], 6), "abc\n[… 2 bytes left out …]\nfgh");
        assert_eq!(text(&[b"ab\n", b"1234567", b"89"], 6), "ab\n[… 6 bytes left out …]\n789");
        assert_eq!(text(&[b"abc"], 1), "a\n[… 2 bytes left out …]\n");
        assert_eq!(text(&[b"abc"], 0), "", "no output is wanted");
        assert!(kept(&[b"abc"], 0).is_truncated() && !kept(&[b"abc"], 3).is_truncated());
    }

    #[test]
    fn a_cut_leaves_no_part_of_a_character() {
        assert_eq!(text(&["äöü漢字".as_bytes()], 6), "ä\n[… 7 bytes left out …]\n字");
        let bytes = kept(&[&[0xff; 9]], 4).bytes();
        assert_eq!((bytes[0], bytes.last()), (0xff, Some(&0xff)), "other bytes stay");
    }

    proptest! {
        #[test]
        fn what_is_kept_does_not_depend_on_the_pieces(data: Vec<u8>, at in 0_usize..64, limit in 0_usize..64) {
            let (one, two) = data.split_at(at.min(data.len()));
            let (whole, pieces) = (kept(&[&data], limit), kept(&[one, two], limit));
            prop_assert_eq!(whole.bytes(), pieces.bytes());
            prop_assert_eq!(whole.is_truncated(), data.len() > limit);
            if data.len() <= limit {
                prop_assert_eq!(whole.bytes(), data);
            }
        }
    }
}
