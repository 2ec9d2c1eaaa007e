//! The form `tar`: a reproducible archive of a tree.
//!
//! The members are in the order of the tree digest: a directory before what is in it, names in
//! bytewise order. The root is `./`, and no other path has a `./` before it. The second and further
//! names of an inode are hard links to the first. Two blocks of zeros end the archive.

use std::io::Write;

use box_tree::{Inode, Kind, Leaf, Tree, entries};

use super::contents::Contents;
use super::error::lossy;
use super::member::{BLOCK, Flag, Member};
use super::{ExportError, FirstNames};

/// Writes a tree as an archive.
pub(super) fn write(
    tree: &Tree,
    contents: &Contents,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let first = FirstNames::of(tree);
    for (path, id) in entries(tree) {
        let inode = tree.inode(id);
        match first.before(&path, id) {
            Some(first) => {
                let link = member(&path[1..], inode, Flag::HardLink);
                put(Member { target: &first[1..], ..link }, out)?;
            }
            None => put_inode(&path, inode, contents, out)?,
        }
    }
    finish(out)
}

/// Ends an archive.
pub(super) fn finish(out: &mut dyn Write) -> Result<(), ExportError> {
    out.write_all(&[0; 2 * BLOCK]).map_err(ExportError::Write)
}

fn put_inode(
    path: &[u8],
    inode: &Inode,
    contents: &Contents,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let name = &path[1..];
    match &inode.kind {
        Kind::Directory(_) => {
            let name = if name.is_empty() { b"." } else { name };
            put(member(&[name, b"/"].concat(), inode, Flag::Directory), out)
        }
        Kind::Leaf(Leaf::File(content)) => {
            put(Member { size: content.size, ..member(name, inode, Flag::File) }, out)?;
            contents.copy(path, *content, out)?;
            fill_up(content.size, out)
        }
        Kind::Leaf(Leaf::Symlink(target)) => {
            put(Member { target, ..member(name, inode, Flag::Symlink) }, out)
        }
        Kind::Leaf(Leaf::CharDevice(major, minor)) => {
            let device = (*major, *minor);
            put(Member { device, ..member(name, inode, Flag::CharDevice) }, out)
        }
        Kind::Leaf(Leaf::BlockDevice(major, minor)) => {
            let device = (*major, *minor);
            put(Member { device, ..member(name, inode, Flag::BlockDevice) }, out)
        }
        Kind::Leaf(Leaf::Fifo) => put(member(name, inode, Flag::Fifo), out),
    }
}

const fn member<'a>(path: &'a [u8], inode: &'a Inode, flag: Flag) -> Member<'a> {
    Member { path, flag, target: b"", size: 0, device: (0, 0), meta: &inode.meta }
}

/// Writes what stands before a member's data.
pub(super) fn put(member: Member<'_>, out: &mut dyn Write) -> Result<(), ExportError> {
    let blocks = member.encode().map_err(|what| ExportError::NoPlace {
        path: format!("/{}", lossy(member.path)),
        what,
        form: "a tar archive",
    })?;
    out.write_all(&blocks).map_err(ExportError::Write)
}

/// Writes zeros from the end of a member's data to the end of its block.
pub(super) fn fill_up(size: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    // Below 512.
    let over = usize::try_from(size % BLOCK as u64).unwrap_or_default();
    let zeros = [0; BLOCK];
    out.write_all(&zeros[..(BLOCK - over) % BLOCK]).map_err(ExportError::Write)
}
