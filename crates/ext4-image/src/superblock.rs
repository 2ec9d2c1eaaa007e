//! The superblock: `struct ext4_super_block`.

use crate::crc::crc32c;
use crate::fields::{set16, set32};
use crate::inode::{EXTRA_SIZE, I_BLOCK, INODE, Inode, JOURNAL_INODE};
use crate::layout::{GROUP, LOST_FOUND_INODE, Layout, USED_INODES};
use crate::{BLOCK, Options};

/// Bytes of the structure.
const LENGTH: usize = 1024;
/// The superblock's offset in the file system's first block. The copy in group 1 is at the start of its block.
const OFFSET: usize = 1024;
/// `s_checksum`
const CHECKSUM: usize = 0x3FC;

const MAGIC: u32 = 0xEF53;
/// The binary logarithm of the block size in KiB (`s_log_block_size`).
const LOG_BLOCK_SIZE: u32 = 2;
/// `EXT4_DYNAMIC_REV`
const REVISION: u32 = 1;
/// `EXT4_VALID_FS`
const VALID: u32 = 1;
/// `EXT4_ERRORS_CONTINUE`
const CONTINUE: u32 = 1;
/// `s_max_mnt_count` of -1: the number of mounts never causes a check.
const ANY_MOUNTS: u32 = 0xFFFF;
/// `EXT4_DEFM_XATTR_USER | EXT4_DEFM_ACL`
const MOUNT_OPTIONS: u32 = 0x4 | 0x8;
/// `EXT2_FLAGS_SIGNED_HASH`: names are hashed as signed characters, as on x86.
const SIGNED_HASH: u32 = 1;
/// `DX_HASH_HALF_MD4`
const HALF_MD4: u8 = 1;
/// `EXT3_JNL_BACKUP_BLOCKS`
const JOURNAL_BACKUP: u8 = 1;
/// `EXT4_CRC32C_CHKSUM`
const CRC32C: u8 = 1;

/// The feature `has_journal` (`EXT4_FEATURE_COMPAT_HAS_JOURNAL`).
const HAS_JOURNAL: u32 = 0x4;
/// The features `ext_attr`, `dir_index` and `sparse_super2`.
const COMPATIBLE: u32 = 0x8 | 0x20 | 0x200;
/// The features `filetype` and `extent`.
const INCOMPATIBLE: u32 = 0x2 | 0x40;
/// The features `sparse_super`, `large_file`, `huge_file`, `dir_nlink`, `extra_isize` and `metadata_csum`.
const READ_ONLY_COMPATIBLE: u32 = 0x1 | 0x2 | 0x8 | 0x20 | 0x40 | 0x400;

/// Encodes the file system's first block.
pub(crate) fn first_block(layout: &Layout, options: &Options) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[OFFSET..][..LENGTH].copy_from_slice(&encode(layout, options, 0));
    block
}

/// Encodes the block with the copy of the superblock in `group`.
pub(crate) fn backup_block(layout: &Layout, options: &Options, group: u32) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..LENGTH].copy_from_slice(&encode(layout, options, group));
    block
}

fn encode(layout: &Layout, options: &Options, group: u32) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    set_counts(&mut bytes, layout);
    set_state(&mut bytes, group);
    set_features(&mut bytes, layout);
    set_identity(&mut bytes, &options.uuid);
    if options.journal {
        set_journal(&mut bytes, &Inode::journal(layout));
    }
    let checksum = crc32c(u32::MAX, &bytes[..CHECKSUM]);
    set32(&mut bytes, CHECKSUM, checksum);
    bytes
}

fn set_counts(bytes: &mut [u8], layout: &Layout) {
    set32(bytes, 0x00, layout.inodes()); // s_inodes_count
    set32(bytes, 0x04, layout.blocks); // s_blocks_count_lo
    set32(bytes, 0x0C, layout.all_free()); // s_free_blocks_count_lo
    set32(bytes, 0x10, layout.inodes() - USED_INODES); // s_free_inodes_count
    set32(bytes, 0x18, LOG_BLOCK_SIZE); // s_log_block_size
    set32(bytes, 0x1C, LOG_BLOCK_SIZE); // s_log_cluster_size
    set32(bytes, 0x20, GROUP); // s_blocks_per_group
    set32(bytes, 0x24, GROUP); // s_clusters_per_group
    set32(bytes, 0x28, layout.inodes_per_group); // s_inodes_per_group
    set32(bytes, 0x248, layout.overhead()); // s_overhead_clusters
    set32(bytes, 0x24C, layout.backup().unwrap_or(0)); // s_backup_bgs[0]
}

fn set_state(bytes: &mut [u8], group: u32) {
    // The state of the file system may have changed since the copy was written, so a copy is not marked clean.
    let state = if group == 0 { VALID } else { 0 };
    set16(bytes, 0x36, ANY_MOUNTS); // s_max_mnt_count
    set16(bytes, 0x38, MAGIC); // s_magic
    set16(bytes, 0x3A, state); // s_state
    set16(bytes, 0x3C, CONTINUE); // s_errors
    set16(bytes, 0x5A, group); // s_block_group_nr
    set32(bytes, 0x100, MOUNT_OPTIONS); // s_default_mount_opts
}

fn set_features(bytes: &mut [u8], layout: &Layout) {
    let journal = if layout.journal_blocks > 0 { HAS_JOURNAL } else { 0 };
    set32(bytes, 0x4C, REVISION); // s_rev_level
    set32(bytes, 0x54, LOST_FOUND_INODE); // s_first_ino
    bytes[0x58..][..2].copy_from_slice(&INODE.to_le_bytes()[..2]); // s_inode_size
    set32(bytes, 0x5C, COMPATIBLE | journal); // s_feature_compat
    set32(bytes, 0x60, INCOMPATIBLE); // s_feature_incompat
    set32(bytes, 0x64, READ_ONLY_COMPATIBLE); // s_feature_ro_compat
    set16(bytes, 0x15C, EXTRA_SIZE); // s_min_extra_isize
    set16(bytes, 0x15E, EXTRA_SIZE); // s_want_extra_isize
    bytes[0x175] = CRC32C; // s_checksum_type
}

fn set_identity(bytes: &mut [u8], uuid: &[u8; 16]) {
    bytes[0x68..][..16].copy_from_slice(uuid); // s_uuid
    bytes[0xEC..][..16].copy_from_slice(uuid); // s_hash_seed
    bytes[0xFC] = HALF_MD4; // s_def_hash_version
    set32(bytes, 0x160, SIGNED_HASH); // s_flags
}

fn set_journal(bytes: &mut [u8], journal: &Inode) {
    set32(bytes, 0xE0, JOURNAL_INODE); // s_journal_inum
    bytes[0xFD] = JOURNAL_BACKUP; // s_jnl_backup_type
    bytes[0x10C..][..I_BLOCK].copy_from_slice(&journal.extents()); // s_jnl_blocks[0..15]
    set32(bytes, 0x14C, journal.size()); // s_jnl_blocks[16], after the high half of the size
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options =
        Options { uuid: [7; 16], journal: true, root_owner: (0, 0), root_mode: 0o755 };

    #[test]
    fn fields_lie_where_the_kernel_reads_them() {
        let layout = Layout::new(8 << 20, true).unwrap();
        let block = first_block(&layout, &OPTIONS);
        let field = |offset: usize, length: usize| &block[OFFSET + offset..][..length];
        assert_eq!(block[..OFFSET], [0; OFFSET]);
        assert_eq!(field(0x00, 8), [0, 2, 0, 0, 0, 8, 0, 0]);
        assert_eq!(field(0x38, 4), [0x53, 0xEF, 1, 0]);
        assert_eq!(field(0x58, 4), [0, 1, 0, 0]);
        assert_eq!(field(0x5C, 12), [0x2C, 2, 0, 0, 0x42, 0, 0, 0, 0x6B, 4, 0, 0]);
        assert_eq!(field(0x68, 16), [7; 16]);
        assert_eq!(field(0xE0, 4), [8, 0, 0, 0]);
        assert_eq!(field(0x14C, 4), [0, 0, 0x40, 0]);
    }

    #[test]
    fn a_copy_names_its_group_and_is_not_clean() {
        let layout = Layout::new(1 << 30, true).unwrap();
        let block = backup_block(&layout, &OPTIONS, 1);
        assert_eq!(block[0x38..0x3C], [0x53, 0xEF, 0, 0]);
        assert_eq!(block[0x5A..0x5C], [1, 0]);
        assert_eq!(block[0x24C..0x254], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[CHECKSUM..LENGTH], crc32c(u32::MAX, &block[..CHECKSUM]).to_le_bytes());
    }
}
