#![doc = include_str!("../README.md")]
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

#[doc = include_str!("../FORMAT.md")]
pub mod format {}

pub use content::Contents;
pub use error::Error;
pub use places::Places;
pub use tree::{ImageBuilder, Meta, Node, NodeId};
pub use write::Summary;

/// Bytes of a block, as a length in memory.
const BLOCK: usize = 4096;
/// Bytes of a block, as a distance in the image.
const BLOCK_SIZE: u64 = BLOCK as u64;
