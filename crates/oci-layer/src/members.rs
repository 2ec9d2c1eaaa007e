//! The members of an archive that is a container of images: where their data lies.
//!
//! The archive is read in place: only its headers are looked at, by the same reader that reads layers,
//! so that what is refused there is refused here.

use std::io::{self, BufRead, Read};

use super::archive::Archive;
use super::path::normalize;
use super::{LayerErrorKind, Limits};

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its normalized path.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: MemberKind,
    /// Where the next member's headers begin.
    pub next: u64,
}

/// What a member of an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberKind {
    /// A file, with the place of its data in the archive.
    File {
        /// The offset of its first byte.
        offset: u64,
        /// Its length in bytes.
        size: u64,
    },
    /// A symbolic link, as it is written.
    Symlink(Vec<u8>),
    /// Another name of a member: its path as it is written.
    HardLink(Vec<u8>),
    /// A directory, or what has no data.
    Other,
}

/// Reads the headers of the member at `offset`, where `archive` begins; nothing at the end.
///
/// # Errors
/// What is wrong with them.
pub fn member(
    archive: impl BufRead,
    offset: u64,
    limits: &Limits,
) -> Result<Option<Member>, LayerErrorKind> {
    let mut counted = Counted { inner: archive, count: 0 };
    let Some(member) = Archive::new(&mut counted, limits).next_member()? else { return Ok(None) };
    let start = offset + counted.count;
    let (size, padded) = match member.kind {
        // Links and directories may claim a size, but readers differ on whether there is data.
        kind if !kind.is_file() && !kind.is_contiguous() && member.size != 0 => {
            return Err(LayerErrorKind::UnexpectedData(member.size));
        }
        _ => (member.size, member.size.checked_next_multiple_of(512)),
    };
    let next = padded.and_then(|padded| start.checked_add(padded));
    let next = next.ok_or(LayerErrorKind::Malformed("size"))?;
    let target = member.target.unwrap_or_default();
    let kind = match member.kind {
        kind if kind.is_file() || kind.is_contiguous() => MemberKind::File { offset: start, size },
        kind if kind.is_symlink() => MemberKind::Symlink(target),
        kind if kind.is_hard_link() => MemberKind::HardLink(target),
        _ => MemberKind::Other,
    };
    Ok(Some(Member { path: normalize(&member.path, limits)?, kind, next }))
}

/// Counts what is taken through it, and not what is only looked at.
struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        self.count += length as u64;
        self.inner.consume(length);
    }
}
