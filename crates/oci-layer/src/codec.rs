//! The stored form of a [`LayerIndex`].
//!
//! `"boxbuild layer 2\n"`, the bytes of the archive as a u64, then the number of changes and each change, then the
//! number of contents and each content. Numbers are little-endian, byte strings are a u32 length and the bytes:
//!
//! ```text
//! change   path, tag u8: 0 whiteout, 1 opaque, 2 hard link (target), others as in [`encoding`]
//! content  BLAKE3 32 bytes, size u64, offset in the pack u64
//! ```
//!
//! [`encoding`]: box_tree::encoding

use std::io;

use box_tree::encoding::{DIRECTORY, Reader, Truncated, Writer};

use super::path::Directories;
use super::{Action, Change, Excess, LayerIndex, Total};

/// The version of the decoder and of this form; it is part of the cache key of a decoded layer.
pub const DECODER_EPOCH: u32 = 5;

/// Bytes that are written at once.
const PIECE: usize = 64 << 10;

const MAGIC: &[u8] = b"boxbuild layer 2\n";

/// A stored index cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The bytes are no index of this version.
    #[error("the stored index of a layer is damaged")]
    Damaged,
    /// With the other layers, the layer is too much.
    #[error(transparent)]
    Together(#[from] Excess),
}

impl From<Truncated> for IndexError {
    fn from(_: Truncated) -> Self {
        Self::Damaged
    }
}

impl LayerIndex {
    /// Writes the stored form, a piece at a time: whole, it would take nearly as much memory again.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: &mut dyn io::Write) -> io::Result<()> {
        let mut out = Writer(MAGIC.to_vec());
        let mut pass_on = |out: &mut Writer, least| {
            if out.0.len() < least {
                return Ok(());
            }
            to.write_all(&out.0)?;
            out.0.clear();
            Ok::<_, io::Error>(())
        };
        out.u64(self.archive_size);
        out.length(self.changes.len());
        for change in &self.changes {
            out.bytes(&change.path);
            put_action(&mut out, &change.action);
            pass_on(&mut out, PIECE)?;
        }
        out.length(self.contents.len());
        for (content, offset) in &self.contents {
            out.content(content);
            out.u64(*offset);
            pass_on(&mut out, PIECE)?;
        }
        pass_on(&mut out, 0)
    }

    /// Reads the stored form, and adds the layer to `total` while it is read, as [`Total::decode`] does.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for anything that [`LayerIndex::write`] does not write; [`IndexError::Together`] if the layers
    /// are too much together.
    pub fn decode(bytes: &[u8], total: &Total) -> Result<Self, IndexError> {
        let mut input = Reader::new(bytes.strip_prefix(MAGIC).ok_or(IndexError::Damaged)?);
        let mut index = Self { archive_size: input.u64()?, ..Self::default() };
        total.unpack(index.archive_size)?;
        let mut directories = Directories::default();
        for _ in 0..input.u32()? {
            let path = input.bytes()?.to_vec();
            let change = Change { path, action: action(&mut input)? };
            total.add_change(&change, directories.implied_by(&change))?;
            index.changes.push(change);
        }
        for _ in 0..input.u32()? {
            index.contents.push((input.content()?, input.u64()?));
        }
        if input.is_empty() { Ok(index) } else { Err(IndexError::Damaged) }
    }
}

const WHITEOUT: u8 = 0;
const OPAQUE: u8 = 1;
const HARD_LINK: u8 = 2;

fn put_action(out: &mut Writer, action: &Action) {
    match action {
        Action::Whiteout => out.0.push(WHITEOUT),
        Action::Opaque => out.0.push(OPAQUE),
        Action::HardLink(target) => {
            out.0.push(HARD_LINK);
            out.bytes(target);
        }
        Action::Directory(meta) => out.directory(meta),
        Action::Leaf(meta, leaf) => out.leaf(meta, leaf),
    }
}

fn action(input: &mut Reader<'_>) -> Result<Action, IndexError> {
    let tag = input.u8()?;
    Ok(match tag {
        WHITEOUT => Action::Whiteout,
        OPAQUE => Action::Opaque,
        HARD_LINK => Action::HardLink(input.bytes()?.to_vec()),
        DIRECTORY => Action::Directory(input.meta()?),
        _ => {
            let meta = input.meta()?;
            Action::Leaf(meta, input.leaf(tag)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use box_digest::Blake3Digest;
    use box_tree::{Content, Leaf, Meta};
    use proptest::prelude::*;

    use super::*;

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

    fn content() -> impl Strategy<Value = Content> {
        (any::<[u8; 32]>(), any::<u64>())
            .prop_map(|(hash, size)| Content { hash: Blake3Digest::from_bytes(hash), size })
    }

    fn leaf() -> impl Strategy<Value = Leaf> {
        prop_oneof![
            content().prop_map(Leaf::File),
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

    fn encoded(index: &LayerIndex) -> Vec<u8> {
        let mut bytes = Vec::new();
        index.write(&mut bytes).unwrap();
        bytes
    }

    fn index() -> impl Strategy<Value = LayerIndex> {
        let path = proptest::collection::vec(any::<u8>(), 0..9);
        let change = (path, action()).prop_map(|(path, action)| Change { path, action });
        let content = proptest::collection::vec((content(), any::<u64>()), 0..9);
        let lists = (proptest::collection::vec(change, 0..9), content, any::<u64>());
        lists.prop_map(|(changes, contents, archive_size)| LayerIndex {
            changes,
            contents,
            archive_size,
        })
    }

    proptest! {
        #[test]
        fn an_index_reads_back(index in index()) {
            prop_assert_eq!(LayerIndex::decode(&encoded(&index), &Total::default()), Ok(index));
        }

        #[test]
        fn damage_is_an_error_and_never_a_panic(index in index(), at in any::<prop::sample::Index>()) {
            let bytes = encoded(&index);
            let cut = at.index(bytes.len());
            prop_assert_eq!(LayerIndex::decode(&bytes[..cut], &Total::default()), Err(IndexError::Damaged));
        }
    }
}
