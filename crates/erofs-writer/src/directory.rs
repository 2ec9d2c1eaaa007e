//! Directories: blocks of sorted entries. Each block can be read without the others.
//!
//! [`crate::format`], "Directories", describes `struct erofs_dirent` and how blocks are filled. The
//! caller pads all blocks but the last with zero bytes.

use crate::tree::Node;
use crate::{BLOCK, BLOCK_SIZE};

/// Bytes of `struct erofs_dirent`.
pub(crate) const ENTRY: usize = 12;

/// A name in a directory and its inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryEntry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) nid: u64,
    /// The inode's `EROFS_FT_*`.
    pub(crate) file_type: u8,
}

/// Returns the `EROFS_FT_*` of an inode: the kernel's generic `FT_*` of `include/linux/fs_types.h`.
pub(crate) fn file_type(node: &Node) -> u8 {
    match node {
        Node::File { .. } => 1,
        Node::Directory => 2,
        Node::CharDevice { .. } => 3,
        Node::BlockDevice { .. } => 4,
        Node::Fifo => 5,
        Node::Socket => 6,
        Node::Symlink { .. } => 7,
    }
}

/// Returns the size in bytes of an entry: its `struct erofs_dirent` and its name.
fn entry_size(name: &[u8]) -> usize {
    ENTRY + name.len()
}

/// Returns the size in bytes of a directory with these sorted names.
pub(crate) fn size<'a>(names: impl Iterator<Item = &'a [u8]>) -> u64 {
    let (mut full_blocks, mut used) = (0, 0);
    for name in names {
        if used + entry_size(name) > BLOCK {
            full_blocks += 1;
            used = 0;
        }
        used += entry_size(name);
    }
    full_blocks * BLOCK_SIZE + used as u64
}

/// Encodes the blocks of a directory, without padding.
pub(crate) fn blocks<'a>(
    entries: impl Iterator<Item = DirectoryEntry<'a>>,
) -> impl Iterator<Item = Vec<u8>> {
    let mut entries = entries.peekable();
    std::iter::from_fn(move || {
        let (mut block, mut used) = (Vec::new(), 0);
        while let Some(entry) = entries.next_if(|it| used + entry_size(it.name) <= BLOCK) {
            used += entry_size(entry.name);
            block.push(entry);
        }
        (!block.is_empty()).then(|| encode(&block))
    })
}

fn encode(entries: &[DirectoryEntry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    let mut name_offset = entries.len() * ENTRY;
    for entry in entries {
        let offset = u16::try_from(name_offset).expect("a name starts within its block");
        bytes.extend_from_slice(&entry.nid.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
        bytes.extend_from_slice(&[entry.file_type, 0]);
        name_offset += entry.name.len();
    }
    entries.iter().for_each(|entry| bytes.extend_from_slice(entry.name));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[Vec<u8>]) -> impl Iterator<Item = DirectoryEntry<'_>> {
        names.iter().zip(128..).map(|(name, nid)| DirectoryEntry { name, nid, file_type: 2 })
    }

    fn encoded(names: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let blocks: Vec<_> = blocks(entries(names)).collect();
        let used: usize = blocks.last().map_or(0, Vec::len);
        let expected = (blocks.len() - 1) * BLOCK + used;
        assert_eq!(size(names.iter().map(Vec::as_slice)), expected as u64);
        blocks
    }

    #[test]
    fn a_block_has_the_entries_and_then_the_names() {
        let blocks = encoded(&[b".".to_vec(), b"..".to_vec(), b"bin".to_vec()]);
        let expected: [&[u8]; 4] = [
            b"\x80\0\0\0\0\0\0\0\x24\0\x02\0",
            b"\x81\0\0\0\0\0\0\0\x25\0\x02\0",
            b"\x82\0\0\0\0\0\0\0\x27\0\x02\0",
            b"...bin",
        ];
        assert_eq!(blocks, [expected.concat()]);
    }

    #[test]
    fn entries_that_fill_a_block_to_the_byte_stay_in_it() {
        // 16 entries of 12 + 244 bytes are 4096 bytes.
        let full = vec![vec![b'x'; 244]; 16];
        assert_eq!(encoded(&full).iter().map(Vec::len).collect::<Vec<_>>(), [4096]);
        let mut over = full.clone();
        over[15].push(b'x');
        assert_eq!(encoded(&over).iter().map(Vec::len).collect::<Vec<_>>(), [3840, 257]);
        let mut more = full;
        more.push(b"y".to_vec());
        assert_eq!(encoded(&more).iter().map(Vec::len).collect::<Vec<_>>(), [4096, 13]);
    }

    #[test]
    fn types_are_the_kernels() {
        let types = [
            Node::Directory,
            Node::Symlink { target: Vec::new() },
            Node::CharDevice { major: 0, minor: 0 },
            Node::BlockDevice { major: 0, minor: 0 },
            Node::Fifo,
            Node::Socket,
        ];
        assert_eq!(types.each_ref().map(file_type), [2, 7, 3, 4, 5, 6]);
    }
}
