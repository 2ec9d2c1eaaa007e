//! The root directory of the VMM process: a small tmpfs with mounts of `/dev/kvm`, the process's open files, the
//! directory of its sockets, and the shares.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_move,
    mount_remount, unmount,
};
use rustix::process::{chdir, chroot, pivot_root};

use super::layer::Unshared;
use super::links;
use super::shares::{self, ServedShare, directory, fix};
use crate::runtime_dir::VMM;

/// The device of KVM.
pub const DEVICE: &str = "/dev/kvm";
/// The directory of the sockets, in the new root.
pub(super) const SOCKETS: &str = "/run";
/// The open files of this process. libkrun opens the box's files again through this directory.
const FILES: &str = "/proc/self/fd";
const NOTHING_SPECIAL: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Returns the path by which this process opens one of its open files again.
pub fn fd_path(fd: RawFd) -> PathBuf {
    Path::new(FILES).join(fd.to_string())
}

/// Why the root directory could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RootError {
    /// The kernel refused a call.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A directory cannot be shared.
    #[error(transparent)]
    Share(Unshared),
    /// A file of the box is no longer at its path.
    #[error("{0}")]
    Box(String),
}

/// Mounts the root directory over the run's directory `runtime`, and enters it. Opens `files` again on read-only
/// mounts, so that not even their modes and times can be changed.
///
/// # Errors
/// The kernel's error, or the reason why a directory cannot be shared. After an error this process still has the host's
/// root.
pub(super) fn enter(
    runtime: &Path,
    shares: &[ServedShare],
    files: &[RawFd],
) -> Result<(), RootError> {
    let paths = files.iter().map(|file| fs::read_link(fd_path(*file)));
    let paths = paths.collect::<io::Result<Vec<_>>>()?;
    unshare(CloneFlags::CLONE_NEWNS).map_err(io::Error::from)?;
    let recursively = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", recursively).map_err(io::Error::from)?;
    let copies = shares::open(shares).map_err(RootError::Share)?;
    for (file, path) in files.iter().zip(&paths) {
        fix(*file, path).map_err(|error| {
            RootError::Box(format!("{} cannot be opened again: {error}", path.display()))
        })?;
    }
    // The sockets' directory is opened only after `unshare`, because a descriptor from the old mount namespace cannot be
    // the source of a bind mount.
    let sockets = directory(&runtime.join(VMM))?;
    // The tmpfs is mounted nodev and noexec, and has hardly space for another entry.
    let options = format!("mode=755,size=16k,nr_inodes={}", 19 + shares.len());
    let options = CString::new(options).map_err(io::Error::from)?;
    mount("tmpfs", runtime, "tmpfs", NOTHING_SPECIAL, &*options).map_err(io::Error::from)?;
    let filled = fill(runtime, &sockets).and_then(|()| match shares {
        [] => Ok(()),
        shares => shares::place(runtime, &copies, shares),
    });
    let kept = filled.map_err(RootError::System).and_then(|()| {
        shares::keep_all(runtime, shares).map_err(RootError::Share)?;
        links::guard(shares::guarded(runtime, shares).map_err(RootError::Share)?);
        Ok(change_to(runtime)?)
    });
    kept.inspect_err(|_| {
        // The caller may start the VM without the new root. It then uses the sockets' directory by its path on the host, so
        // the tmpfs that covers this directory is unmounted.
        unmount(runtime, UnmountFlags::DETACH).ok();
    })
}

/// Bind-mounts `/proc/self/fd`, `/dev/kvm` and the sockets' directory in the new root.
fn fill(root: &Path, sockets: &File) -> io::Result<()> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    for directory in [FILES, "/dev", SOCKETS] {
        fs::create_dir_all(below(directory))?;
    }
    File::create(below(DEVICE))?;
    mount_bind(FILES, below(FILES))?;
    mount_bind(DEVICE, below(DEVICE))?;
    // This process may own the device. If a share is writable, the system call filter allows chmod(2), so a guest that
    // breaks out could change the device's mode. On a read-only mount it cannot, and the device can still be used.
    let fixed = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_remount(below(DEVICE), fixed, c"")?;
    Ok(mount_bind(fd_path(sockets.as_raw_fd()), below(SOCKETS))?)
}

/// Makes a directory the root, and detaches the former root.
fn change_to(root: &Path) -> io::Result<()> {
    chdir(root)?;
    match pivot_root(".", ".") {
        Ok(()) => unmount(".", UnmountFlags::DETACH)?,
        // The initial ramfs cannot be replaced
        // ([pivot_root(2)](https://man7.org/linux/man-pages/man2/pivot_root.2.html)). The new root covers it instead.
        Err(Errno::INVAL) => {
            mount_move(".", "/")?;
            chroot(".")?;
        }
        Err(error) => return Err(error.into()),
    }
    chdir("/")?;
    Ok(mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | NOTHING_SPECIAL, c"")?)
}
