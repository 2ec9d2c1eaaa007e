//! The disk for the files that the components of a box write to their roots.
//!
//! A box that can be started again keeps its disk in the directory of its record, with a journal. Any other box has a disk
//! in an unlinked file, which the kernel frees when the VM ends, even after a crash.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::Instant;

use box_contract::rules::MIN_DISK_BYTES;
use box_contract::{RunPlan, size};
use host_fs::OsError;
use host_fs::read::{Links, open_regular};
use vmm::signals::{StopSignals, Stopped};

use crate::host::state_dir::absent;

use super::disk_file::{
    LOOK, PATIENCE, Root, is_there, make_copy, make_kept, make_lost, open, take_back,
};

pub(crate) use super::disk_file::DISK;

/// The size of the disk of a box that does not declare one, in bytes. The disk is smaller on a host with less free space.
pub const DEFAULT_SIZE: u64 = 10 << 30;
/// The oldest version of the protocol whose init mounts the disk.
pub const SINCE: u32 = 9;
/// The owner and the mode of the disk's root directory, which no component sees.
const ROOT: Root = ((0, 0), 0o700);

/// What the command line says about the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskChoice {
    /// The box has no disk: what components write is in memory.
    Memory,
    /// The disk has this size, in bytes.
    Size(u64),
}

impl std::fmt::Display for DiskChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("none"),
            Self::Size(bytes) => f.write_str(&size::written(*bytes)),
        }
    }
}

/// Returns the size of the disk of a box, in bytes; `None` if the box has no disk. `spare` is how much the box may have by
/// default, also in bytes: 0 if the VM has no room for the disk.
pub fn size_for(plan: &RunPlan, choice: Option<DiskChoice>, spare: u64) -> Option<u64> {
    match choice {
        Some(DiskChoice::Memory) => None,
        Some(DiskChoice::Size(bytes)) => Some(whole_mib(bytes)),
        None => {
            let default = whole_mib(spare.min(DEFAULT_SIZE));
            plan.disk_bytes.or((default >= MIN_DISK_BYTES).then_some(default))
        }
    }
}

const fn whole_mib(bytes: u64) -> u64 {
    bytes - bytes % (1 << 20)
}

/// Returns whether a box keeps a disk in the directory of its record.
pub(crate) fn is_kept_in(directory: &Path) -> bool {
    // If that is unknown, the disk may be there.
    is_there(directory).unwrap_or(true)
}

/// Removes the disk in the directory of a box's record, if there is one.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn remove(directory: &Path) -> Result<(), OsError> {
    absent(&directory.join(DISK), |path| std::fs::remove_file(path))
}

/// Makes the disk in one directory a copy of the disk in another one, atomically. A signal ends the copy early.
///
/// # Errors
/// Errors of the operating system.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    signals: &StopSignals,
) -> Result<Result<(), Stopped>, OsError> {
    let path = from.join(DISK);
    let disk = open_regular(&path, Links::Refuse);
    let disk = disk.map_err(|error| OsError::file("open", &path)(error.into()))?;
    make_copy(&disk, to, signals)
}

/// A disk that this process gives to a VM.
#[derive(Debug)]
pub struct RootsDisk {
    /// The open disk, which is locked if it is kept.
    pub(crate) file: File,
    /// The size, in bytes.
    pub(crate) size_bytes: u64,
    /// Whether the disk outlives the VM.
    pub(crate) is_kept: bool,
}

impl RootsDisk {
    /// Makes a disk that is lost when the VM ends, in the file system of `directory`.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn lost(directory: &Path, size_bytes: u64) -> Result<Self, OsError> {
        let file = make_lost(directory, size_bytes, ROOT);
        let file = file.map_err(OsError::file("make the box's disk in", directory))?;
        Ok(Self { file, size_bytes, is_kept: false })
    }

    /// Opens the disk in the directory of a box's record, and locks it until the VM ends. A missing disk is made with
    /// `size_bytes`; one that is there keeps its size.
    ///
    /// # Errors
    /// If the file cannot be created or opened, or if another VM uses it.
    pub fn keep(directory: &Path, size_bytes: u64) -> Result<Self, OsError> {
        if !is_there(directory)? {
            make_kept(directory, size_bytes, ROOT)?;
        }
        Self::open(directory)
    }

    /// Opens the disk in the directory of a box's record, and locks it until the result is dropped and the VM ends.
    ///
    /// # Errors
    /// If the file cannot be opened, or if another VM uses it.
    pub(crate) fn open(directory: &Path) -> Result<Self, OsError> {
        let file = open(directory)?;
        let take = || -> io::Result<u64> {
            lock(&file)?;
            take_back(&file)?;
            Ok(file.metadata()?.len())
        };
        let size_bytes = take().map_err(OsError::file("open", directory.join(DISK)))?;
        Ok(Self { file, size_bytes, is_kept: true })
    }

    /// Returns the size, in bytes.
    pub const fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// Locks the disk until the last process that has `file` open ends.
fn lock(file: &File) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("the VM of the box's last run still uses it"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_decides_then_the_box_and_then_the_host() {
        let mut plan = testkit::test_box::config().plan;
        let (mib, gib) = (1 << 20, 1 << 30);
        assert_eq!(size_for(&plan, None, 100 * gib), Some(10 * gib));
        assert_eq!(size_for(&plan, None, 3 * gib + 5), Some(3 * gib));
        assert_eq!(size_for(&plan, None, 15 * mib), None);
        plan.disk_bytes = Some(20 * gib);
        assert_eq!(size_for(&plan, None, 0), Some(20 * gib));
        assert_eq!(size_for(&plan, Some(DiskChoice::Memory), 0), None);
        assert_eq!(size_for(&plan, Some(DiskChoice::Size(64 * mib)), 0), Some(64 * mib));
        assert_eq!(size_for(&plan, Some(DiskChoice::Size(64 * mib + 5)), 0), Some(64 * mib));
        let written = [DiskChoice::Memory, DiskChoice::Size(3 * gib)].map(|it| it.to_string());
        assert_eq!(written, ["none", "3GiB"]);
    }

    #[test]
    fn a_kept_disk_has_its_size_and_one_user_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RootsDisk::keep(dir.path(), 64 << 20).unwrap();
        assert_eq!((disk.size_bytes(), disk.is_kept), (64 << 20, true));
        let error = RootsDisk::keep(dir.path(), 64 << 20).unwrap_err().to_string();
        assert!(error.ends_with("the VM of the box's last run still uses it"), "{error}");
        drop(disk);
        assert_eq!(RootsDisk::keep(dir.path(), 128 << 20).unwrap().size_bytes(), 64 << 20);
    }
}
