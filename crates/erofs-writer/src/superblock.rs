//! The superblock: `struct erofs_super_block`, field by field in [`crate::format`].

use crate::BLOCK;
use crate::checksum::crc32c;

const MAGIC: u32 = 0xE0F5_E1E2;
/// `EROFS_SUPER_OFFSET`.
const OFFSET: usize = 1024;
const CHECKSUM: usize = OFFSET + 4;
/// `EROFS_FEATURE_COMPAT_SB_CHKSUM | EROFS_FEATURE_COMPAT_MTIME`.
const FEATURE_COMPAT: u32 = 1 | 2;
/// The binary logarithm of the block size.
const BLOCK_BITS: u8 = BLOCK.trailing_zeros().to_le_bytes()[0];

/// What the superblock says of an image.
#[derive(Debug)]
pub(crate) struct Superblock {
    /// The root directory's number.
    pub(crate) root_nid: u16,
    /// The number of inodes.
    pub(crate) inodes: u64,
    /// The image's size in blocks.
    pub(crate) blocks: u32,
    /// The volume's id.
    pub(crate) uuid: [u8; 16],
}

impl Superblock {
    /// Encodes the image's first block, which holds nothing else.
    pub(crate) fn encode(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let mut put = |offset: usize, bytes: &[u8]| {
            block[OFFSET + offset..][..bytes.len()].copy_from_slice(bytes);
        };
        put(0, &MAGIC.to_le_bytes());
        put(8, &FEATURE_COMPAT.to_le_bytes());
        put(12, &[BLOCK_BITS]);
        put(14, &self.root_nid.to_le_bytes());
        put(16, &self.inodes.to_le_bytes());
        put(36, &self.blocks.to_le_bytes());
        put(48, &self.uuid);
        let checksum = crc32c(&block[OFFSET..]);
        block[CHECKSUM..][..4].copy_from_slice(&checksum.to_le_bytes());
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_kernel_reads_them() {
        let uuid = std::array::from_fn(|index| u8::try_from(index).unwrap() + 0xA0);
        let block = Superblock { root_nid: 0x1234, inodes: 0x5678, blocks: 0x9ABC, uuid }.encode();
        let field = |offset: usize, len: usize| &block[1024 + offset..][..len];
        assert_eq!(block[..1024], [0; 1024]);
        assert_eq!(field(0, 4), [0xE2, 0xE1, 0xF5, 0xE0]);
        assert_eq!(field(8, 8), [3, 0, 0, 0, 12, 0, 0x34, 0x12]);
        assert_eq!(field(16, 8), [0x78, 0x56, 0, 0, 0, 0, 0, 0]);
        assert_eq!(field(24, 12), [0; 12]);
        assert_eq!(field(36, 12), [0xBC, 0x9A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(field(48, 16), uuid);
        assert_eq!(block[1024 + 64..], [0; 4096 - 1024 - 64]);
    }

    #[test]
    fn the_checksum_covers_the_rest_of_the_block() {
        let mut block = Superblock { root_nid: 1, inodes: 2, blocks: 3, uuid: [4; 16] }.encode();
        let stored: [u8; 4] = block[1028..1032].try_into().unwrap();
        block[1028..1032].fill(0);
        assert_eq!(u32::from_le_bytes(stored), crc32c(&block[1024..]));
    }
}
