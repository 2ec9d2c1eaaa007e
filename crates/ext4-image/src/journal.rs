//! The journal: `journal_superblock_t` of jbd2 in version 2, which is big-endian, in the first block of the journal's inode.

use crate::BLOCK;

/// `JBD2_MAGIC_NUMBER`
const MAGIC: u32 = 0xC03B_3998;
/// `JBD2_SUPERBLOCK_V2`
const VERSION_2: u32 = 4;

const KIBI: u32 = 1 << 10;

/// Returns how many blocks the journal has in a file system of `blocks` blocks: as many as with mke2fs, but at most 64 MiB.
pub(crate) fn length(blocks: u32) -> u32 {
    match blocks / KIBI {
        0..32 => KIBI,
        32..256 => 4 * KIBI,
        256..512 => 8 * KIBI,
        _ => 16 * KIBI,
    }
}

/// Encodes the first block of an empty journal of `length` blocks. The kernel ignores the others until it has written them.
pub(crate) fn encode(length: u32, uuid: &[u8; 16]) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    for (offset, value) in [
        (0x00, MAGIC),     // h_magic
        (0x04, VERSION_2), // h_blocktype
        (0x0C, 4096),      // s_blocksize
        (0x10, length),    // s_maxlen
        (0x14, 1),         // s_first: the first block of the log
        (0x18, 1),         // s_sequence
        (0x1C, 0),         // s_start: the log is empty
        (0x40, 1),         // s_nr_users
    ] {
        bytes[offset..][..4].copy_from_slice(&value.to_be_bytes());
    }
    bytes[0x30..][..16].copy_from_slice(uuid); // s_uuid
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_grows_with_the_file_system() {
        let mebibytes = |size: u32| length(size * 256) / 256;
        let sizes = [8, 127, 128, 1023, 1024, 2047, 2048, 1 << 20];
        assert_eq!(sizes.map(mebibytes), [4, 4, 16, 16, 32, 32, 64, 64]);
    }

    #[test]
    fn an_empty_journal_starts_nowhere() {
        let block = encode(1024, &[7; 16]);
        assert_eq!(block[..8], [0xC0, 0x3B, 0x39, 0x98, 0, 0, 0, 4]);
        assert_eq!(
            block[0x0C..0x20],
            [0, 0, 16, 0, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]
        );
        assert_eq!(block[0x30..0x40], [7; 16]);
    }
}
