//! The [layout](https://docs.kernel.org/filesystems/ext4/) of the file system, computed from its size before any byte
//! is written.

use crate::{BLOCK_SIZE, Error, MAX_SIZE, MIN_SIZE, MIN_SIZE_WITH_JOURNAL, journal};

/// Blocks of a group: as many as one bitmap has bits.
pub(crate) const GROUP: u32 = 8 * 4096;
/// The first inode that is not reserved (`EXT4_GOOD_OLD_FIRST_INO`): `lost+found`.
pub(crate) const LOST_FOUND_INODE: u32 = 11;
/// Inodes that are in use or reserved.
pub(crate) const USED_INODES: u32 = LOST_FOUND_INODE;
/// Blocks of the root directory.
pub(crate) const ROOT_BLOCKS: u32 = 1;
/// Blocks of `lost+found`: e2fsck may have to fill it when it cannot allocate blocks.
pub(crate) const LOST_FOUND_BLOCKS: u32 = 4;

/// Blocks per inode: 16 KiB. For example, a group of 32768 blocks has 8192 inodes.
const BLOCKS_OF_AN_INODE: u32 = 4;
/// Inodes in a block of the inode table.
const INODES_OF_A_BLOCK: u32 = 16;
/// Group descriptors in a block.
const DESCRIPTORS_OF_A_BLOCK: u32 = 128;
/// The least number of blocks for files in the last group. A shorter last group is left out, as by mke2fs.
const MIN_OF_THE_LAST: u32 = 50;
/// The blocks of a group's two bitmaps.
const BITMAPS: u32 = 2;

/// The plan of a file system. Numbers are in blocks, unless a comment has another unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) blocks: u32,
    pub(crate) groups: u32,
    /// Inodes, not blocks.
    pub(crate) inodes_per_group: u32,
    /// The length of the journal; 0 if there is none.
    pub(crate) journal_blocks: u32,
}

impl Layout {
    /// Plans a file system of at most `size` bytes.
    ///
    /// # Errors
    /// [`Error::TooSmall`] and [`Error::TooLarge`].
    pub(crate) fn new(size: u64, journal: bool) -> Result<Self, Error> {
        let least = if journal { MIN_SIZE_WITH_JOURNAL } else { MIN_SIZE };
        if size < least {
            return Err(Error::TooSmall { size, least });
        }
        let too_large = |_| Error::TooLarge { size, most: MAX_SIZE };
        let blocks = u32::try_from(size / BLOCK_SIZE).map_err(too_large)?;
        Ok(Self::of_blocks(blocks, journal))
    }

    fn of_blocks(blocks: u32, journal: bool) -> Self {
        let groups = blocks.div_ceil(GROUP);
        let inodes_of_each = (blocks / BLOCKS_OF_AN_INODE).div_ceil(groups);
        let inodes_per_group = inodes_of_each.next_multiple_of(INODES_OF_A_BLOCK);
        let journal_blocks = if journal { journal::length(blocks) } else { 0 };
        let layout = Self { blocks, groups, inodes_per_group, journal_blocks };
        let last = layout.last();
        let length = layout.length(last);
        if last > 0 && length < layout.tables_end(last) + MIN_OF_THE_LAST {
            return Self::of_blocks(blocks - length, journal);
        }
        layout
    }

    /// Returns the number of all inodes.
    pub(crate) fn inodes(&self) -> u32 {
        self.groups * self.inodes_per_group
    }

    /// Returns the number of the last group.
    pub(crate) fn last(&self) -> u32 {
        self.groups - 1
    }

    /// Returns the group with the copy of the superblock and the descriptors, if there is one.
    pub(crate) fn backup(&self) -> Option<u32> {
        (self.groups > 1).then_some(1)
    }

    /// Returns the number of blocks with group descriptors.
    pub(crate) fn descriptor_blocks(&self) -> u32 {
        self.groups.div_ceil(DESCRIPTORS_OF_A_BLOCK)
    }

    /// Returns the number of blocks of a group's inode table.
    pub(crate) fn table_blocks(&self) -> u32 {
        self.inodes_per_group / INODES_OF_A_BLOCK
    }

    /// Returns a group's first block.
    pub(crate) fn first(&self, group: u32) -> u32 {
        group * GROUP
    }

    /// Returns how many blocks a group has.
    pub(crate) fn length(&self, group: u32) -> u32 {
        (self.blocks - self.first(group)).min(GROUP)
    }

    /// Returns the block of a group's block bitmap. The inode bitmap and the inode table follow.
    pub(crate) fn block_bitmap(&self, group: u32) -> u32 {
        self.first(group) + self.head(group)
    }

    /// Returns the block of a group's inode bitmap.
    pub(crate) fn inode_bitmap(&self, group: u32) -> u32 {
        self.block_bitmap(group) + 1
    }

    /// Returns the first block of a group's inode table.
    pub(crate) fn inode_table(&self, group: u32) -> u32 {
        self.block_bitmap(group) + BITMAPS
    }

    /// Returns the block of the root directory. `lost+found` and the journal follow it.
    pub(crate) fn root(&self) -> u32 {
        self.tables_end(0)
    }

    /// Returns the first block of the directory `lost+found`.
    pub(crate) fn lost_found(&self) -> u32 {
        self.root() + ROOT_BLOCKS
    }

    /// Returns the first block after `lost+found`: the first one of the journal, if there is one.
    pub(crate) fn journal(&self) -> u32 {
        self.lost_found() + LOST_FOUND_BLOCKS
    }

    /// Returns how many blocks of a group are in use. They are its first blocks.
    pub(crate) fn used(&self, group: u32) -> u32 {
        if group == 0 { self.journal() + self.journal_blocks } else { self.tables_end(group) }
    }

    /// Returns how many blocks of a group are free.
    pub(crate) fn free(&self, group: u32) -> u32 {
        self.length(group) - self.used(group)
    }

    /// Returns how many blocks of the file system are free.
    pub(crate) fn all_free(&self) -> u32 {
        (0..self.groups).map(|group| self.free(group)).sum()
    }

    /// Returns how many blocks are not for files: the tables of all groups, and the journal.
    pub(crate) fn overhead(&self) -> u32 {
        let tables: u32 = (0..self.groups).map(|group| self.tables_end(group)).sum();
        tables + self.journal_blocks
    }

    /// Returns whether the bitmap of a group's blocks is written. The kernel computes the others from the descriptors.
    pub(crate) fn has_block_bitmap(&self, group: u32) -> bool {
        group == 0 || group == self.last()
    }

    /// Returns how many blocks at a group's start have the superblock and the descriptors, or their copy.
    fn head(&self, group: u32) -> u32 {
        if group <= 1 { 1 + self.descriptor_blocks() } else { 0 }
    }

    /// Returns how many blocks the superblock, the descriptors, the bitmaps and the inode table of a group take.
    fn tables_end(&self, group: u32) -> u32 {
        self.head(group) + BITMAPS + self.table_blocks()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of a group.
    const GROUP_SIZE: u64 = 128 << 20;

    #[test]
    fn sizes_out_of_range_are_refused() {
        for (size, journal, least) in
            [(MIN_SIZE - 1, false, MIN_SIZE), (MIN_SIZE_WITH_JOURNAL - 1, true, 8 << 20)]
        {
            let error = Layout::new(size, journal).unwrap_err().to_string();
            assert!(error.contains(&format!("at least {least} bytes")), "{error}");
        }
        let error = Layout::new(MAX_SIZE + BLOCK_SIZE, false).unwrap_err().to_string();
        assert!(error.contains(&MAX_SIZE.to_string()), "{error}");
    }

    #[test]
    fn the_largest_has_as_many_blocks_as_can_be_numbered() {
        for size in [MAX_SIZE, MAX_SIZE + BLOCK_SIZE - 1] {
            let layout = Layout::new(size, true).unwrap();
            assert_eq!((layout.blocks, layout.groups), (u32::MAX, 1 << 17));
            assert_eq!((layout.descriptor_blocks(), layout.inodes()), (1024, 1 << 30));
        }
    }

    #[test]
    fn a_last_group_without_room_is_left_out() {
        let blocks = |size| Layout::new(size, false).unwrap().blocks;
        assert_eq!(blocks(2 * GROUP_SIZE), 2 * GROUP);
        assert_eq!(blocks(2 * GROUP_SIZE + BLOCK_SIZE), 2 * GROUP);
        let layout = Layout::new(2 * GROUP_SIZE + (3 << 20), false).unwrap();
        assert_eq!((layout.groups, layout.length(2)), (3, 768));
    }

    proptest! {
        #[test]
        fn every_group_has_room_for_its_tables_and_nothing_is_lost(
            size in MIN_SIZE_WITH_JOURNAL..=MAX_SIZE >> 4, journal: bool, shift in 0_u32..14,
        ) {
            let size = (size >> shift).max(MIN_SIZE_WITH_JOURNAL);
            let layout = Layout::new(size, journal).unwrap();
            let given = u32::try_from(size / BLOCK_SIZE).unwrap();
            prop_assert!(layout.blocks <= given && given - layout.blocks < 768);
            prop_assert!((0..layout.groups).all(|group| layout.used(group) < layout.length(group)));
            let used: u32 = (0..layout.groups).map(|group| layout.used(group)).sum();
            prop_assert_eq!(used + layout.all_free(), layout.blocks);
            prop_assert_eq!(layout.overhead() + ROOT_BLOCKS + LOST_FOUND_BLOCKS, used);
            prop_assert!(layout.inodes() >= layout.blocks / BLOCKS_OF_AN_INODE);
        }
    }
}
