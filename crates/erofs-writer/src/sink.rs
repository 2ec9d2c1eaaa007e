//! The image's destination: written from its first byte to its last, without seeking.

use std::io::{self, Write};

use box_digest::Blake3Digest;

use crate::{BLOCK, BLOCK_SIZE, ContentSource, Error};

/// The size of the buffer for small writes, in bytes.
const BUFFER: usize = 256 * 1024;

/// Writes the image in order and tracks the position.
///
/// After an error, the sink drops its buffer and writes no more. A [`std::io::BufWriter`] would try to flush its buffer
/// once more.
pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    gathered: Vec<u8>,
    position: u64,
}

impl<'a> Sink<'a> {
    /// Starts at the image's first byte.
    pub(crate) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, gathered: Vec::with_capacity(BUFFER), position: 0 }
    }

    /// Writes the next bytes.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.take(bytes).map_err(Error::Write)
    }

    /// Buffers `bytes` if they are fewer than [`BUFFER`], and otherwise writes them to `out` at once.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.gathered.len() + bytes.len() > BUFFER {
            self.hand_on()?;
        }
        if bytes.len() < BUFFER {
            self.gathered.extend_from_slice(bytes);
        } else {
            self.out.write_all(bytes)?;
        }
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.out.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }

    /// Writes zero bytes up to `offset`, which must be at most two blocks ahead.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn pad_to(&mut self, offset: u64) -> Result<(), Error> {
        let gap = offset.checked_sub(self.position).expect("the plan puts nothing over another");
        let gap = usize::try_from(gap).expect("the plan leaves no gap of two blocks");
        self.put(&[0; 2 * BLOCK][..gap])
    }

    /// Writes zero bytes up to `offset`, at any distance.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn fill_to(&mut self, offset: u64) -> Result<(), Error> {
        while self.position < offset {
            self.pad_to(offset.min(self.position + BLOCK_SIZE))?;
        }
        Ok(())
    }

    /// Writes zero bytes up to the end of the block.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish_block(&mut self) -> Result<(), Error> {
        self.pad_to(self.position.next_multiple_of(BLOCK_SIZE))
    }

    /// Copies a content, and checks that it has `size` bytes.
    ///
    /// # Errors
    /// [`Error::Write`], [`Error::Content`], [`Error::ContentTooLong`],
    /// [`Error::ContentTooShort`].
    pub(crate) fn copy(
        &mut self,
        contents: &mut dyn ContentSource,
        content: Blake3Digest,
        size: u64,
    ) -> Result<(), Error> {
        let mut measure = Measure { sink: self, left: size, refusal: None };
        let result = contents.copy(&content, size, &mut measure);
        let Measure { left, refusal, .. } = measure;
        match refusal {
            Some(Refusal::Failed(error)) => return Err(Error::Write(error)),
            Some(Refusal::TooLong) => return Err(Error::ContentTooLong { content, size }),
            None => result.map_err(|source| Error::Content { content, source })?,
        }
        if left > 0 {
            return Err(Error::ContentTooShort { content, size, delivered: size - left });
        }
        Ok(())
    }

    /// Writes the buffer to the destination, and flushes the destination.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.hand_on().and_then(|()| self.out.flush()).map_err(Error::Write)
    }
}

/// Why [`Measure`] refused bytes of a content. It is kept here because [`ContentSource::copy`] may ignore or replace the error.
#[derive(Debug)]
enum Refusal {
    TooLong,
    Failed(io::Error),
}

/// Writes at most `left` more bytes of a content to the sink, and refuses more.
struct Measure<'s, 'a> {
    sink: &'s mut Sink<'a>,
    left: u64,
    refusal: Option<Refusal>,
}

impl Write for Measure<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.refusal.is_some() {
            return Err(io::Error::other("the content was refused before"));
        }
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.refusal = Some(Refusal::TooLong);
            return Err(io::Error::other("the content has more bytes than its size says"));
        };
        if let Err(error) = self.sink.take(bytes) {
            let kind = error.kind();
            self.refusal = Some(Refusal::Failed(error));
            return Err(kind.into());
        }
        self.left = left;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes these pieces and, like a careless source, ignores errors.
    struct Pieces(&'static [&'static [u8]]);

    impl ContentSource for Pieces {
        fn copy(&mut self, _: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
            self.0.iter().for_each(|piece| drop(out.write_all(piece)));
            out.flush()
        }
    }

    struct Broken;

    impl ContentSource for Broken {
        fn copy(&mut self, _: &Blake3Digest, _: u64, _: &mut dyn Write) -> io::Result<()> {
            Err(io::Error::other("no such content"))
        }
    }

    fn copied(contents: &mut dyn ContentSource, size: u64) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out);
        sink.copy(contents, Blake3Digest::from_bytes([0; 32]), size)?;
        assert_eq!(sink.position, size);
        sink.finish()?;
        Ok(out)
    }

    #[test]
    fn a_content_has_exactly_its_size() {
        let mut pieces = Pieces(&[b"ab", b"", b"c"]);
        assert_eq!(copied(&mut pieces, 3).unwrap(), b"abc");
        let error = copied(&mut pieces, 4).unwrap_err();
        assert!(matches!(error, Error::ContentTooShort { size: 4, delivered: 3, .. }), "{error}");
        let error = copied(&mut pieces, 2).unwrap_err();
        assert!(matches!(error, Error::ContentTooLong { size: 2, .. }), "{error}");
        // After the refused piece, the next one is refused too, even though it would fit.
        let error = copied(&mut Pieces(&[b"abc", b"x"]), 1).unwrap_err();
        assert!(matches!(error, Error::ContentTooLong { size: 1, .. }), "{error}");
    }

    #[test]
    fn an_error_of_the_source_is_passed_on() {
        let error = copied(&mut Broken, 1).unwrap_err();
        assert!(matches!(error, Error::Content { .. }), "{error}");
    }

    #[test]
    fn an_error_of_the_destination_is_passed_on() {
        let mut out = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut sink = Sink::new(&mut out);
        sink.put(&[1]).unwrap();
        let error = sink.finish().unwrap_err();
        assert!(matches!(&error, Error::Write(e) if e.kind() == io::ErrorKind::StorageFull));
        let piece: &'static [u8] = Box::leak(vec![0; BUFFER + 1].into_boxed_slice());
        let mut pieces = Pieces(Box::leak(vec![piece].into_boxed_slice()));
        let mut sink = Sink::new(&mut out);
        let error = sink
            .copy(&mut pieces, Blake3Digest::from_bytes([0; 32]), piece.len() as u64)
            .unwrap_err();
        assert!(matches!(&error, Error::Write(e) if e.kind() == io::ErrorKind::StorageFull));
    }

    #[test]
    fn gaps_are_zero_bytes() {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out);
        sink.put(b"a").unwrap();
        sink.pad_to(3).unwrap();
        sink.put(b"b").unwrap();
        sink.finish_block().unwrap();
        sink.finish_block().unwrap();
        sink.finish().unwrap();
        assert_eq!(out[..4], *b"a\0\0b");
        assert_eq!(out[4..], [0; 4092]);
    }
}
