#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod apply;
mod archive;
mod codec;
mod contents;
mod decode;
mod error;
mod gzip;
#[cfg(test)]
mod hostile;
mod limits;
mod members;
mod metadata;
mod path;
mod pax;
mod read;
mod room;
mod segment;
mod stream;
mod total;
mod zstd;

use box_tree::{Content, Leaf, Meta};

pub use apply::{flatten, flatten_owned};
pub use archive::BLOCK as TAR_BLOCK;
pub use codec::{DECODER_EPOCH, IndexError};
pub use contents::Divider;
pub use decode::{Compression, LayerSource, START, decode, read_plain};
pub use error::{Excess, LayerError, LayerErrorKind};
pub use gzip::MAGIC as GZIP_MAGIC;
pub use limits::Limits;
pub use members::{Member, MemberIndex, MemberKind, MembersError, member};
pub use segment::{MAX_INLINE, MIN_SEGMENT, MemorySegment, SEGMENT_BLOCK, SegmentSink};
pub use stream::decompressed;
pub use total::{MAX_ENTRIES, SMALL_UNPACKED_BYTES, Total, UNPACKED_GROWTH};
pub use zstd::MAGIC as ZSTD_MAGIC;

/// The changes that one layer makes, in the archive's order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerIndex {
    /// The changes.
    pub changes: Vec<Change>,
    /// The contents in the layer's pack, each once, with their offsets. They have no padding.
    pub contents: Placed,
    /// The contents in the layer's segment, each once and in the archive's order, with their offsets. If the layer has no
    /// segment, all contents are in its pack.
    pub segment: Placed,
    /// The size of the uncompressed archive, in bytes.
    pub archive_size: u64,
}

/// Contents of files, each with its offset. The offsets follow from the sizes.
pub type Placed = Vec<(Content, u64)>;

/// One change of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The changed path, without leading or trailing slash. Empty for the root.
    pub path: Vec<u8>,
    /// The effect at this path.
    pub action: Action,
}

/// The effect of a layer at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Makes a directory with these attributes, or gives them to an existing directory.
    Directory(Meta),
    /// Makes a file, symbolic link, device or pipe.
    Leaf(Meta, Leaf),
    /// Makes the path another name of the inode at the contained path.
    HardLink(Vec<u8>),
    /// Removes the entry of lower layers (`.wh.NAME`).
    Whiteout,
    /// Removes the entries of lower layers in this directory (`.wh..wh..opq`).
    Opaque,
}
