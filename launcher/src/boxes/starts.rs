//! The number of boxes that were started with a state directory. It outlives their records, so that it only increases.

use std::path::{Path, PathBuf};

use host_fs::read::{Links, read_file};

use super::{Boxes, write_file};

/// The file of the number, in the directory of the records.
const NAME: &str = ".starts";
/// The greatest size of the file, in bytes: the digits of the greatest number, and a line end.
pub(super) const MAX_STARTS: u64 = 21;

/// Adds a start. The caller has locked the directory of the records. An error is ignored, because a box must start even if it is
/// not counted.
pub(super) fn count(directory: &Path) {
    let text = format!("{}\n", read(directory).saturating_add(1));
    drop(write_file(&path(directory), text.as_bytes()));
}

impl Boxes {
    /// Returns how many boxes were started, including those whose records were removed.
    pub fn starts(&self) -> u64 {
        read(&self.directory)
    }
}

/// Returns the path of the file in the directory of the records.
pub(super) fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Returns the number in a file. A damaged file counts as 0.
pub(super) fn parse(text: &[u8]) -> u64 {
    str::from_utf8(text).ok().and_then(|it| it.trim_end().parse().ok()).unwrap_or_default()
}

fn read(directory: &Path) -> u64 {
    read_file(&path(directory), Links::Refuse, MAX_STARTS).map_or(0, |text| parse(&text))
}
