//! The superblock: `struct erofs_super_block`, field by field in [`crate::format`].

use crate::BLOCK;

const MAGIC: u32 = 0xE0F5_E1E2;
/// `EROFS_SUPER_OFFSET`.
const OFFSET: usize = 1024;
const CHECKSUM: usize = OFFSET + 4;
/// `EROFS_FEATURE_COMPAT_SB_CHKSUM | EROFS_FEATURE_COMPAT_MTIME`.
const FEATURE_COMPAT: u32 = 1 | 2;
/// The binary logarithm of the block size.
const BLOCK_BITS: u8 = BLOCK.trailing_zeros().to_le_bytes()[0];

/// Encodes the image's first block, which has only the superblock. `inodes` is the number of inodes, and `blocks` the
/// image's size in blocks.
pub(crate) fn encode(root_nid: u16, inodes: u64, blocks: u32, uuid: [u8; 16]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |offset: usize, bytes: &[u8]| {
        block[OFFSET + offset..][..bytes.len()].copy_from_slice(bytes);
    };
    put(0, &MAGIC.to_le_bytes());
    put(8, &FEATURE_COMPAT.to_le_bytes());
    put(12, &[BLOCK_BITS]);
    put(14, &root_nid.to_le_bytes());
    put(16, &inodes.to_le_bytes());
    put(36, &blocks.to_le_bytes());
    put(48, &uuid);
    let checksum = crc32c(&block[OFFSET..]);
    block[CHECKSUM..][..4].copy_from_slice(&checksum.to_le_bytes());
    block
}

/// Returns the root directory's number, if [`encode`] can have written `block`. Otherwise returns `None`.
pub(crate) fn root(block: &[u8; BLOCK]) -> Option<u16> {
    let field = |offset: usize, length: usize| &block[OFFSET + offset..][..length];
    let root = u16::from_le_bytes(field(14, 2).try_into().ok()?);
    let inodes = u64::from_le_bytes(field(16, 8).try_into().ok()?);
    let blocks = u32::from_le_bytes(field(36, 4).try_into().ok()?);
    let uuid = field(48, 16).try_into().ok()?;
    (encode(root, inodes, blocks, uuid) == *block).then_some(root)
}

/// Returns the CRC-32C (Castagnoli) as the kernel's `crc32c()` computes it: started from all ones, not
/// inverted at the end.
fn crc32c(bytes: &[u8]) -> u32 {
    !crc32c::crc32c(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lie_where_the_kernel_reads_them() {
        let uuid = std::array::from_fn(|index| u8::try_from(index).unwrap() + 0xA0);
        let block = encode(0x1234, 0x5678, 0x9ABC, uuid);
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
        let mut block = encode(1, 2, 3, [4; 16]);
        let stored: [u8; 4] = block[1028..1032].try_into().unwrap();
        block[1028..1032].fill(0);
        assert_eq!(u32::from_le_bytes(stored), crc32c(&block[1024..]));
    }

    /// RFC 3720, B.4: the examples of iSCSI, which inverts the result.
    #[test]
    fn the_examples_of_rfc_3720_hold() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            ([0; 32].as_slice(), 0x8A91_36AA),
            (&[0xFF; 32], 0x62A8_AB43),
            (&ascending, 0x46DD_794E),
            (b"123456789", 0xE306_9283),
        ] {
            assert_eq!(!crc32c(bytes), expected, "{bytes:?}");
        }
    }
}
