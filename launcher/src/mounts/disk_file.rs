//! The files of disks: sparse files with an ext4 file system that only this user can open.

use std::fs::{self, File, OpenOptions, remove_file};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;
use std::time::Duration;

use ext4_image::Options;
use host_fs::OsError;
use host_fs::publish::FileDraft;
use nix::fcntl::OFlag;
use nix::unistd::{getegid, geteuid};
use vmm::signals::{StopSignals, Stopped};

use super::disk_copy;
use crate::host::state_dir::private_file;

/// The name of a kept disk in its directory.
pub(crate) const DISK: &str = "disk";

/// The name of a disk whose file system is not whole yet.
const DRAFT: &str = "disk.new";

/// How long to wait for a disk that another VM uses: that VM may be about to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// How often to look whether the disk is free.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// The owner (user and group) and the mode of the root directory of a disk.
pub(super) type Root = ((u32, u32), u16);

/// Creates a kept disk with an empty file system and a journal, atomically. Returns the size of the disk in bytes.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn make_kept(directory: &Path, size_bytes: u64, root: Root) -> Result<u64, OsError> {
    let (path, draft) = (directory.join(DISK), directory.join(DRAFT));
    let make = || -> io::Result<u64> {
        // A process that was killed may have left one.
        let file = private_file(&draft)?;
        file.set_len(0)?;
        format(&file, size_bytes, true, root)?;
        fs::rename(&draft, &path)?;
        Ok(file.metadata()?.len())
    };
    make().map_err(OsError::file("make", &path))
}

/// Makes the kept disk of a directory a copy of `from`, atomically: an old disk there is replaced when the copy is whole. The next
/// draft in the directory removes what a killed process has left. A signal ends the copy early.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn make_copy(
    from: &File,
    directory: &Path,
    signals: &StopSignals,
) -> Result<Result<(), Stopped>, OsError> {
    let path = directory.join(DISK);
    let make = || -> io::Result<Result<(), Stopped>> {
        let draft = FileDraft::beside(&path, 0o600)?;
        match disk_copy::copy(from, draft.file(), signals)? {
            Ok(()) => draft.finish_over(&path).map(Ok),
            stopped => Ok(stopped),
        }
    };
    make().map_err(OsError::file("copy a disk to", &path))
}

/// Creates a disk with an empty file system without a journal, in an unlinked file in the file system of `directory`. The
/// kernel frees it when the last process closes it.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn make_lost(directory: &Path, size_bytes: u64, root: Root) -> io::Result<File> {
    let file = unnamed(directory)?;
    format(&file, size_bytes, false, root)?;
    Ok(file)
}

fn format(file: &File, size_bytes: u64, journal: bool, root: Root) -> io::Result<()> {
    let (root_owner, root_mode) = root;
    let options = Options { uuid: random()?, journal, root_owner, root_mode };
    ext4_image::format(file, size_bytes, &options).map_err(io::Error::other)
}

/// Opens the kept disk of a directory. A symbolic link at its path is an error.
///
/// # Errors
/// Errors of the operating system.
pub(super) fn open(directory: &Path) -> Result<File, OsError> {
    let path = directory.join(DISK);
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlag::O_NOFOLLOW.bits());
    options.open(&path).map_err(OsError::file("open", &path))
}

/// Returns whether a directory contains a disk.
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

/// Creates a file that only this user can open, and unlinks it.
fn unnamed(directory: &Path) -> io::Result<File> {
    let name = u64::from_ne_bytes(random::<8>()?);
    let path = directory.join(format!(".scratch-{name:016x}"));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

/// Returns random bytes from the kernel.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
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
