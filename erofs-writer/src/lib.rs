#![doc = include_str!("../README.md")]
//!
//! # What the image looks like
//!
//! The format is the Linux kernel's: `fs/erofs/erofs_fs.h` gives the structures, and
//! `Documentation/filesystems/erofs.rst` how they lie together. All integers are little-endian.
//! Of that format the writer uses the oldest part, which needs no incompatible feature bit:
//!
//! ```text
//! block 0      1024 zero bytes, struct erofs_super_block (128 bytes), zero bytes
//! block 1 …    inodes, each at a multiple of 32 bytes: struct erofs_inode_extended (64 bytes),
//!              its extended attributes, its inline tail
//! then         blocks of directories and symlinks that do not fit behind their inode
//! then         file contents, each once, each from the start of a block
//! ```
//!
//! A block has 4096 bytes. An inode's number (`nid`) is its byte offset in the image divided by
//! 32, because `meta_blkaddr` is 0; the root is the first inode, at nid 128.
//!
//! Inodes are in the order of a walk from the root: all that one directory holds lies together,
//! sorted by name, and then come the subdirectories in turn. Contents are in the order of the
//! first inode that has them. So nothing but the tree decides where a byte lies.
//!
//! Data are `EROFS_INODE_FLAT_PLAIN` (whole blocks at `raw_blkaddr`) or `EROFS_INODE_FLAT_INLINE`
//! (the tail of less than a block follows the inode). Inline are: a directory's last block, a
//! symlink's target, and a file of at most 2048 bytes whose content no other inode has. A file
//! whose content several inodes have is plain, and they all name the same blocks.
#![forbid(unsafe_code)]

mod checksum;
mod content;
mod directory;
mod error;
mod identity;
mod inode;
mod layout;
mod places;
mod sink;
mod superblock;
mod tree;
mod walk;
mod write;
mod xattr;

pub use content::{ContentId, Contents};
pub use error::Error;
pub use places::Places;
pub use tree::{ImageBuilder, Meta, Node, NodeId};
pub use write::Summary;

/// Bytes of a block, as a length in memory.
const BLOCK: usize = 4096;
/// Bytes of a block, as a distance in the image.
const BLOCK_SIZE: u64 = BLOCK as u64;
