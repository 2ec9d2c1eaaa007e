#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod first;
mod pack;
mod place;
mod unpack;

/// The size of a block of a tar archive, in bytes.
const BLOCK: usize = 512;
/// The maximum length in bytes of an entry's name or of a link's target in a header.
const SHORT: usize = 100;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

pub use archive::Archive;
pub use first::{FirstEntry, first_entry};
pub use pack::{LeftOut, pack};
pub use place::{CopyEnd, at_path, by_path};
pub use unpack::{Author, unpack};

/// The maximum number of names in a path of an archive.
const MAX_DEPTH: usize = 256;

/// Returns the name under which the entry at `path` is packed: the path's last name, or `.` if the path ends with `/.` or has no
/// last name. For example, `a/b` has the name `b`, and `a/b/.`, `/` and `..` have the name `.`.
fn name_of(path: &Path) -> &OsStr {
    let is_content = path.as_os_str().as_bytes().ends_with(b"/.");
    path.file_name().filter(|_| !is_content).unwrap_or(OsStr::new("."))
}

/// Returns the number of bytes between the end of a content of `size` bytes and the end of its last block.
fn padding(size: u64) -> usize {
    // The remainder is less than `BLOCK`, so the conversion cannot fail.
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
