//! The disk of a volume.

use std::fs::File;
use std::path::Path;

use host_fs::OsError;

use super::VolumeError;
use crate::mounts::disk_file::{self, is_there};

/// Opens the disk of a volume.
///
/// # Errors
/// [`VolumeError::Missing`], and errors of the operating system.
pub(super) fn open(directory: &Path, name: &str) -> Result<File, VolumeError> {
    if !is_there(directory)? {
        return Err(VolumeError::Missing(name.to_owned()));
    }
    Ok(disk_file::open(directory)?)
}

/// Checks that a disk still has the size in its record, because its file system relies on that size.
///
/// # Errors
/// [`VolumeError::Damaged`].
pub(super) fn check_size(disk: &File, name: &str, size_bytes: u64) -> Result<(), VolumeError> {
    let found = disk.metadata().map_err(OsError::system("look at a volume's disk"))?.len();
    if found == size_bytes {
        return Ok(());
    }
    let reason = format!("its disk has {found} bytes, and was made with {size_bytes}");
    Err(VolumeError::Damaged { name: name.to_owned(), reason })
}
