//! The descriptors of groups: `struct ext4_group_desc`, which has 32 bytes without the feature `64bit`. Also the bitmaps of
//! a group's blocks and inodes, whose first member is the lowest bit of the first byte.

use crate::BLOCK;
use crate::crc::crc32c;
use crate::fields::{set16, set32};
use crate::layout::{Layout, USED_INODES};

/// Bytes of a descriptor.
const DESCRIPTOR: usize = 32;
/// `bg_checksum`
const CHECKSUM: usize = 0x1E;
/// `EXT4_BG_INODE_UNINIT`: the inode bitmap and the inode table are not in use.
const INODE_UNINIT: u32 = 1;
/// `EXT4_BG_BLOCK_UNINIT`: the block bitmap is not in use.
const BLOCK_UNINIT: u32 = 2;
/// `EXT4_BG_INODE_ZEROED`: the inode table is all zeros.
const INODE_ZEROED: u32 = 4;

/// Encodes all descriptors, and pads them to whole blocks.
pub(crate) fn encode(layout: &Layout, seed: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..layout.groups).flat_map(|group| descriptor(layout, group, seed)).collect();
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

/// Returns the bitmap of a group's blocks.
pub(crate) fn block_bitmap(layout: &Layout, group: u32) -> [u8; BLOCK] {
    bitmap(layout.used(group), layout.length(group))
}

/// Returns the bitmap of the first group's inodes.
pub(crate) fn inode_bitmap(layout: &Layout) -> [u8; BLOCK] {
    bitmap(USED_INODES, layout.inodes_per_group)
}

fn descriptor(layout: &Layout, group: u32, seed: u32) -> [u8; DESCRIPTOR] {
    let mut bytes = [0; DESCRIPTOR];
    set32(&mut bytes, 0x00, layout.block_bitmap(group)); // bg_block_bitmap_lo
    set32(&mut bytes, 0x04, layout.inode_bitmap(group)); // bg_inode_bitmap_lo
    set32(&mut bytes, 0x08, layout.inode_table(group)); // bg_inode_table_lo
    set16(&mut bytes, 0x0C, layout.free(group)); // bg_free_blocks_count_lo
    set_inodes(&mut bytes, layout, group);
    set16(&mut bytes, 0x12, flags(layout, group)); // bg_flags
    set_bitmap_checksums(&mut bytes, layout, group, seed);
    let checksum = crc32c(crc32c(seed, &group.to_le_bytes()), &bytes);
    set16(&mut bytes, CHECKSUM, checksum);
    bytes
}

fn set_inodes(bytes: &mut [u8], layout: &Layout, group: u32) {
    let (used, directories) = if group == 0 { (USED_INODES, 2) } else { (0, 0) };
    let free = layout.inodes_per_group - used;
    set16(bytes, 0x0E, free); // bg_free_inodes_count_lo
    set16(bytes, 0x10, directories); // bg_used_dirs_count_lo
    set16(bytes, 0x1C, free); // bg_itable_unused_lo: inodes at the end of the table that were never in use
}

fn flags(layout: &Layout, group: u32) -> u32 {
    let inodes = if group == 0 { 0 } else { INODE_UNINIT };
    let blocks = if layout.has_block_bitmap(group) { 0 } else { BLOCK_UNINIT };
    INODE_ZEROED | inodes | blocks
}

/// Sets the checksums of the group's bitmaps that are in use. The others have none.
fn set_bitmap_checksums(bytes: &mut [u8], layout: &Layout, group: u32, seed: u32) {
    if layout.has_block_bitmap(group) {
        let checksum = crc32c(seed, &block_bitmap(layout, group));
        set16(bytes, 0x18, checksum); // bg_block_bitmap_csum_lo
    }
    if group == 0 {
        let bytes_of_inodes = layout.inodes_per_group as usize / 8;
        let checksum = crc32c(seed, &inode_bitmap(layout)[..bytes_of_inodes]);
        set16(bytes, 0x1A, checksum); // bg_inode_bitmap_csum_lo
    }
}

/// Returns the block of a bitmap whose first `used` of `length` members are in use. The bits after `length` are set, so
/// that nothing is allocated there.
fn bitmap(used: u32, length: u32) -> [u8; BLOCK] {
    let mut firsts = (0..).step_by(8);
    std::array::from_fn(|_| {
        let first = firsts.next().unwrap_or(length);
        below(used, first) | !below(length, first)
    })
}

/// Returns the byte for the bits from `first` on, with the bits below `end` set. For example, `below(10, 8)` is `0b11`.
fn below(end: u32, first: u32) -> u8 {
    let bits = end.saturating_sub(first).min(8);
    ((1_u32 << bits) - 1).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_fill_whole_blocks() {
        for (gibibytes, blocks) in [(1, 1), (16, 1), (17, 2)] {
            let layout = Layout::new(gibibytes << 30, false).unwrap();
            assert_eq!(encode(&layout, 1).len(), blocks * BLOCK);
            assert_eq!(layout.descriptor_blocks() as usize, blocks);
        }
    }

    #[test]
    fn only_the_first_and_the_last_group_have_bitmaps() {
        let layout = Layout::new(512 << 20, false).unwrap();
        let flags: Vec<_> = (0..4).map(|group| flags(&layout, group)).collect();
        assert_eq!(flags, [4, 7, 7, 5]);
    }

    #[test]
    fn what_is_used_and_what_does_not_exist_is_set() {
        let block = bitmap(11, 43);
        assert_eq!(block[..7], [0xFF, 0x07, 0, 0, 0, 0xF8, 0xFF]);
        assert!(block[7..].iter().all(|&byte| byte == 0xFF));
    }

    #[test]
    fn a_full_group_has_no_bits_after_its_end() {
        let block = bitmap(8, 8 * 4096);
        assert_eq!((block[0], block[1], block[4095]), (0xFF, 0, 0));
    }
}
