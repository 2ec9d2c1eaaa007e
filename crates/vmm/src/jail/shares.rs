//! The directories of the host that the VMM process serves. Mounts of them are moved into the process's root directory.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use box_contract::wire::MountSource;
use host_fs::kernel::mount_ids_in;
use host_fs::way::Way;
use nix::errno::Errno;
use nix::libc;
use rustix::fs::{OFlags, ResolveFlags, openat2};
use rustix::mount::{MoveMountFlags, OpenTreeFlags, move_mount, open_tree};
use serde::{Deserialize, Serialize};

use super::fd_path;
use super::layer::Unshared;

/// The parent of the read-only shares in the VMM process's root.
pub const READ_ONLY: &str = "/shares/ro";
/// The parent of the writable shares in the VMM process's root.
pub const WRITABLE: &str = "/shares/rw";

/// A directory of the host to be served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedShare {
    /// The path on the host, with all links resolved.
    pub path: PathBuf,
    /// The device and inode number of the directory.
    pub identity: (u64, u64),
    /// The user and the group that own the directory.
    pub owner: (u32, u32),
    /// Whether the guest may write to it.
    pub is_writable: bool,
    /// The files and directories of a writable share that the guest may only read, as paths relative to `path`. The guest can move
    /// neither them nor the directories above them.
    pub kept: Vec<PathBuf>,
    /// The directories of a writable share in which the guest makes no symbolic links, pipes, sockets or devices, and out of which
    /// it moves nothing, as paths relative to `path`. An empty path is the share itself.
    pub guarded: Vec<PathBuf>,
}

/// Numbers the read-only shares and the writable shares, each from 0. Returns `None` if there are more shares than
/// numbers.
pub fn sources<'a>(shares: impl IntoIterator<Item = &'a ServedShare>) -> Option<Vec<MountSource>> {
    let (mut read_only, mut writable) = (0..=u16::MAX, 0..=u8::MAX);
    let source = |share: &ServedShare| match share.is_writable {
        true => writable.next().map(MountSource::Writable),
        false => read_only.next().map(MountSource::ReadOnly),
    };
    shares.into_iter().map(source).collect()
}

/// Returns the number and the path of each share in the VMM process's root, in the order of `shares`. For example, the
/// first read-only share has the path `/shares/ro/0`.
pub fn places(shares: &[ServedShare]) -> Vec<(MountSource, PathBuf)> {
    let place = |source| {
        let (parent, number) = match source {
            MountSource::Writable(number) | MountSource::Together(number) => {
                (WRITABLE, number.into())
            }
            MountSource::ReadOnly(number) => (READ_ONLY, number),
            MountSource::Disk(_) => return None,
        };
        Some((source, Path::new(parent).join(number.to_string())))
    };
    // Init got the same numbers from the supervisor, so `sources` succeeded before.
    sources(shares).into_iter().flatten().filter_map(place).collect()
}

impl ServedShare {
    /// Opens the directory again, one path component after the other, and returns a detached mount
    /// ([open_tree(2)](https://man7.org/linux/man-pages/man2/open_tree.2.html)) of it. A handle from the supervisor
    /// belongs to another mount namespace, from which no mount can be cloned here.
    ///
    /// # Errors
    /// The kernel's error, or that another directory is at the path now. The supervisor keeps the intended directory
    /// open, so no other directory can get its inode number.
    fn copy(&self) -> io::Result<OwnedFd> {
        let opened = File::from(Way::to(&self.path)?.into_open());
        if identity(&opened.metadata()?) != self.identity {
            return Err(io::Error::other("its path leads to another directory now"));
        }
        // The clone includes the mounts below the directory: an ordinary user may not uncover what these mounts hide.
        copy(&opened, OpenTreeFlags::AT_RECURSIVE, !self.is_writable)
    }
}

/// Opens a file of the box again by its path, in this mount namespace, on a separate read-only mount. Through this
/// mount neither the file's mode nor its times can be changed. The descriptor `file` then refers to the file on this
/// mount.
///
/// # Errors
/// The kernel's error, or that another file is at the path now.
pub(super) fn fix(file: RawFd, path: &Path) -> io::Result<()> {
    let flags = (OFlags::PATH | OFlags::NOFOLLOW).bits();
    let found = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if identity(&found.metadata()?) != identity(&fs::metadata(fd_path(file))?) {
        return Err(io::Error::other("its path leads to another file now"));
    }
    let copy = copy(&found, OpenTreeFlags::empty(), true)?;
    let opened = File::open(fd_path(copy.as_raw_fd()))?;
    // SAFETY: both descriptors are open, and `file`, which was inherited, has no owner in this process.
    Ok(Errno::result(unsafe { libc::dup2(opened.as_raw_fd(), file) }).map(drop)?)
}

/// Returns the device and the inode of a file.
fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Returns a detached mount (open_tree(2)) of a file or directory, with nosuid, nodev and noexec. With `read_only`, the
/// mount is also read-only.
fn copy(opened: &File, flags: OpenTreeFlags, read_only: bool) -> io::Result<OwnedFd> {
    let flags = flags
        | OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    let copy = open_tree(opened, c"", flags)?;
    restrict(&copy, read_only)?;
    Ok(copy)
}

/// Opens all shares in this mount namespace.
///
/// # Errors
/// The first share that cannot be served, with the reason.
pub fn open(shares: &[ServedShare]) -> Result<Vec<OwnedFd>, Unshared> {
    let open = |share: &ServedShare| {
        share.copy().map_err(|error| Unshared::directory(&share.path, "shared", &error))
    };
    shares.iter().map(open).collect()
}

/// Moves the mounts of the shares (`copies`) into the root directory `root`.
///
/// # Errors
/// The kernel's error.
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

/// Remounts the kept files and directories of writable shares read-only. Also remounts the directories above them and the guarded
/// ones, because a mount point cannot be moved, and nothing is moved or linked from one mount to another
/// ([rename(2)](https://man7.org/linux/man-pages/man2/rename.2.html)).
///
/// # Errors
/// The first file or directory that cannot be remounted, with the reason.
pub(super) fn keep_all(root: &Path, shares: &[ServedShare]) -> Result<(), Unshared> {
    for (share, (_, place)) in shares.iter().zip(places(shares)) {
        // A mount over a directory would hide an earlier mount in it.
        let above = above(share).into_iter().map(|path| (path, false));
        for (path, read_only) in above.chain(share.kept.iter().map(|it| (it.as_path(), true))) {
            let outer = directory(&below(root, &place));
            let kept = outer.and_then(|outer| remount(&outer, path, read_only));
            kept.map_err(|error| Unshared::directory(&share.path.join(path), "kept", &error))?;
        }
    }
    Ok(())
}

/// Returns the guarded directories, and those above them and above what is kept, each before those in it.
fn above(share: &ServedShare) -> BTreeSet<&Path> {
    let kept = share.kept.iter().flat_map(|it| it.ancestors().skip(1));
    let all = kept.chain(share.guarded.iter().flat_map(|it| it.ancestors()));
    all.filter(|it| !it.as_os_str().is_empty()).collect()
}

/// Returns the ids of the mounts of all guarded directories, below the root directory `root`. Includes what was mounted in them
/// before.
///
/// # Errors
/// The kernel's error, or a guarded directory is no mount.
pub(super) fn guarded(root: &Path, shares: &[ServedShare]) -> Result<Vec<u64>, Unshared> {
    let mut ids = Vec::new();
    for (share, (_, place)) in shares.iter().zip(places(shares)) {
        for path in &share.guarded {
            let find = || -> io::Result<Vec<u64>> {
                // The components leave out the slash that an empty path adds.
                let place = below(&root.canonicalize()?, &place)
                    .join(path)
                    .components()
                    .collect::<PathBuf>();
                let found = mount_ids_in(&place)?;
                if found.is_empty() { Err(io::Error::other("it is no mount")) } else { Ok(found) }
            };
            let found = find()
                .map_err(|error| Unshared::directory(&share.path.join(path), "guarded", &error))?;
            ids.extend(found);
        }
    }
    Ok(ids)
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Mounts `path`, a file or a directory of the writable share `outer`, over itself. Refuses symbolic links in `path`.
fn remount(outer: &File, path: &Path, read_only: bool) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let rule = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let kept = openat2(outer, path, flags, rustix::fs::Mode::empty(), rule)?.into();
    let copy = copy(&kept, OpenTreeFlags::AT_RECURSIVE, read_only)?;
    let here = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(&copy, c"", &kept, c"", here)?)
}

/// Opens a directory with `O_PATH`. A symbolic link at the path is an error.
pub(super) fn directory(path: &Path) -> io::Result<File> {
    let flags = (OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW).bits();
    OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path)
}

/// Sets nosuid, nodev and noexec on a mount and on the mounts below it. With `read_only`, also makes them read-only.
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

    fn share(is_writable: bool) -> ServedShare {
        let (kept, guarded) = (Vec::new(), Vec::new());
        let (path, identity) = ("/a".into(), (0, 0));
        ServedShare { path, identity, owner: (0, 0), is_writable, kept, guarded }
    }

    #[test]
    fn directories_are_numbered_by_their_kind() {
        let places = places(&[share(false), share(true), share(false)]);
        let places: Vec<_> = places.into_iter().map(|(_, place)| place).collect();
        let expected = ["/shares/ro/0", "/shares/rw/0", "/shares/ro/1"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn directories_above_what_is_kept_come_before_those_in_them() {
        let kept = [".git/modules/a/hooks", ".git/hooks", "kept"].map(PathBuf::from).into();
        let share = ServedShare { kept, guarded: vec![".git".into(), "a/b".into()], ..share(true) };
        let above: Vec<_> = above(&share).into_iter().collect();
        assert_eq!(above, [".git", ".git/modules", ".git/modules/a", "a", "a/b"].map(Path::new));
        let error = guarded(Path::new("/"), &[share]).unwrap_err().to_string();
        assert_eq!(error, "/a/.git cannot be guarded: it is no mount");
    }

    #[test]
    fn a_file_of_the_box_that_was_exchanged_is_not_opened_again() {
        let (opened, other) =
            (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let error = fix(opened.as_raw_fd(), other.path()).unwrap_err();
        assert_eq!(error.to_string(), "its path leads to another file now");
    }

    #[test]
    fn a_directory_that_was_exchanged_is_not_shared() {
        let dir = tempfile::tempdir().unwrap();
        let share = ServedShare { path: dir.path().into(), identity: (0, 1), ..share(true) };
        let error = open(&[share]).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("cannot be shared: its path leads to another directory now"),
            "{error}"
        );
    }
}
