//! Directories: `struct ext4_dir_entry_2`, and `struct ext4_dir_entry_tail` at the end of each block.

use crate::BLOCK;
use crate::crc::crc32c;
use crate::fields::set32;
use crate::inode::{ROOT_INODE, seed};
use crate::layout::{LOST_FOUND_BLOCKS, LOST_FOUND_INODE};

/// The offset of the tail in a block. The tail has the block's checksum.
const TAIL: usize = BLOCK - TAIL_LENGTH;
const TAIL_LENGTH: usize = 12;
/// `EXT4_FT_DIR`
const DIRECTORY: u8 = 2;
/// `EXT4_FT_DIR_CSUM`
const CHECKSUM: u8 = 0xDE;
/// Bytes of an entry before its name.
const HEAD: usize = 8;

/// An entry that names a directory: the inode's number and the name.
type Entry<'a> = (u32, &'a [u8]);
/// The entry of an empty block: unused, with inode 0.
const NONE: Entry<'_> = (0, b"");

/// Encodes the root directory. `volume` is the checksum of the UUID.
pub(crate) fn root(volume: u32) -> Vec<u8> {
    let entries: [Entry<'_>; 3] =
        [(ROOT_INODE, b"."), (ROOT_INODE, b".."), (LOST_FOUND_INODE, b"lost+found")];
    block(seed(volume, ROOT_INODE), &entries)
}

/// Encodes the directory `lost+found`.
pub(crate) fn lost_found(volume: u32) -> Vec<u8> {
    let seed = seed(volume, LOST_FOUND_INODE);
    let mut bytes = block(seed, &[(LOST_FOUND_INODE, b"."), (ROOT_INODE, b"..")]);
    (1..LOST_FOUND_BLOCKS).for_each(|_| bytes.extend(block(seed, &[NONE])));
    bytes
}

fn block(seed: u32, entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    let before_last = entries.len() - 1;
    entries[..before_last].iter().for_each(|entry| put(&mut bytes, entry, least(entry)));
    let rest = TAIL - bytes.len();
    put(&mut bytes, &entries[before_last], rest);
    let checksum = crc32c(seed, &bytes);
    let mut tail = [0, 0, 0, 0, TAIL_LENGTH.to_le_bytes()[0], 0, 0, CHECKSUM, 0, 0, 0, 0];
    set32(&mut tail, HEAD, checksum); // det_checksum
    bytes.extend(tail);
    bytes
}

/// Returns the length of an entry without space after its name.
fn least(entry: &Entry<'_>) -> usize {
    HEAD + entry.1.len().next_multiple_of(4)
}

/// Appends an entry of `length` bytes (`rec_len`).
fn put(bytes: &mut Vec<u8>, (inode, name): &Entry<'_>, length: usize) {
    let at = bytes.len();
    bytes.resize(at + length, 0);
    let entry = &mut bytes[at..];
    set32(entry, 0, *inode); // inode
    entry[4..6].copy_from_slice(&length.to_le_bytes()[..2]); // rec_len
    entry[6] = name.len().to_le_bytes()[0]; // name_len
    entry[7] = if *inode == 0 { 0 } else { DIRECTORY }; // file_type
    entry[HEAD..][..name.len()].copy_from_slice(name); // name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_reaches_to_the_tail() {
        let root = root(1);
        assert_eq!(root[..12], [2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0]);
        assert_eq!(root[12..24], [2, 0, 0, 0, 12, 0, 2, 2, b'.', b'.', 0, 0]);
        assert_eq!(root[24..32], [11, 0, 0, 0, 0xDC, 0x0F, 10, 2]);
        assert_eq!(root[TAIL..][..8], [0, 0, 0, 0, 12, 0, 0, 0xDE]);
    }

    #[test]
    fn a_block_without_entries_has_one_of_no_inode() {
        let empty = &lost_found(1)[BLOCK..2 * BLOCK];
        assert_eq!(empty[..8], [0, 0, 0, 0, 0xF4, 0x0F, 0, 0]);
        assert_eq!(lost_found(1).len(), 4 * BLOCK);
    }
}
