//! Detached mounts ([open_tree(2)](https://man7.org/linux/man-pages/man2/open_tree.2.html),
//! [mount_setattr(2)](https://man7.org/linux/man-pages/man2/mount_setattr.2.html),
//! [move_mount(2)](https://man7.org/linux/man-pages/man2/move_mount.2.html)), which `nix` does not support.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::AT_FDCWD;
use nix::libc;

/// The attributes of a mount.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// The user namespace whose id maps apply to the owners of the mount's files.
    pub id_map: Option<BorrowedFd<'a>>,
}

/// Returns a detached copy of the mount at a path.
///
/// # Errors
/// The kernel's error.
pub fn copy(path: &Path) -> nix::Result<OwnedFd> {
    copy_at(AT_FDCWD, path)
}

/// Like [`copy`], but relative to an open directory.
///
/// # Errors
/// The kernel's error.
pub fn copy_at(directory: impl AsFd, path: &Path) -> nix::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    open_tree(directory, &path, 0)
}

/// Returns a detached copy of the mount of an open file or directory, with all mounts below it.
///
/// # Errors
/// The kernel's error.
pub fn copy_all(of: impl AsFd) -> nix::Result<OwnedFd> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    open_tree(of, c"", flags.cast_unsigned())
}

fn open_tree(directory: impl AsFd, path: &CStr, flags: libc::c_uint) -> nix::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | flags;
    let directory = directory.as_fd().as_raw_fd();
    // SAFETY: the path is a C string that outlives the call.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, directory, path.as_ptr(), flags) };
    let fd = RawFd::try_from(Errno::result(fd)?).map_err(|_| Errno::ERANGE)?;
    // SAFETY: the kernel has just made this descriptor, so nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets the attributes of a mount, always with nosuid and nodev.
///
/// # Errors
/// The kernel's error. `EINVAL` for maps if the file system does not support them.
pub fn set_attributes(mount: impl AsFd, attributes: Attributes<'_>) -> nix::Result<()> {
    let Attributes { read_only, id_map } = attributes;
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    let set = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_NOSUID
            | libc::MOUNT_ATTR_NODEV
            | flag(read_only, libc::MOUNT_ATTR_RDONLY)
            | flag(id_map.is_some(), libc::MOUNT_ATTR_IDMAP),
        attr_clr: 0,
        propagation: 0,
        userns_fd: id_map.map_or(0, |it| u64::from(it.as_raw_fd().cast_unsigned())),
    };
    set_attr(mount, 0, &set)
}

/// Makes a mount and all mounts below it read-only, and changes nothing else of them.
///
/// # Errors
/// The kernel's error.
pub fn make_all_read_only(mount: impl AsFd) -> nix::Result<()> {
    let set = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    set_attr(mount, libc::AT_RECURSIVE, &set)
}

fn set_attr(mount: impl AsFd, flags: libc::c_int, set: &libc::mount_attr) -> nix::Result<()> {
    // SAFETY: the empty path is a C string, and `set` a whole `mount_attr` of the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const *set,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop)
}

/// Attaches a copy of the mount at `source` to `target`, an open file or directory.
///
/// # Errors
/// The kernel's error.
pub fn show_copy(source: &Path, read_only: bool, target: impl AsFd) -> nix::Result<()> {
    let copy = copy(source)?;
    set_attributes(&copy, Attributes { read_only, id_map: None })?;
    place(&copy, target)
}

/// Attaches a detached mount to `target`, an open file or directory.
///
/// # Errors
/// The kernel's error.
pub fn place(mount: impl AsFd, target: impl AsFd) -> nix::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths are empty C strings.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            target.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    };
    Errno::result(result).map(drop)
}
