//! Heads: the first bytes of large files that a build reads from segments, such as the headers of a component's program.
//!
//! With the heads, and with the index and the pack of each layer, a box can be built on a host that has no segment.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use box_digest::Blake3Digest;
use box_registry::MAX_HEADS;
use box_tree::Content;
use box_tree::encoding::{Reader, Truncated, Writer};

/// The maximum size of one head, in bytes.
const MAX_HEAD: usize = 1 << 20;
/// The size of a head in the stored form without its bytes.
const FRAME: usize = 32 + 8 + 4;

/// The first bytes of contents, by the hash of the whole content.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    /// The heads of another host.
    given: BTreeMap<Blake3Digest, Head>,
    /// The heads that were read, from `given` or from segments.
    read: Mutex<BTreeMap<Blake3Digest, Head>>,
}

/// The first bytes of a content of `size` bytes.
#[derive(Debug)]
struct Head {
    size: u64,
    bytes: Vec<u8>,
}

impl Heads {
    /// Returns whether a reader of `length` bytes should keep them.
    pub(crate) fn takes(length: u64) -> bool {
        length <= MAX_HEAD as u64
    }

    /// Keeps the first bytes of a content that were read, unless more bytes of it are kept already or the stored form of all heads
    /// would be larger than a registry's build cache may have it.
    pub(crate) fn add(&self, content: &Content, bytes: &[u8]) {
        let mut heads = self.read();
        let known = heads.get(&content.hash).map_or(0, |it| it.bytes.len());
        let others = heads.iter().filter(|(hash, _)| **hash != content.hash);
        let total: usize = others.map(|(_, it)| FRAME + it.bytes.len()).sum();
        let fits = (total + FRAME + bytes.len()) as u64 <= MAX_HEADS;
        if known < bytes.len() && fits {
            let (size, bytes) = (content.size, bytes.to_vec());
            heads.insert(content.hash, Head { size, bytes });
        }
    }

    /// Returns the first `length` bytes of a content from the heads of another host, and keeps them. `None` if that host had fewer. The
    /// hash of a whole content is compared.
    pub(crate) fn get(&self, content: &Content, length: u64) -> Option<Vec<u8>> {
        let head = self.given.get(&content.hash)?.bytes.get(..usize::try_from(length).ok()?)?;
        let is_right = length < content.size || Content::of(head) == *content;
        is_right.then(|| {
            self.add(content, head);
            head.to_vec()
        })
    }

    /// Returns the stored form of the heads that were read: for each content its BLAKE3 hash of 32 bytes, its size as a little-endian u64, the length of the
    /// head as a u32, and the head.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        for (hash, Head { size, bytes }) in &*self.read() {
            out.content(&Content { hash: *hash, size: *size });
            out.bytes(bytes);
        }
        out.0
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes are no stored form.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Truncated> {
        let (mut input, mut heads) = (Reader::new(bytes), BTreeMap::new());
        while !input.is_empty() {
            let Content { hash, size } = input.content()?;
            heads.insert(hash, Head { size, bytes: input.bytes()?.to_vec() });
        }
        Ok(Self { given: heads, read: Mutex::default() })
    }

    fn read(&self) -> MutexGuard<'_, BTreeMap<Blake3Digest, Head>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_has_every_head_and_is_read_strictly() {
        let (heads, content) = (Heads::default(), Content::of(b"0123456789"));
        heads.add(&content, b"01");
        heads.add(&content, b"0123");
        heads.add(&content, b"012");
        heads.add(&Content::of(b"whole"), b"whole");
        let bytes = heads.encode();
        let read = Heads::decode(&bytes).unwrap();
        assert_eq!(read.get(&content, 4).as_deref(), Some(b"0123".as_slice()));
        assert_eq!(read.get(&content, 5), None);
        assert_eq!(read.get(&Content::of(b"whole"), 5).as_deref(), Some(b"whole".as_slice()));
        assert_eq!(read.get(&Content::of(b"other"), 1), None);
        // What was read of the given heads is passed on, and no more.
        let passed_on = Heads::decode(&read.encode()).unwrap();
        assert_eq!(passed_on.get(&content, 4).as_deref(), Some(b"0123".as_slice()));
        assert_eq!(Heads::decode(&bytes).unwrap().encode(), b"");
        for end in 1..bytes.len() {
            let cut = Heads::decode(&bytes[..end]);
            // The first of the two heads ends after 44 bytes and its 4 or 5 bytes.
            assert!(cut.is_err() || [48, 49].contains(&end), "{end}");
        }
    }

    #[test]
    fn a_content_that_is_kept_whole_is_compared_with_its_hash() {
        let (heads, content) = (Heads::default(), Content::of(b"right"));
        heads.add(&content, b"wrong");
        assert_eq!(heads.get(&content, 4), None, "these heads were read here");
        let heads = Heads::decode(&heads.encode()).unwrap();
        assert_eq!(heads.get(&content, 5), None);
        assert_eq!(heads.get(&content, 4).as_deref(), Some(b"wron".as_slice()));
    }

    #[test]
    fn all_heads_together_have_a_limit() {
        let heads = Heads::default();
        for number in 0..20_u8 {
            let bytes = vec![number; MAX_HEAD];
            heads.add(&Content::of(&bytes), &bytes);
        }
        assert!(heads.encode().len() as u64 <= MAX_HEADS);
        assert!(Heads::takes(MAX_HEAD as u64) && !Heads::takes(MAX_HEAD as u64 + 1));
    }
}
