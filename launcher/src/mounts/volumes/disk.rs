//! The disk of a volume: a file with an ext4 file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use ext4_image::Options;
use host_fs::OsError;
use nix::fcntl::OFlag;
use nix::unistd::{getegid, geteuid};

use super::VolumeError;
use crate::host::state_dir::private_file;
use crate::mounts::scratch::{SHARED_ROOT, random};

/// The name of the disk's file in the directory of the volume.
pub(super) const DISK: &str = "disk";

/// Creates the disk of a volume with an empty file system. Returns the size of the disk in bytes.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn format(directory: &Path, size_bytes: u64) -> Result<u64, OsError> {
    let path = directory.join(DISK);
    let make = || -> io::Result<u64> {
        let file = private_file(&path)?;
        let (root_owner, root_mode) = SHARED_ROOT;
        let options = Options { uuid: random()?, journal: true, root_owner, root_mode };
        ext4_image::format(&file, size_bytes, &options).map_err(io::Error::other)?;
        Ok(file.metadata()?.len())
    };
    make().map_err(OsError::file("make", &path))
}

/// Returns whether a directory contains a disk. Without one it is not a volume.
///
/// # Errors
/// Errors of the operating system. The disk may then exist.
pub(super) fn is_there(directory: &Path) -> Result<bool, OsError> {
    let path = directory.join(DISK);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        found => found.map(|_| true).map_err(OsError::file("look at", path)),
    }
}

/// Opens the disk of a volume.
///
/// # Errors
/// [`VolumeError::Missing`], and errors of the operating system.
pub(super) fn open(directory: &Path, name: &str) -> Result<File, VolumeError> {
    if !is_there(directory)? {
        return Err(VolumeError::Missing(name.to_owned()));
    }
    let path = directory.join(DISK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    Ok(options.open(&path).map_err(OsError::file("open", &path))?)
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

/// Changes the owner of a disk back to this user. If root started the last VM, the disk still belongs to that VM's
/// user.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn take_back(disk: &File) -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    if disk.metadata()?.uid() == user {
        return Ok(());
    }
    fchown(disk, Some(user), Some(group))
}
