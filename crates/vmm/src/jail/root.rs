//! The root directory of the VMM process: a small file system in memory, with three things of the host's in it.

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
/// Where the sockets are in it.
pub(super) const SOCKETS: &str = "/run";
/// The process's own open files, through which libkrun opens the box's files again.
const FILES: &str = "/proc/self/fd";
const NOTHING_SPECIAL: MountFlags =
    MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

/// Returns a path by which an open file of this process is opened again.
pub fn fd_path(fd: RawFd) -> PathBuf {
    Path::new(FILES).join(fd.to_string())
}

/// Why there is no such root directory.
#[derive(Debug, thiserror::Error)]
pub(super) enum RootError {
    /// The host does not give it.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A directory cannot be shared.
    #[error(transparent)]
    Share(Unshared),
    /// A file of the box is not where it was.
    #[error("{0}")]
    Box(String),
}

/// Makes the root directory over the run's own, and enters it. `files` are opened again, so that nothing of them can be
/// changed through that.
///
/// # Errors
/// The kernel's; the directories that this process sees are then the host's. A directory that cannot be shared.
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
    // In this namespace: nothing is bound that is in another.
    let sockets = directory(&runtime.join(VMM))?;
    // Nothing in it is a program or a device, and there is hardly room for a name.
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
        // The sockets are where they were.
        unmount(runtime, UnmountFlags::DETACH).ok();
    })
}

/// Puts the host's files in.
fn fill(root: &Path, sockets: &File) -> io::Result<()> {
    let below = |path: &str| root.join(path.trim_start_matches('/'));
    for directory in [FILES, "/dev", SOCKETS] {
        fs::create_dir_all(below(directory))?;
    }
    File::create(below(DEVICE))?;
    mount_bind(FILES, below(FILES))?;
    mount_bind(DEVICE, below(DEVICE))?;
    // Whoever is the device's owner, as root is, could change its mode, which a guest asks for that is given directories.
    // To use a device, nothing has to be writable.
    let fixed = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount_remount(below(DEVICE), fixed, c"")?;
    Ok(mount_bind(fd_path(sockets.as_raw_fd()), below(SOCKETS))?)
}

/// Makes a directory the root, and lets go of the former one.
fn change_to(root: &Path) -> io::Result<()> {
    chdir(root)?;
    match pivot_root(".", ".") {
        Ok(()) => unmount(".", UnmountFlags::DETACH)?,
        // The kernel's first root cannot be exchanged (pivot_root(2)): it is covered.
        Err(Errno::INVAL) => {
            mount_move(".", "/")?;
            chroot(".")?;
        }
        Err(error) => return Err(error.into()),
    }
    chdir("/")?;
    Ok(mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | NOTHING_SPECIAL, c"")?)
}
