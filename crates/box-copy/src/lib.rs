#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod pack;
mod place;
mod unpack;

/// The size of a block of a tar archive, in bytes.
const BLOCK: usize = 512;
/// The greatest length of a name, or of a link's target, that fits a header.
const SHORT: usize = 100;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub use archive::Archive;
pub use pack::{LeftOut, pack};
pub use place::{CopyEnd, at_path, by_path};
pub use unpack::{Author, unpack};

/// How many names a path of an archive has at most.
const MAX_DEPTH: usize = 256;

/// Returns the name of a path in an archive: its last name, or `.` if only the content of the directory is meant.
fn name_of(path: &Path) -> &OsStr {
    let is_content = path.as_os_str().as_bytes().ends_with(b"/.");
    path.file_name().filter(|_| !is_content).unwrap_or(OsStr::new("."))
}

/// Returns how many bytes fill the last block of a content of this size.
fn padding(size: u64) -> usize {
    // Less than a block.
    usize::try_from(size.wrapping_neg() % BLOCK as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_directory_has_no_name() {
        for (path, name) in
            [("a/b", "b"), ("a/b/", "b"), ("a/b/.", "."), ("/", "."), (".", "."), ("..", ".")]
        {
            assert_eq!(name_of(Path::new(path)), name, "{path}");
        }
    }
}
