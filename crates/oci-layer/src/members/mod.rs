//! The members of an archive of images or boxes, and the offsets of their data.
//!
//! The archive is read in place. Only its headers are parsed, by the same reader as a layer's, so both refuse the same
//! headers.

mod index;

use std::io::BufRead;

use super::archive::Archive;
use super::path::normalize;
use super::{LayerErrorKind, Limits};
use crate::error::malformed;

pub use index::{MemberIndex, MembersError};

/// A member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The normalized path.
    pub path: Vec<u8>,
    /// The type, with its specific data.
    pub kind: MemberKind,
    /// The offset of the next member's headers.
    pub next: u64,
}

/// The type of a member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants describe their fields")]
pub enum MemberKind {
    /// A file: the offset of its data's first byte in the archive, and its length in bytes.
    File { offset: u64, size: u64 },
    /// A symbolic link. Contains the target as the archive spells it.
    Symlink(Vec<u8>),
    /// Another name of a member. Contains the path of that member as the archive spells it.
    HardLink(Vec<u8>),
    /// A directory, or a type without data.
    Other,
}

/// Reads the headers of the member at `offset`, where `archive` begins. `None` at the end.
///
/// # Errors
/// The fault in its headers.
pub fn member(
    archive: impl BufRead,
    offset: u64,
    limits: &Limits,
) -> Result<Option<Member>, LayerErrorKind> {
    let mut archive = Archive::new(archive, limits);
    let Some(member) = archive.next_member()? else { return Ok(None) };
    let start = offset + archive.position();
    let (size, is_file) = (member.size, member.kind.is_file() || member.kind.is_contiguous());
    // Links and directories may claim a size, but readers differ on whether there is data.
    if !is_file && size != 0 {
        return Err(LayerErrorKind::UnexpectedData(size));
    }
    let next = size.checked_next_multiple_of(512).and_then(|padded| start.checked_add(padded));
    let next = next.ok_or_else(|| malformed("size"))?;
    let target = member.target.unwrap_or_default();
    let kind = match member.kind {
        _ if is_file => MemberKind::File { offset: start, size },
        kind if kind.is_symlink() => MemberKind::Symlink(target),
        kind if kind.is_hard_link() => MemberKind::HardLink(target),
        _ => MemberKind::Other,
    };
    Ok(Some(Member { path: normalize(&member.path, limits)?, kind, next }))
}
