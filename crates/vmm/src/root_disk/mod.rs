//! The disk of the rootfs: one file, or several concatenated files.
//!
//! A VMDK descriptor, which this process writes, joins several files to one disk. libkrun's reader of such descriptors
//! (imago) opens every path in them. So no file of a box is ever read as a VMDK descriptor, and no data of a box is
//! written to one: its text is constant except for file descriptor numbers and sector counts.

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::fd::{IntoRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::jail::fd_path;
use crate::krun::{DiskMode, KrunError, Vm};

/// The unit of sizes in a VMDK descriptor, in bytes. It is independent of the disk's sector size.
const SECTOR: u64 = 512;
/// The first lines of a VMDK descriptor. libkrun reads only the version.
const HEADER: &str =
    "# Disk DescriptorFile\nversion=1\nCID=ffffffff\nparentCID=ffffffff\ncreateType=\"custom\"\n";
/// The mode of the VMDK descriptor. All users may read it, because the process opens it again as another user. No user
/// may write to it.
const MODE: u32 = 0o444;

/// A part of the rootfs: an inherited descriptor, and its size in the box's manifest, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) fd: RawFd,
    pub(super) size: u64,
}

/// The disk of the rootfs, as libkrun opens it.
#[derive(Debug)]
pub(super) enum RootDisk {
    /// A raw disk in one file.
    File(PathBuf),
    /// A VMDK descriptor in memory that lists several raw files.
    Extents(PathBuf),
}

impl RootDisk {
    /// Makes the disk from these parts. Must be called before the process enters the jail, which forbids writing to
    /// files. The VMDK descriptor stays open until the process ends.
    ///
    /// # Errors
    /// The kernel's error, or parts that do not form a disk.
    pub(super) fn of(parts: &[Part]) -> io::Result<Self> {
        match parts {
            [] => Err(io::Error::new(io::ErrorKind::InvalidInput, "the rootfs has no parts")),
            [part] => Ok(Self::File(fd_path(part.fd))),
            parts => Ok(Self::Extents(fd_path(sealed(&descriptor(parts)?)?.into_raw_fd()))),
        }
    }

    /// Attaches the disk to a VM, read-only.
    ///
    /// # Errors
    /// If libkrun refuses.
    pub(super) fn attach(&self, vm: &mut Vm) -> Result<(), KrunError> {
        match self {
            Self::File(path) => vm.add_disk(c"rootfs", path, DiskMode::ReadOnly),
            Self::Extents(path) => vm.add_extents(c"rootfs", path),
        }
    }
}

/// Returns the text of the VMDK descriptor for these parts.
fn descriptor(parts: &[Part]) -> io::Result<String> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let mut text = HEADER.to_owned();
    for Part { fd, size } in parts {
        let number = u32::try_from(*fd).map_err(|_| invalid("a part of the rootfs is not open"))?;
        if *size == 0 || !size.is_multiple_of(SECTOR) {
            return Err(invalid("a part of the rootfs has no whole number of sectors"));
        }
        let sectors = size / SECTOR;
        // Writing to a string cannot fail.
        writeln!(text, "RDONLY {sectors} FLAT \"/proc/self/fd/{number}\" 0").ok();
    }
    Ok(text)
}

/// Returns a sealed file in memory ([memfd_create(2)](https://man7.org/linux/man-pages/man2/memfd_create.2.html))
/// with this text.
fn sealed(text: &str) -> io::Result<OwnedFd> {
    let mut file = File::from(memory_file()?);
    file.write_all(text.as_bytes())?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    let seals = SealFlag::F_SEAL_WRITE
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals))?;
    Ok(file.into())
}

/// Makes a file in memory that cannot be executed. Kernels before 6.3 do not support `MFD_NOEXEC_SEAL`, and later
/// ones may require it.
fn memory_file() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"rootfs", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"rootfs", flags),
        made => made,
    }
}

#[cfg(test)]
mod tests;
