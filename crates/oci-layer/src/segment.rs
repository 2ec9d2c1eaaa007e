//! Segments: the larger file contents of a layer, one after another at block offsets. A file system refers to a content by its
//! offset.

use std::io;

/// A content of at most this many bytes is never in a segment, but in its layer's pack, the file of the other contents. In a segment, a content takes whole blocks, and
/// half a block or less would be mostly padding.
pub const MAX_INLINE: u64 = 2048;

/// The minimum size of a segment, in bytes. If a layer's larger contents take less, they are in its pack: a small segment
/// would save less than its handling costs.
pub const MIN_SEGMENT: u64 = 1 << 20;

/// Each content of a segment begins at a multiple of this many bytes, the block of the rootfs. Zeros fill the gap after a content.
pub const SEGMENT_BLOCK: u64 = BLOCK as u64;

pub(super) const BLOCK: usize = 4096;

/// The destination of a segment.
///
/// A large file is written to it while it is hashed. If the segment turns out to have the same content already, the written
/// bytes are removed.
pub trait SegmentSink {
    /// Writes the next bytes.
    ///
    /// # Errors
    /// The error of the sink.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Marks this position. Replaces an earlier mark.
    ///
    /// # Errors
    /// The error of the sink.
    fn mark(&mut self) -> io::Result<()>;

    /// Removes the bytes since the last mark.
    ///
    /// # Errors
    /// The error of the sink.
    fn back_to_mark(&mut self) -> io::Result<()>;
}

/// A sink that drops everything, for callers that need only the index.
impl SegmentSink for io::Sink {
    fn write_all(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn mark(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn back_to_mark(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A segment in memory, for contents that are in memory anyway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemorySegment {
    /// The bytes of the segment so far.
    pub bytes: Vec<u8>,
    mark: usize,
}

impl SegmentSink for MemorySegment {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn mark(&mut self) -> io::Result<()> {
        self.mark = self.bytes.len();
        Ok(())
    }

    fn back_to_mark(&mut self) -> io::Result<()> {
        self.bytes.truncate(self.mark);
        Ok(())
    }
}
