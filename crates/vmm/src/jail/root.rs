//! The root directory of the VMM process: a small tmpfs with three entries of the host.

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

/// Returns a path by which an open file of this process is opened again.
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

/// Makes the root directory over the run's directory, and enters it. `files` are opened again on read-only mounts, so
/// that their modes and times cannot be changed either.
///
/// # Errors
/// The kernel's error, after which this process still sees the host's directories, or a directory that cannot be shared.
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
    // The sockets are opened in this mount namespace, because a bind mount from another one fails.
    let sockets = directory(&runtime.join(VMM))?;
    // The tmpfs has no programs and no devices, and hardly space for another name.
    let options = format!("mode=755,size=16k,nr_inodes={}", 19 + shares.len());
    let options = CString::new(options).map_err(io::Error::from)?;
    mount("tmpfs", runtime, "tmpfs", NOTHING_SPECIAL, &*options).map_err(io::Error::from)?;
    let filled = fill(runtime, &sockets).and_then(|()| match shares {
        [] => Ok(()),
        shares => shares::place(runtime, &copies, shares),
    });
    let kept = filled.map_err(RootError::System).and_then(|()| {
        shares::keep_all(runtime, shares).map_err(RootError::Share)?;
        Ok(change_to(runtime)?)
    });
    kept.inspect_err(|_| {
        // The path of the sockets stays valid.
        unmount(runtime, UnmountFlags::DETACH).ok();
    })
}

/// Adds the host's entries to the root directory.
fn fill(root: &Path, sockets: &File) -> io::Result<()> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    for directory in [FILES, "/dev", SOCKETS] {
        fs::create_dir_all(below(directory))?;
    }
    File::create(below(DEVICE))?;
    mount_bind(FILES, below(FILES))?;
    mount_bind(DEVICE, below(DEVICE))?;
    // The owner of the device, such as root, could change its mode, and a guest with shares can ask for that. A
    // read-only mount forbids it; using a device needs no write access to the mount.
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
