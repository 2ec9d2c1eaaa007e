//! The archives of `boxlaunch cp`: a path becomes one, and one becomes a path. The host does one of it and the box the
//! other.
//!
//! An archive is a tar of directories, files and symbolic links, in the format of GNU tar. Its first name is the last one
//! of the path, or `.` where the path ends with `/.`: then what is in the directory is meant, and not the directory.
#![forbid(unsafe_code)]

mod pack;
mod unpack;

/// The size of a block of a tar archive, in bytes.
const BLOCK: usize = 512;
/// The greatest length of a name, or of a link's target, that has place in a header.
const SHORT: usize = 100;

pub use pack::{LeftOut, pack};
pub use unpack::unpack;

/// Returns how many bytes fill the last block of a content of this size.
fn padding(size: u64) -> usize {
    // Less than a block.
    usize::try_from(size.wrapping_neg() % BLOCK as u64).unwrap_or(0)
}
