//! The members of a tar archive, one after the other (POSIX pax(1), "ustar Interchange Format").
//!
//! The reader does not guess: a header that readers could interpret differently is an error.

use std::io::{self, BufRead, Read};

use tar::{EntryType, Header};

use super::metadata::{Member, header_size, is_known, number};
use super::pax::{Records, check_global};
use super::{Excess, LayerErrorKind, Limits};
use crate::error::{malformed, twice};

/// The size of a block of a tar archive, in bytes. A header is one block, and data are padded to whole blocks.
pub const BLOCK: usize = 512;

/// The fields of the extension headers before a member's own header.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// The records of a PAX extended header.
    pub(super) records: Option<Records>,
    /// The path of a GNU long name.
    pub(super) path: Option<Vec<u8>>,
    /// The target of a GNU long link name.
    pub(super) target: Option<Vec<u8>>,
}

impl Extensions {
    /// Returns whether there was any extension header.
    const fn any(&self) -> bool {
        self.records.is_some() || self.path.is_some() || self.target.is_some()
    }
}

/// Reads an archive from a stream.
pub(super) struct Archive<'a, R> {
    inner: R,
    limits: &'a Limits,
    /// How many bytes were read.
    position: u64,
    /// The remaining bytes of the current member's data, and of its padding.
    rest: (u64, u64),
    /// The path and the offset of the current header.
    here: Option<(Vec<u8>, u64)>,
}

impl<'a, R: BufRead> Archive<'a, R> {
    /// Starts at the archive's first byte.
    pub(super) const fn new(inner: R, limits: &'a Limits) -> Self {
        Self { inner, limits, position: 0, rest: (0, 0), here: None }
    }

    pub(super) fn into_inner(self) -> R {
        self.inner
    }

    /// Returns how many bytes were read: after a member's headers, the offset of its data.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the path and the offset of the current header, for an error.
    pub(super) fn here(&self) -> Option<(Vec<u8>, Option<u64>)> {
        self.here.clone().map(|(path, offset)| (path, Some(offset)))
    }

    /// Skips the rest of this member and reads the next one's headers. `None` at the end.
    ///
    /// # Errors
    /// The stream cannot be read, a header is malformed, or a limit is exceeded.
    pub(super) fn next_member(&mut self) -> Result<Option<Member>, LayerErrorKind> {
        self.skip_rest()?;
        let mut extensions = Extensions::default();
        loop {
            let Some(header) = self.header(extensions.any())? else { return Ok(None) };
            match header.entry_type() {
                EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink => {
                    self.extend(&mut extensions, &header)?;
                }
                EntryType::XGlobalHeader => {
                    if extensions.any() {
                        return Err(malformed("extended header"));
                    }
                    let body = self.body(&header, self.limits.header_bytes)?;
                    check_global(&body)?;
                }
                _ => return self.member(header, extensions).map(Some),
            }
        }
    }

    /// Returns buffered data of the current member. Empty at its end. Returns the same data again until
    /// [`Self::consume`] skips them.
    ///
    /// # Errors
    /// The stream cannot be read, or ends before the data.
    pub(super) fn data(&mut self) -> Result<&[u8], LayerErrorKind> {
        let length = self.rest.0;
        if length == 0 {
            return Ok(&[]);
        }
        let at_hand = self.at_hand()?;
        if at_hand.is_empty() {
            return Err(ended());
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(at_hand.len());
        Ok(&at_hand[..length])
    }

    /// Skips `length` bytes of the result of [`Self::data`].
    pub(super) fn consume(&mut self, length: usize) {
        self.inner.consume(length);
        self.position += length as u64;
        self.rest.0 -= length as u64;
    }

    fn member(&mut self, header: Header, extensions: Extensions) -> Result<Member, LayerErrorKind> {
        let path = Member::path_of(&header, &extensions);
        if let Some((here, _)) = &mut self.here {
            here.clone_from(&path);
        }
        let member = Member::new(header, extensions, path, self.limits)?;
        self.expect(member.size)?;
        Ok(member)
    }

    /// Reads an extension header of the next member. A repeated extension is refused: some readers
    /// use the first and some the last.
    fn extend(
        &mut self,
        extensions: &mut Extensions,
        header: &Header,
    ) -> Result<(), LayerErrorKind> {
        let (there, what) = match header.entry_type() {
            EntryType::GNULongName => (extensions.path.is_some(), "long name"),
            EntryType::GNULongLink => (extensions.target.is_some(), "long link target"),
            _ => (extensions.records.is_some(), "extended header"),
        };
        if there {
            return Err(twice(what));
        }
        match header.entry_type() {
            EntryType::GNULongName => extensions.path = Some(self.long_name(header)?),
            EntryType::GNULongLink => extensions.target = Some(self.long_name(header)?),
            _ => {
                let body = self.body(header, self.limits.header_bytes)?;
                extensions.records.get_or_insert_default().add(&body)?;
            }
        }
        Ok(())
    }

    fn long_name(&mut self, header: &Header) -> Result<Vec<u8>, LayerErrorKind> {
        let mut name = self.body(header, self.limits.path_bytes.saturating_add(1))?;
        let end = name.pop();
        // Without a NUL, programs in C read on beyond the name's size.
        if end != Some(0) || name.is_empty() {
            return Err(malformed("long name"));
        }
        Ok(name)
    }

    /// Reads all data of an extension header.
    fn body(&mut self, header: &Header, limit: usize) -> Result<Vec<u8>, LayerErrorKind> {
        let size = header_size(header)?;
        let limit = limit as u64;
        let what = "bytes in its extended header";
        if size > limit {
            return Err(LayerErrorKind::TooLarge { what, limit });
        }
        self.expect(size)?;
        let mut body = Vec::new();
        loop {
            let data = self.data()?;
            if data.is_empty() {
                break;
            }
            body.extend_from_slice(data);
            let length = data.len();
            self.consume(length);
        }
        self.skip_rest()?;
        Ok(body)
    }

    /// Reads the next header. `None` at the end. `inside` means that an extension header before it
    /// requires one.
    fn header(&mut self, inside: bool) -> Result<Option<Header>, LayerErrorKind> {
        let offset = self.position;
        self.here = None;
        let block = match self.block()? {
            Some(block) if is_zero(&block) => return self.end(inside),
            Some(block) => block,
            None if inside => return Err(ended()),
            None => return Ok(None), // Some writers put nothing after the last member.
        };
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(&block);
        if number(&header.as_old().cksum) != Some(checksum(&header)) {
            return Err(LayerErrorKind::NoHeader(offset));
        }
        self.here = Some((header.path_bytes().into_owned(), offset));
        if is_known(&header) { Ok(Some(header)) } else { Err(malformed("format")) }
    }

    /// Reads the second zero block. After a single zero block, some readers stop and others continue.
    fn end(&mut self, inside: bool) -> Result<Option<Header>, LayerErrorKind> {
        let lone = self.block()?.is_some_and(|block| !is_zero(&block));
        if inside || lone { Err(malformed("end of archive")) } else { Ok(None) }
    }

    /// Reads one block. `None` if the stream ends before it.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, LayerErrorKind> {
        let limit = self.limits.archive_bytes;
        let mut block = Vec::with_capacity(BLOCK);
        let read = self.inner.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        self.position += read.map_err(|error| unreadable(error, limit))? as u64;
        match <[u8; BLOCK]>::try_from(block) {
            Ok(block) => Ok(Some(block)),
            Err(nothing) if nothing.is_empty() => Ok(None),
            Err(_) => Err(ended()),
        }
    }

    /// Notes the length of the data after a header.
    fn expect(&mut self, size: u64) -> Result<(), LayerErrorKind> {
        let padded = size.checked_next_multiple_of(BLOCK as u64);
        let padded = padded.ok_or_else(|| malformed("size"))?;
        self.rest = (size, padded - size);
        Ok(())
    }

    fn skip_rest(&mut self) -> Result<(), LayerErrorKind> {
        let (limit, left) = (self.limits.archive_bytes, self.rest.0 + self.rest.1);
        let skipped = io::copy(&mut self.inner.by_ref().take(left), &mut io::sink());
        let skipped = skipped.map_err(|error| unreadable(error, limit))?;
        self.position += skipped;
        self.rest = (0, 0);
        if skipped < left { Err(ended()) } else { Ok(()) }
    }

    /// Returns the buffered bytes of the stream. Empty at its end.
    fn at_hand(&mut self) -> Result<&[u8], LayerErrorKind> {
        let limit = self.limits.archive_bytes;
        while let Err(error) = self.inner.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(unreadable(error, limit));
            }
        }
        // The buffer is filled already, so this call does not read from the stream.
        self.inner.fill_buf().map_err(|error| unreadable(error, limit))
    }
}

/// Returns the error of a stream that cannot be read, or that has more than `limit` bytes.
pub(super) fn unreadable(error: io::Error, limit: u64) -> LayerErrorKind {
    if let Some(excess) = error.get_ref().and_then(|it| it.downcast_ref::<Excess>()) {
        return (*excess).into();
    }
    if error.kind() == io::ErrorKind::FileTooLarge {
        return LayerErrorKind::TooLarge { what: "bytes when it is uncompressed", limit };
    }
    LayerErrorKind::Unreadable(error)
}

fn ended() -> LayerErrorKind {
    LayerErrorKind::Unreadable(io::ErrorKind::UnexpectedEof.into())
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Sums a header's bytes, with spaces in place of the checksum field.
fn checksum(header: &Header) -> i64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(*byte)).sum::<i64>();
    let field = &header.as_old().cksum;
    sum(header.as_bytes()) - sum(field) + i64::from(b' ') * 8
}

#[cfg(test)]
mod tests;
