//! Divides the contents of a layer's files: the larger ones go to its segment, the others to its pack.
//!
//! A duplicate of an earlier content is recognized only at its end, and a layer has a segment only if its contents have at least
//! [`MIN_SEGMENT`] bytes. Therefore up to [`BUFFERED`] bytes of a file are in memory, and so are the segment's first bytes.

use std::collections::HashSet;
use std::io::{self, BufWriter, Cursor, Read, Write};

use box_digest::Blake3Digest;
use box_tree::Content;

use super::segment::{BLOCK, MAX_INLINE, MIN_SEGMENT, SEGMENT_BLOCK, SegmentSink};
use super::{LayerIndex, Placed};

/// The size of a write to a pack, in bytes.
const PACK_BUFFER: usize = 256 << 10;

/// The maximum size of a file that is kept in memory, in bytes. A larger file is written while it is hashed, because its layer
/// has a segment in any case.
const BUFFERED: usize = 1 << 20;
const _: () = assert!(BUFFERED as u64 >= MIN_SEGMENT);

/// Zeros to pad a content.
const PADDING: [u8; BLOCK] = [0; BLOCK];

/// Divides the contents of files among a pack and a segment, by the rule for layers: one file after the other, its data
/// with [`Self::add`], its end with [`Self::end`].
#[derive(Debug)]
pub struct Divider<'a, W: Write, S> {
    pack: BufWriter<W>,
    segment: &'a mut S,
    /// The segment so far. `None` once it is certain that the layer has a segment.
    held: Option<Vec<u8>>,
    /// The current file, unless it is written already.
    file: Vec<u8>,
    is_written: bool,
    /// All contents so far. The set takes less memory than the map of all contents that a build makes later.
    seen: HashSet<Blake3Digest>,
    in_pack: Placed,
    in_segment: Placed,
}

impl<'a, W: Write, S: SegmentSink> Divider<'a, W, S> {
    /// Starts with an empty pack and an empty segment.
    pub fn new(pack: W, segment: &'a mut S) -> Self {
        Self {
            pack: BufWriter::with_capacity(PACK_BUFFER, pack),
            segment,
            held: Some(Vec::new()),
            file: Vec::new(),
            is_written: false,
            seen: HashSet::new(),
            in_pack: Placed::new(),
            in_segment: Placed::new(),
        }
    }

    /// Takes the next bytes of the current file.
    ///
    /// # Errors
    /// The errors of the pack and the segment.
    pub fn add(&mut self, data: &[u8]) -> io::Result<()> {
        if !self.is_written && self.file.len() + data.len() <= BUFFERED {
            self.file.extend_from_slice(data);
            return Ok(());
        }
        if !self.is_written {
            self.start()?;
            self.segment.mark()?;
            self.segment.write_all(&self.file)?;
            self.is_written = true;
        }
        self.segment.write_all(data)
    }

    /// Ends the current file. Its content is not written if an earlier file had it.
    ///
    /// # Errors
    /// The errors of the pack and the segment.
    pub fn end(&mut self, content: Content) -> io::Result<()> {
        let is_new = self.seen.insert(content.hash);
        match (is_new, self.is_written) {
            (true, true) => self.end_written(content),
            (true, false) if content.size <= MAX_INLINE => self.end_small(content),
            (true, false) => self.end_buffered(content),
            (false, true) => self.segment.back_to_mark(),
            (false, false) => Ok(()),
        }?;
        self.file.clear();
        self.is_written = false;
        Ok(())
    }

    fn end_small(&mut self, content: Content) -> io::Result<()> {
        place(&mut self.in_pack, content, 1);
        self.pack.write_all(&self.file)
    }

    fn end_written(&mut self, content: Content) -> io::Result<()> {
        place(&mut self.in_segment, content, SEGMENT_BLOCK);
        self.segment.write_all(padding(content.size))
    }

    /// Ends a file of the segment that is in memory.
    fn end_buffered(&mut self, content: Content) -> io::Result<()> {
        place(&mut self.in_segment, content, SEGMENT_BLOCK);
        self.file.extend_from_slice(padding(content.size));
        let Some(held) = &mut self.held else { return self.segment.write_all(&self.file) };
        held.extend_from_slice(&self.file);
        if held.len() as u64 >= MIN_SEGMENT { self.start() } else { Ok(()) }
    }

    /// Writes the buffered part of the segment, once it is certain that the layer has one.
    fn start(&mut self) -> io::Result<()> {
        self.held.take().map_or(Ok(()), |held| self.segment.write_all(&held))
    }

    /// Returns the contents of the pack and of the segment. If the layer has no segment, the buffered part goes to the pack.
    ///
    /// # Errors
    /// The errors of the pack.
    pub fn finish(mut self) -> io::Result<(Placed, Placed)> {
        if let Some(held) = self.held.take() {
            let mut held = Cursor::new(held.as_slice());
            for (content, offset) in std::mem::take(&mut self.in_segment) {
                held.set_position(offset);
                io::copy(&mut held.by_ref().take(content.size), &mut self.pack)?;
                place(&mut self.in_pack, content, 1);
            }
        }
        self.pack.flush()?;
        Ok((self.in_pack, self.in_segment))
    }
}

/// Returns the padding of a content in the segment.
fn padding(size: u64) -> &'static [u8] {
    // Less than a block, so it fits into a `usize`.
    let in_last = usize::try_from(size % SEGMENT_BLOCK).unwrap_or_default();
    if in_last == 0 { &[] } else { &PADDING[in_last..] }
}

/// Appends a content.
fn place(contents: &mut Placed, content: Content, block: u64) {
    // An archive has at most 64 GiB.
    let offset = end(contents, block).unwrap_or(u64::MAX);
    contents.push((content, offset));
}

/// Returns the offset of the next content. Each content is padded to a multiple of `block`. `None` on overflow.
pub(super) fn end(contents: &[(Content, u64)], block: u64) -> Option<u64> {
    let Some((content, offset)) = contents.last() else { return Some(0) };
    content.size.checked_next_multiple_of(block)?.checked_add(*offset)
}

impl LayerIndex {
    /// Returns the size of the layer's pack, in bytes.
    pub fn data_size(&self) -> u64 {
        end(&self.contents, 1).unwrap_or(u64::MAX)
    }

    /// Returns the size of the layer's segment, in bytes. Zero if there is no segment.
    pub fn segment_size(&self) -> u64 {
        end(&self.segment, SEGMENT_BLOCK).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
