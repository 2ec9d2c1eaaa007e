//! Inodes: `struct ext4_inode`. Each inode has one extent.

use crate::crc::crc32c;
use crate::fields::{set16, set32};
use crate::layout::{LOST_FOUND_BLOCKS, LOST_FOUND_INODE, Layout, ROOT_BLOCKS};
use crate::{BLOCK, Options};

/// Bytes of an inode.
pub(crate) const INODE: usize = 256;
/// `EXT4_ROOT_INO`
pub(crate) const ROOT_INODE: u32 = 2;
/// `EXT4_JOURNAL_INO`
pub(crate) const JOURNAL_INODE: u32 = 8;
/// Bytes of `i_block`.
pub(crate) const I_BLOCK: usize = 60;

/// Bytes of the fields of an inode after the first 128 bytes (`i_extra_isize`).
pub(crate) const EXTRA_SIZE: u32 = 32;
/// Sectors of 512 bytes in a block. `i_blocks` is in sectors.
const SECTORS: u32 = 8;
/// `S_IFDIR`
const DIRECTORY: u32 = 0o040_000;
/// `S_IFREG`
const REGULAR: u32 = 0o100_000;
/// `EXT4_EXTENTS_FL`
const EXTENTS: u32 = 0x8_0000;
/// `EXT4_EXT_MAGIC`
const EXTENT_MAGIC: u32 = 0xF30A;
/// Extents that fit after the header in `i_block`.
const MAX_EXTENTS: u32 = 4;

/// An inode with contiguous data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inode {
    number: u32,
    /// Type and permissions.
    mode: u32,
    owner: (u32, u32),
    links: u32,
    /// The first block of the data.
    first: u32,
    /// The number of blocks of the data.
    blocks: u32,
}

/// Returns the first block of the inode table.
pub(crate) fn table_block(layout: &Layout, options: &Options, seed: u32) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    let journal = (layout.journal_blocks > 0).then(|| Inode::journal(layout));
    for inode in
        [Inode::root(layout, options), Inode::lost_found(layout)].into_iter().chain(journal)
    {
        let at = (inode.number as usize - 1) * INODE;
        bytes[at..][..INODE].copy_from_slice(&inode.encode(seed));
    }
    bytes
}

/// Returns the seed of an inode's checksum and of the checksums of its directory blocks. `volume` is the checksum of the UUID.
pub(crate) fn seed(volume: u32, inode: u32) -> u32 {
    let generation = 0_u32;
    crc32c(crc32c(volume, &inode.to_le_bytes()), &generation.to_le_bytes())
}

impl Inode {
    fn root(layout: &Layout, options: &Options) -> Self {
        let mode = DIRECTORY | u32::from(options.root_mode);
        let (number, owner, first) = (ROOT_INODE, options.root_owner, layout.root());
        Self { number, mode, owner, links: 3, first, blocks: ROOT_BLOCKS }
    }

    fn lost_found(layout: &Layout) -> Self {
        let (number, mode, first) = (LOST_FOUND_INODE, DIRECTORY | 0o700, layout.lost_found());
        Self { number, mode, owner: (0, 0), links: 2, first, blocks: LOST_FOUND_BLOCKS }
    }

    /// Returns the journal's inode.
    pub(crate) fn journal(layout: &Layout) -> Self {
        let (number, mode, first) = (JOURNAL_INODE, REGULAR | 0o600, layout.journal());
        Self { number, mode, owner: (0, 0), links: 1, first, blocks: layout.journal_blocks }
    }

    /// Returns the size of the data in bytes.
    pub(crate) fn size(&self) -> u32 {
        self.blocks << BLOCK.trailing_zeros()
    }

    /// Encodes `i_block`: `struct ext4_extent_header` and one `struct ext4_extent`.
    pub(crate) fn extents(&self) -> [u8; I_BLOCK] {
        let mut bytes = [0; I_BLOCK];
        set16(&mut bytes, 0x00, EXTENT_MAGIC); // eh_magic
        set16(&mut bytes, 0x02, 1); // eh_entries
        set16(&mut bytes, 0x04, MAX_EXTENTS); // eh_max
        set16(&mut bytes, 0x10, self.blocks); // ee_len, after ee_block, which is 0
        set32(&mut bytes, 0x14, self.first); // ee_start_lo
        bytes
    }

    fn encode(&self, volume: u32) -> [u8; INODE] {
        let mut bytes = [0; INODE];
        set16(&mut bytes, 0x00, self.mode); // i_mode
        self.set_owner(&mut bytes);
        set32(&mut bytes, 0x04, self.size()); // i_size_lo
        set16(&mut bytes, 0x1A, self.links); // i_links_count
        set32(&mut bytes, 0x1C, self.blocks * SECTORS); // i_blocks_lo
        set32(&mut bytes, 0x20, EXTENTS); // i_flags
        bytes[0x28..][..I_BLOCK].copy_from_slice(&self.extents()); // i_block
        set16(&mut bytes, 0x80, EXTRA_SIZE); // i_extra_isize
        let checksum = crc32c(seed(volume, self.number), &bytes);
        set16(&mut bytes, 0x7C, checksum); // l_i_checksum_lo
        set16(&mut bytes, 0x82, checksum >> 16); // i_checksum_hi
        bytes
    }

    fn set_owner(&self, bytes: &mut [u8]) {
        let (user, group) = self.owner;
        set16(bytes, 0x02, user); // i_uid
        set16(bytes, 0x18, group); // i_gid
        set16(bytes, 0x78, user >> 16); // l_i_uid_high
        set16(bytes, 0x7A, group >> 16); // l_i_gid_high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { uuid: [7; 16], journal: false, root_owner: (0x1_0002, 3), root_mode: 0o1770 };

    #[test]
    fn the_root_is_the_second_inode() {
        let layout = Layout::new(1 << 20, false).unwrap();
        let block = table_block(&layout, &OPTIONS, 1);
        let root = &block[INODE..2 * INODE];
        assert_eq!(root[..8], [0xF8, 0x43, 2, 0, 0, 0x10, 0, 0]);
        assert_eq!(root[0x18..0x20], [3, 0, 3, 0, 8, 0, 0, 0]);
        assert_eq!(root[0x28..0x30], [0x0A, 0xF3, 1, 0, 4, 0, 0, 0]);
        assert_eq!(root[0x38..0x40], [1, 0, 0, 0, 8, 0, 0, 0]);
        assert_eq!(root[0x78..0x7C], [1, 0, 0, 0]);
    }

    #[test]
    fn inodes_that_are_not_in_use_are_zeros() {
        let of = |journal, size| {
            let layout = Layout::new(size, journal).unwrap();
            let block = table_block(&layout, &OPTIONS, 1);
            let used = |at: &usize| block[(at - 1) * INODE..][..INODE] != [0; INODE];
            (1..=16).filter(used).collect::<Vec<_>>()
        };
        assert_eq!(of(false, 1 << 20), [2, 11]);
        assert_eq!(of(true, 8 << 20), [2, 8, 11]);
    }
}
