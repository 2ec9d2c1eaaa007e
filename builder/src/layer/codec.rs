//! How a [`LayerIndex`] lies in the store.
//!
//! `"boxbuild layer 1\n"`, then the number of changes and each change, then the number of contents
//! and each content. Numbers are little-endian, byte strings are a u32 length and the bytes:
//!
//! ```text
//! change   path, tag u8: 0 whiteout, 1 opaque, 2 hard link (target),
//!          3 directory (meta), 4 file (meta, BLAKE3 32 bytes, size u64), 5 symlink (meta, target),
//!          6 char and 7 block device (meta, major u32, minor u32), 8 pipe (meta)
//! meta     mode u16, uid u32, gid u32, mtime i64, mtime_nsec u32, xattrs u32 (name, value)…
//! content  BLAKE3 32 bytes, size u64, offset in the pack u64
//! ```

use std::collections::BTreeMap;

use super::{Action, Change, LayerIndex};
use crate::tree::{Content, Leaf, Meta};

/// The version of the decoder and of this form; it is part of the cache key of a decoded layer.
pub const DECODER_EPOCH: u32 = 1;

const MAGIC: &[u8] = b"boxbuild layer 1\n";

/// The bytes are no index of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored index of a layer is damaged")]
pub struct IndexError;

impl LayerIndex {
    /// Returns the stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.length(self.changes.len());
        for change in &self.changes {
            out.bytes(&change.path);
            out.action(&change.action);
        }
        out.length(self.contents.len());
        for (content, offset) in &self.contents {
            out.content(content);
            out.u64(*offset);
        }
        out.0
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`IndexError`] for anything that [`LayerIndex::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, IndexError> {
        let mut input = Reader(bytes.strip_prefix(MAGIC).ok_or(IndexError)?);
        let mut index = Self::default();
        for _ in 0..input.u32()? {
            index.changes.push(Change { path: input.bytes()?, action: input.action()? });
        }
        for _ in 0..input.u32()? {
            index.contents.push((input.content()?, input.u64()?));
        }
        if input.0.is_empty() { Ok(index) } else { Err(IndexError) }
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn length(&mut self, length: usize) {
        // `Limits` keep every count and every byte string far below 2^32.
        self.u32(u32::try_from(length).unwrap_or(u32::MAX));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    fn content(&mut self, content: &Content) {
        self.0.extend_from_slice(&content.hash);
        self.u64(content.size);
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Whiteout => self.0.push(0),
            Action::Opaque => self.0.push(1),
            Action::HardLink(target) => {
                self.0.push(2);
                self.bytes(target);
            }
            Action::Directory(meta) => self.tagged(3, meta),
            Action::Leaf(meta, leaf) => self.leaf(meta, leaf),
        }
    }

    fn leaf(&mut self, meta: &Meta, leaf: &Leaf) {
        match leaf {
            Leaf::File(content) => {
                self.tagged(4, meta);
                self.content(content);
            }
            Leaf::Symlink(target) => {
                self.tagged(5, meta);
                self.bytes(target);
            }
            Leaf::CharDevice(major, minor) => self.device(6, meta, *major, *minor),
            Leaf::BlockDevice(major, minor) => self.device(7, meta, *major, *minor),
            Leaf::Fifo => self.tagged(8, meta),
        }
    }

    fn device(&mut self, tag: u8, meta: &Meta, major: u32, minor: u32) {
        self.tagged(tag, meta);
        self.u32(major);
        self.u32(minor);
    }

    fn tagged(&mut self, tag: u8, meta: &Meta) {
        self.0.push(tag);
        self.0.extend_from_slice(&meta.mode.to_le_bytes());
        self.u32(meta.uid);
        self.u32(meta.gid);
        self.0.extend_from_slice(&meta.mtime.to_le_bytes());
        self.u32(meta.mtime_nsec);
        self.length(meta.xattrs.len());
        for (name, value) in &meta.xattrs {
            self.bytes(name);
            self.bytes(value);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], IndexError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(IndexError)?;
        self.0 = rest;
        Ok(*array)
    }

    fn u32(&mut self) -> Result<u32, IndexError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, IndexError> {
        self.array().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Result<Vec<u8>, IndexError> {
        let length = usize::try_from(self.u32()?).map_err(|_| IndexError)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(IndexError)?;
        self.0 = rest;
        Ok(bytes.to_vec())
    }

    fn content(&mut self) -> Result<Content, IndexError> {
        Ok(Content { hash: self.array()?, size: self.u64()? })
    }

    fn action(&mut self) -> Result<Action, IndexError> {
        let [tag] = self.array()?;
        Ok(match tag {
            0 => Action::Whiteout,
            1 => Action::Opaque,
            2 => Action::HardLink(self.bytes()?),
            3 => Action::Directory(self.meta()?),
            _ => Action::Leaf(self.meta()?, self.leaf(tag)?),
        })
    }

    fn leaf(&mut self, tag: u8) -> Result<Leaf, IndexError> {
        Ok(match tag {
            4 => Leaf::File(self.content()?),
            5 => Leaf::Symlink(self.bytes()?),
            6 => Leaf::CharDevice(self.u32()?, self.u32()?),
            7 => Leaf::BlockDevice(self.u32()?, self.u32()?),
            8 => Leaf::Fifo,
            _ => return Err(IndexError),
        })
    }

    fn meta(&mut self) -> Result<Meta, IndexError> {
        let mut meta = Meta {
            mode: self.array().map(u16::from_le_bytes)?,
            uid: self.u32()?,
            gid: self.u32()?,
            mtime: self.array().map(i64::from_le_bytes)?,
            mtime_nsec: self.u32()?,
            xattrs: BTreeMap::new(),
        };
        for _ in 0..self.u32()? {
            meta.xattrs.insert(self.bytes()?, self.bytes()?);
        }
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta() -> impl Strategy<Value = Meta> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..5);
        let xattrs = proptest::collection::btree_map(bytes(), bytes(), 0..3);
        (0u16..0o10000, any::<u32>(), any::<u32>(), any::<i64>(), 0u32..1_000_000_000, xattrs)
            .prop_map(|(mode, uid, gid, mtime, mtime_nsec, xattrs)| Meta {
                mode,
                uid,
                gid,
                mtime,
                mtime_nsec,
                xattrs,
            })
    }

    fn leaf() -> impl Strategy<Value = Leaf> {
        prop_oneof![
            (any::<[u8; 32]>(), any::<u64>())
                .prop_map(|(hash, size)| Leaf::File(Content { hash, size })),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(Leaf::Symlink),
            (any::<u32>(), any::<u32>()).prop_map(|(major, minor)| Leaf::CharDevice(major, minor)),
            (any::<u32>(), any::<u32>()).prop_map(|(major, minor)| Leaf::BlockDevice(major, minor)),
            Just(Leaf::Fifo),
        ]
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            Just(Action::Whiteout),
            Just(Action::Opaque),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(Action::HardLink),
            meta().prop_map(Action::Directory),
            (meta(), leaf()).prop_map(|(meta, leaf)| Action::Leaf(meta, leaf)),
        ]
    }

    fn index() -> impl Strategy<Value = LayerIndex> {
        let path = proptest::collection::vec(any::<u8>(), 0..9);
        let change = (path, action()).prop_map(|(path, action)| Change { path, action });
        let content = (any::<[u8; 32]>(), any::<u64>(), any::<u64>())
            .prop_map(|(hash, size, offset)| (Content { hash, size }, offset));
        let lists =
            (proptest::collection::vec(change, 0..9), proptest::collection::vec(content, 0..9));
        lists.prop_map(|(changes, contents)| LayerIndex { changes, contents })
    }

    proptest! {
        #[test]
        fn an_index_reads_back(index in index()) {
            prop_assert_eq!(LayerIndex::decode(&index.encode()), Ok(index));
        }

        #[test]
        fn damage_is_an_error_and_never_a_panic(index in index(), at in any::<prop::sample::Index>()) {
            let bytes = index.encode();
            let cut = at.index(bytes.len());
            prop_assert_eq!(LayerIndex::decode(&bytes[..cut]), Err(IndexError));
        }
    }
}
