//! The form `tar`: a reproducible archive of a tree.
//!
//! The members are in the order of the tree digest: a directory before its entries, names in
//! bytewise order. The root is `./`, and no other path starts with `./`. The further names of an
//! inode are hard links to its first name. Two blocks of zeros end the archive.

use std::io::Write;

use box_tree::path::lossy;
use box_tree::{Inode, Kind, Leaf, Tree, entries};
use oci_layer::TAR_BLOCK as BLOCK;

use super::member::{Flag, Member};
use crate::contents::VerifiedContents;
use crate::error::ExportError;
use crate::links::HardLinks;

/// Writes a tree as an archive.
pub(super) fn write(
    tree: &Tree,
    contents: &VerifiedContents,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let first = HardLinks::of(|| entries(tree));
    for (path, id) in entries(tree) {
        let inode = tree.inode(id);
        match first.before(&path, id) {
            Some(first) => {
                let (path, target, meta) = (&path[1..], &first[1..], &inode.meta);
                let (flag, size, device) = (Flag::HardLink, 0, (0, 0));
                put(Member { path, flag, target, size, device, meta }, out)?;
            }
            None => put_inode(&path, inode, contents, out)?,
        }
    }
    finish(out)
}

/// Writes the two empty blocks that end an archive.
pub(super) fn finish(out: &mut dyn Write) -> Result<(), ExportError> {
    out.write_all(&[0; 2 * BLOCK]).map_err(ExportError::Write)
}

fn put_inode(
    path: &[u8],
    inode: &Inode,
    contents: &VerifiedContents,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let mut name = path[1..].to_vec();
    if inode.names().is_some() {
        name.extend_from_slice(if name.is_empty() { b"./".as_slice() } else { b"/" });
    }
    put(
        Member {
            path: &name,
            flag: flag(&inode.kind),
            target: inode.target().unwrap_or_default(),
            size: inode.content().map_or(0, |content| content.size),
            device: inode.device().unwrap_or_default(),
            meta: &inode.meta,
        },
        out,
    )?;
    let Some(content) = inode.content() else { return Ok(()) };
    contents.copy(path, *content, out)?;
    fill_up(content.size, out)
}

const fn flag(kind: &Kind) -> Flag {
    match kind {
        Kind::Directory(_) => Flag::Directory,
        Kind::Leaf(Leaf::File(_)) => Flag::File,
        Kind::Leaf(Leaf::Symlink(_)) => Flag::Symlink,
        Kind::Leaf(Leaf::CharDevice(..)) => Flag::CharDevice,
        Kind::Leaf(Leaf::BlockDevice(..)) => Flag::BlockDevice,
        Kind::Leaf(Leaf::Fifo) => Flag::Fifo,
    }
}

/// Writes the header blocks of a member.
pub(super) fn put(member: Member<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let blocks = member.encode().map_err(|what| ExportError::NoPlace {
        path: format!("/{}", lossy(member.path)),
        what,
        form: "a tar archive",
    })?;
    out.write_all(&blocks).map_err(ExportError::Write)
}

/// Pads a member's data with zeros to a whole block.
pub(super) fn fill_up(size: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    // The number of bytes in the last, incomplete block.
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    let zeros = [0; BLOCK];
    out.write_all(&zeros[..(BLOCK - over) % BLOCK]).map_err(ExportError::Write)
}
