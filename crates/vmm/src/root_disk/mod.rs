//! The disk of the rootfs: the file of its one part, or several files one after another.
//!
//! Several files are one disk by a VMDK descriptor, which this process writes. libkrun's reader of such descriptors (imago)
//! opens every path that one names. So no file of a box is ever read as a descriptor, and nothing of a box gets into one: its text
//! has numbers of descriptors and of sectors, and is otherwise always the same.

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

/// The bytes of a sector of a VMDK descriptor, whatever the disk's are.
const SECTOR: u64 = 512;
/// What a descriptor begins with. libkrun looks at the version alone.
const HEADER: &str =
    "# Disk DescriptorFile\nversion=1\nCID=ffffffff\nparentCID=ffffffff\ncreateType=\"custom\"\n";
/// Everybody may read the descriptor, and nobody write to it: it is opened again after the change of the user.
const MODE: u32 = 0o444;

/// A part of the rootfs: an inherited descriptor, and the size that the box names in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) fd: RawFd,
    pub(super) size: u64,
}

/// The disk of the rootfs, as libkrun opens it.
#[derive(Debug)]
pub(super) enum RootDisk {
    /// A raw image in one file.
    File(PathBuf),
    /// A VMDK descriptor in memory that names several files, each a raw part of the image.
    Extents(PathBuf),
}

impl RootDisk {
    /// Makes the disk of these parts. A descriptor is written here and never again: the jail lets this process write to no
    /// file and make none. It stays open as long as the process lives.
    ///
    /// # Errors
    /// The kernel's, and for parts that make no disk.
    pub(super) fn of(parts: &[Part]) -> io::Result<Self> {
        match parts {
            [] => Err(io::Error::new(io::ErrorKind::InvalidInput, "the rootfs has no parts")),
            [part] => Ok(Self::File(fd_path(part.fd))),
            parts => Ok(Self::Extents(fd_path(sealed(&descriptor(parts)?)?.into_raw_fd()))),
        }
    }

    /// Attaches the disk to a machine, which can read it.
    ///
    /// # Errors
    /// When libkrun refuses.
    pub(super) fn attach(&self, vm: &mut Vm) -> Result<(), KrunError> {
        match self {
            Self::File(path) => vm.add_disk(c"rootfs", path, DiskMode::ReadOnly),
            Self::Extents(path) => vm.add_extents(c"rootfs", path),
        }
    }
}

/// Returns the text of the descriptor of a disk with these parts.
fn descriptor(parts: &[Part]) -> io::Result<String> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
    let mut text = HEADER.to_owned();
    for Part { fd, size } in parts {
        let number = u32::try_from(*fd).map_err(|_| invalid("a part of the rootfs is not open"))?;
        if *size == 0 || !size.is_multiple_of(SECTOR) {
            return Err(invalid("a part of the rootfs has no whole number of sectors"));
        }
        let sectors = size / SECTOR;
        // To write to a text succeeds.
        writeln!(text, "RDONLY {sectors} FLAT \"/proc/self/fd/{number}\" 0").ok();
    }
    Ok(text)
}

/// Returns a file in memory with a text that nobody can change any more.
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

/// Makes a file in memory that is no program. Kernels before 6.3 know no such ones, and a later one may make no others.
fn memory_file() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(c"rootfs", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(c"rootfs", flags),
        made => made,
    }
}

#[cfg(test)]
mod tests;
