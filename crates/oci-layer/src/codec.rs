//! The stored form of a [`LayerIndex`].
//!
//! `"boxbuild layer 3\n"`, the size of the archive as a u64, then the number of changes and each change, then the
//! number of contents in the pack and each content, then the same for the segment. Numbers are little-endian, byte strings are a
//! u32 length and the bytes:
//!
//! ```text
//! change   path, tag u8: 0 whiteout, 1 opaque, 2 hard link (target), others as in [`encoding`]
//! content  BLAKE3 32 bytes, size u64
//! ```
//!
//! The offset of a content follows from the sizes of the contents before it.
//!
//! [`encoding`]: box_tree::encoding

use std::io;

use box_tree::Content;
use box_tree::encoding::{DIRECTORY, Reader, Truncated, Writer};

use super::contents::end;
use super::path::{Directories, normalize};
use super::{
    Action, Change, Excess, LayerIndex, Limits, MAX_INLINE, MIN_SEGMENT, Placed, SEGMENT_BLOCK,
    Total,
};

/// The version of the decoder and of this form; it is part of the cache key of a decoded layer.
pub const DECODER_EPOCH: u32 = 6;

/// The size of a write, in bytes.
const PIECE: usize = 64 << 10;

const MAGIC: &[u8] = b"boxbuild layer 3\n";

/// The reason why a stored index cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The bytes are no index of this version.
    #[error("the stored index of a layer is damaged")]
    Damaged,
    /// With the other layers, the layer exceeds a limit.
    #[error(transparent)]
    Together(#[from] Excess),
}

impl From<Truncated> for IndexError {
    fn from(_: Truncated) -> Self {
        Self::Damaged
    }
}

impl LayerIndex {
    /// Writes the stored form piece by piece. The whole form would take nearly as much memory as the index.
    ///
    /// # Errors
    /// The errors of `to`.
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
        for list in [&self.contents, &self.segment] {
            out.length(list.len());
            for (content, _) in list {
                out.content(content);
                pass_on(&mut out, PIECE)?;
            }
        }
        pass_on(&mut out, 0)
    }

    /// Returns whether all paths and targets of hard links are those of an archive that this version decodes: normalized, and
    /// within `limits`. The stored form of another host may have any bytes there.
    pub fn is_normal(&self, limits: &Limits) -> bool {
        let is_normal = |path: &[u8]| normalize(path, limits).is_ok_and(|it| it == path);
        self.changes.iter().all(|change| {
            let target = match &change.action {
                Action::HardLink(target) => Some(target),
                _ => None,
            };
            is_normal(&change.path) && target.is_none_or(|it| is_normal(it))
        })
    }

    /// Reads the stored form, and adds the layer to `total` while it is read, as [`Total::decode`] does.
    ///
    /// # Errors
    /// [`IndexError::Damaged`] for anything that [`LayerIndex::write`] does not write; [`IndexError::Together`] if the layers
    /// together exceed a limit.
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
        index.contents = placed(&mut input, 1, |_| true)?;
        index.segment = placed(&mut input, SEGMENT_BLOCK, |it| it.size > MAX_INLINE)?;
        if !index.segment.is_empty() && index.segment_size() < MIN_SEGMENT {
            return Err(IndexError::Damaged);
        }
        if input.is_empty() { Ok(index) } else { Err(IndexError::Damaged) }
    }
}

/// Reads contents, each padded to a multiple of `block`. A content that `may_be_there` rejects is an error.
fn placed(
    input: &mut Reader<'_>,
    block: u64,
    may_be_there: impl Fn(&Content) -> bool,
) -> Result<Placed, IndexError> {
    let mut placed = Placed::new();
    for _ in 0..input.u32()? {
        let content = input.content()?;
        if !may_be_there(&content) {
            return Err(IndexError::Damaged);
        }
        placed.push((content, end(&placed, block).ok_or(IndexError::Damaged)?));
    }
    end(&placed, block).map(|_| placed).ok_or(IndexError::Damaged)
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
        let changes = proptest::collection::vec(change, 0..9);
        let lists = (changes, contents(0, 1), contents(MAX_INLINE + 1, 4096), any::<u64>());
        lists.prop_map(|(changes, contents, segment, archive_size)| {
            let mut index = LayerIndex { changes, contents, segment, archive_size };
            if index.segment_size() < MIN_SEGMENT {
                index.segment.clear();
            }
            index
        })
    }

    /// Generates lists of contents of at least `least` bytes, each at a multiple of `block`.
    fn contents(least: u64, block: u64) -> impl Strategy<Value = Placed> {
        let sizes = prop_oneof![least..least + 4, least..1 << 40];
        let content = (content(), sizes).prop_map(|(content, size)| Content { size, ..content });
        proptest::collection::vec(content, 0..9).prop_map(move |contents| {
            let mut offset = 0;
            let place = |content: Content| {
                let start = offset;
                offset += content.size.next_multiple_of(block);
                (content, start)
            };
            contents.into_iter().map(place).collect()
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

    /// Returns whether an index with contents of these sizes in the pack and the segment can be decoded.
    fn reads(pack: &[u64], segment: &[u64]) -> bool {
        let content = |size: &u64| (Content { size: *size, ..Content::of(b"") }, 0);
        let [contents, segment] = [pack, segment].map(|it| it.iter().map(content).collect());
        let index = LayerIndex { contents, segment, ..LayerIndex::default() };
        LayerIndex::decode(&encoded(&index), &Total::default()).is_ok()
    }

    #[test]
    fn no_segment_is_too_small_and_nothing_too_large() {
        assert!(reads(&[u64::MAX], &[]) && !reads(&[u64::MAX, 1], &[]));
        assert!(!reads(&[1, u64::MAX, 0], &[]));
        let (least, largest) = (MIN_SEGMENT - SEGMENT_BLOCK, u64::MAX - (SEGMENT_BLOCK - 1));
        assert!(reads(&[], &[MAX_INLINE + 1, least]) && !reads(&[], &[MAX_INLINE, least + 1]));
        assert!(!reads(&[], &[least]) && reads(&[], &[least + 1]));
        assert!(reads(&[], &[largest]) && !reads(&[], &[largest + 1]));
        assert!(!reads(&[], &[largest, MAX_INLINE + 1]));
    }
}
