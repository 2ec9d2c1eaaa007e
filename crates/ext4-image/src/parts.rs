//! The ranges of the file that are written. The rest of the file is holes.

use crate::layout::Layout;
use crate::{Error, Options, crc::crc32c, directory, group, inode, journal, superblock};

/// A range of contiguous blocks.
#[derive(Debug)]
pub(crate) struct Part {
    /// The number of the first block.
    pub(crate) block: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Plans a file system of at most `size` bytes, and encodes all its parts.
///
/// # Errors
/// [`Error::TooSmall`] and [`Error::TooLarge`].
pub(crate) fn plan(size: u64, options: &Options) -> Result<Vec<Part>, Error> {
    Ok(parts(&Layout::new(size, options.journal)?, options))
}

/// Encodes all parts, at most four, in the order of the file.
fn parts(layout: &Layout, options: &Options) -> Vec<Part> {
    let seed = crc32c(u32::MAX, &options.uuid);
    let descriptors = group::encode(layout, seed);
    let mut parts = vec![tables(layout, options, &descriptors, seed), data(layout, options, seed)];
    parts.extend(layout.backup().map(|group| backup(layout, options, &descriptors, group)));
    parts.extend((layout.last() > 0).then(|| last_bitmap(layout)));
    parts
}

/// Encodes the first group's superblock, descriptors and bitmaps, and the first block of its inode table.
fn tables(layout: &Layout, options: &Options, descriptors: &[u8], seed: u32) -> Part {
    let mut bytes = superblock::first_block(layout, options).to_vec();
    bytes.extend(descriptors);
    bytes.extend(group::block_bitmap(layout, 0));
    bytes.extend(group::inode_bitmap(layout));
    bytes.extend(inode::table_block(layout, options, seed));
    Part { block: 0, bytes }
}

/// Encodes the root directory and `lost+found`, and the journal's first block if there is a journal.
fn data(layout: &Layout, options: &Options, seed: u32) -> Part {
    let mut bytes = directory::root(seed);
    bytes.extend(directory::lost_found(seed));
    if options.journal {
        bytes.extend(journal::encode(layout.journal_blocks, &options.uuid));
    }
    Part { block: layout.root(), bytes }
}

/// Encodes the copy of the superblock and the descriptors.
fn backup(layout: &Layout, options: &Options, descriptors: &[u8], group: u32) -> Part {
    let mut bytes = superblock::backup_block(layout, options, group).to_vec();
    bytes.extend(descriptors);
    Part { block: layout.first(group), bytes }
}

/// Encodes the block bitmap of the last group, which may have fewer blocks than the others.
fn last_bitmap(layout: &Layout) -> Part {
    let last = layout.last();
    let bytes = group::block_bitmap(layout, last).to_vec();
    Part { block: layout.block_bitmap(last), bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK_SIZE;

    #[test]
    fn the_pieces_do_not_overlap_and_lie_within_the_file_system() {
        for (mebibytes, journal, pieces) in
            [(1, false, 2), (128, true, 2), (256, false, 4), (131, true, 4), (1 << 20, false, 4)]
        {
            let layout = Layout::new(mebibytes << 20, journal).unwrap();
            let options = Options { uuid: [7; 16], journal, root_owner: (0, 0), root_mode: 0o755 };
            let parts = parts(&layout, &options);
            let end = |part: &Part| {
                assert_eq!(part.bytes.len() as u64 % BLOCK_SIZE, 0);
                u64::from(part.block) + part.bytes.len() as u64 / BLOCK_SIZE
            };
            assert!(parts.windows(2).all(|two| end(&two[0]) <= u64::from(two[1].block)));
            assert!(parts.iter().all(|part| end(part) <= u64::from(layout.blocks)));
            assert_eq!(parts.len(), pieces);
        }
    }
}
