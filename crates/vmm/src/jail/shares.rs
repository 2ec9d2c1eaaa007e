//! The directories of the host that the VMM process serves: bound into its root directory, where nothing else of the
//! host is.
#![allow(unsafe_code)]

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use box_contract::wire::MountSource;
use host_fs::way::Way;
use nix::errno::Errno;
use nix::libc;
use rustix::fs::{OFlags, ResolveFlags, openat2};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use serde::{Deserialize, Serialize};

use super::fd_path;
use super::layer::Unshared;

/// Where those are that can only be read.
pub const READ_ONLY: &str = "/shares/ro";
/// Where the others are.
pub const WRITABLE: &str = "/shares/rw";

/// A directory of the host to be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedShare {
    /// Its path on the host, without links.
    pub path: PathBuf,
    /// The device and the inode that it has.
    pub identity: (u64, u64),
    /// The user and the group that it belongs to.
    pub owner: (u32, u32),
    /// Whether the guest may write to it.
    pub is_writable: bool,
    /// The names of directories in it that the guest may not write to.
    pub kept: Vec<PathBuf>,
}

/// Numbers directories: those of each kind from 0. `None` where there are more than numbers.
pub fn sources<'a>(shares: impl IntoIterator<Item = &'a ServedShare>) -> Option<Vec<MountSource>> {
    let (mut read_only, mut writable) = (0..=u16::MAX, 0..=u8::MAX);
    let source = |share: &ServedShare| match share.is_writable {
        true => writable.next().map(MountSource::Writable),
        false => read_only.next().map(MountSource::ReadOnly),
    };
    shares.into_iter().map(source).collect()
}

/// Returns where the directories are in the VMM process's root, in their order.
pub fn places(shares: &[ServedShare]) -> Vec<(MountSource, PathBuf)> {
    let place = |source| {
        let (parent, number) = match source {
            MountSource::Writable(number) => (WRITABLE, number.into()),
            MountSource::ReadOnly(number) => (READ_ONLY, number),
            MountSource::Disk(_) => return None,
        };
        Some((source, Path::new(parent).join(number.to_string())))
    };
    // Init was told the same numbers, so that there are some.
    sources(shares).into_iter().flatten().filter_map(place).collect()
}

impl ServedShare {
    /// Opens the directory again, name by name, and returns a mount of it that is nowhere yet. A handle of the supervisor's
    /// would be one of another mount namespace, of which nothing can be copied here.
    ///
    /// # Errors
    /// The kernel's, and where another directory is there now: the supervisor has the one open that it means, so that no other
    /// one has its number.
    fn copy(&self) -> io::Result<OwnedFd> {
        let opened = File::from(Way::to(&self.path)?.into_open());
        if identity(&opened.metadata()?) != self.identity {
            return Err(io::Error::other("another directory is at its place now"));
        }
        // Mounts below it come along: an ordinary user may not uncover what they hide.
        copy(&opened, OpenTreeFlags::AT_RECURSIVE, !self.is_writable)
    }
}

/// Opens a file of the box again, by its path, in this mount namespace and on a mount of its own, through which neither
/// its mode nor its times can be changed. The descriptor is the same then.
///
/// # Errors
/// The kernel's, and where another file is there now.
pub(super) fn fix(file: RawFd, path: &Path) -> io::Result<()> {
    let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits();
    let found = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if identity(&found.metadata()?) != identity(&fs::metadata(fd_path(file))?) {
        return Err(io::Error::other("another file is at its place now"));
    }
    let copy = copy(&found, OpenTreeFlags::empty(), true)?;
    let opened = File::open(fd_path(copy.as_raw_fd()))?;
    // SAFETY: both are open, and nothing of this process owns `file`, which was inherited.
    Ok(Errno::result(unsafe { libc::dup2(opened.as_raw_fd(), file) }).map(drop)?)
}

/// Returns the device and the inode of a file.
fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Returns a mount of a file or directory that is nowhere yet, without devices and programs.
fn copy(opened: &File, flags: OpenTreeFlags, read_only: bool) -> io::Result<OwnedFd> {
    let flags = flags
        | OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = open_tree(opened, c"", flags)?;
    restrict(&copy, read_only)?;
    Ok(copy)
}

/// Opens all of them in this mount namespace.
///
/// # Errors
/// The first that cannot be served, and why.
pub fn open(shares: &[ServedShare]) -> Result<Vec<OwnedFd>, Unshared> {
    let open = |share: &ServedShare| {
        share.copy().map_err(|error| Unshared::directory(&share.path, "shared", &error))
    };
    shares.iter().map(open).collect()
}

/// Puts them into a root directory.
///
/// # Errors
/// The kernel's.
pub(super) fn place(root: &Path, copies: &[OwnedFd], shares: &[ServedShare]) -> io::Result<()> {
    for kind in [READ_ONLY, WRITABLE] {
        fs::create_dir_all(below(root, Path::new(kind)))?;
    }
    for (copy, (_, place)) in copies.iter().zip(places(shares)) {
        let place = below(root, &place);
        fs::create_dir(&place)?;
        move_mount(copy, c"", rustix::fs::CWD, &place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    Ok(())
}

/// Makes those directories ones that can only be read that are in one to write to and have to be kept.
///
/// # Errors
/// The first that cannot be kept, and why.
pub(super) fn keep_all(root: &Path, shares: &[ServedShare]) -> Result<(), Unshared> {
    for (share, (_, place)) in shares.iter().zip(places(shares)) {
        for path in &share.kept {
            let kept = directory(&below(root, &place)).and_then(|outer| keep(&outer, path));
            kept.map_err(|error| Unshared::directory(&share.path.join(path), "kept", &error))?;
        }
    }
    Ok(())
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes a directory one that can only be read, in one that can be written. No link leads to another instead.
fn keep(outer: &File, path: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let rule = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let kept = openat2(outer, path, flags, rustix::fs::Mode::empty(), rule)?.into();
    let copy = copy(&kept, OpenTreeFlags::AT_RECURSIVE, true)?;
    let here = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&copy, c"", &kept, c"", here)?)
}

/// Opens a directory to look at it only. A link at its place is something else.
pub(super) fn directory(path: &Path) -> io::Result<File> {
    let flags = (OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Makes a mount, and those below it, one without devices and programs.
fn restrict(mount: &OwnedFd, read_only: bool) -> nix::Result<()> {
    let special = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    let attributes = libc::mount_attr {
        attr_set: special | if read_only { libc::MOUNT_ATTR_RDONLY } else { 0 },
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the empty path is a C string, and `attributes` a whole `mount_attr` of the size given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    Errno::result(result).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_numbered_by_their_kind() {
        let share = |is_writable| ServedShare {
            path: "/a".into(),
            identity: (0, 0),
            owner: (0, 0),
            is_writable,
            kept: Vec::new(),
        };
        let places = places(&[share(false), share(true), share(false)]);
        let places: Vec<_> = places.into_iter().map(|(_, place)| place).collect();
        let expected = ["/shares/ro/0", "/shares/rw/0", "/shares/ro/1"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn a_file_of_the_box_that_was_exchanged_is_not_opened_again() {
        let (opened, other) =
            (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let error = fix(opened.as_raw_fd(), other.path()).unwrap_err();
        assert_eq!(error.to_string(), "another file is at its place now");
    }

    #[test]
    fn a_directory_that_was_exchanged_is_not_shared() {
        let dir = tempfile::tempdir().unwrap();
        let (path, kept) = (dir.path().into(), Vec::new());
        let share = ServedShare { path, identity: (0, 1), owner: (0, 0), is_writable: true, kept };
        let error = open(&[share]).unwrap_err();
        assert!(
            error.to_string().ends_with("cannot be shared: another directory is at its place now"),
            "{error}"
        );
    }
}
