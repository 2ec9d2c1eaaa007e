//! The first content of a volume: what the image has at the volume's path, as docker fills a new volume.
//!
//! Before any program of the box runs, init copies the files of the image into a volume that has none, with their owners,
//! permissions and times. The volume's root directory gets the owner and the permissions of the image's directory. A mark on
//! the root directory ([xattr(7)](https://man7.org/linux/man-pages/man7/xattr.7.html)) records that, so that a volume that a
//! program empties later stays empty. No workload can see or change the mark, because only init has the capability
//! `SYS_ADMIN`.
//!
//! A copy that was interrupted begins again at the next start, from an empty volume.

use std::collections::HashMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use box_contract::{RunPlan, Scope};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, mknod, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::syncfs;
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// The extended attribute with the state of a volume, on its root directory.
const MARK: &str = "trusted.boxbuild.volume";
/// The mark of a volume into which files are being copied.
const FILLING: &[u8] = b"filling";
/// The mark of a volume that gets no files of an image any more.
const USED: &[u8] = b"used";
/// The directory of an ext4 file system for files that a repair has found. Every new volume has it.
const FOUND: &str = "lost+found";

/// Fills the volume that is mounted at `volume`, and that components of the box see at `guest`, unless it was filled or
/// used before.
///
/// # Errors
/// The kernel's error, for example because the volume is full.
pub(crate) fn fill(volume: &Path, guest: &str, scope: Scope, plan: &RunPlan) -> io::Result<()> {
    let is_new = match mark_of(volume)?.as_deref() {
        None => entries(volume)?.is_empty(),
        Some(FILLING) => {
            entries(volume)?.iter().try_for_each(|it| remove(it))?;
            true
        }
        Some(_) => return Ok(()),
    };
    if !is_new {
        return mark(volume, USED);
    }
    // Without such a directory in an image, the volume stays new for a box that has one.
    let Some(image) = image(guest, scope, plan)? else { return Ok(()) };
    mark(volume, FILLING)?;
    Copy::default().content(&path_of(&image), volume)?;
    // The files must not be lost while the mark is kept.
    syncfs(File::open(volume)?)?;
    mark(volume, USED)
}

/// Opens the directory at `guest` in the image of the first component of `scope` that has files there, or else of the first
/// that has the directory.
fn image(guest: &str, scope: Scope, plan: &RunPlan) -> io::Result<Option<OwnedFd>> {
    let mut empty = None;
    for (_, component) in plan.components().filter(|(name, _)| scope.includes(*name)) {
        let Some(found) = open_in(&component.root, guest)? else { continue };
        if fs::read_dir(path_of(&found))?.next().is_some() {
            return Ok(Some(found));
        }
        empty = empty.or(Some(found));
    }
    Ok(empty)
}

/// Opens the directory `path` below `root`, as a program whose root is there does. `None` if there is no directory.
fn open_in(root: &str, path: &str) -> io::Result<Option<OwnedFd>> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let root = nix::fcntl::open(root, flags, Mode::empty())?;
    let rule = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    match openat2(root, path, OpenHow::new().flags(flags).resolve(rule)) {
        Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(None),
        opened => Ok(Some(opened?)),
    }
}

/// Returns a path that leads to an open directory.
fn path_of(directory: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(".")
}

fn mark_of(volume: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut value = [0; 16];
    match getxattr(volume, MARK, &mut value) {
        Ok(length) => Ok(Some(value[..length].to_vec())),
        Err(rustix::io::Errno::NODATA) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn mark(volume: &Path, value: &[u8]) -> io::Result<()> {
    Ok(setxattr(volume, MARK, value, XattrFlags::empty())?)
}

/// Returns the paths of the entries of a volume's root directory.
fn entries(volume: &Path) -> io::Result<Vec<PathBuf>> {
    let all = fs::read_dir(volume)?.map(|entry| Ok(entry?.path()));
    let mut all = all.collect::<io::Result<Vec<_>>>()?;
    all.retain(|path| !path.ends_with(FOUND));
    Ok(all)
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// A copy of directories into an empty directory that nothing else uses.
#[derive(Default)]
struct Copy {
    /// The copies of files with several names, by device and inode.
    linked: HashMap<(u64, u64), PathBuf>,
}

impl Copy {
    /// Copies the content and the attributes of a directory to another one.
    fn content(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            let (from, to) = (from.join(&name), to.join(&name));
            if name != FOUND {
                self.entry(&from, &to).map_err(|error| at(&from, error))?;
            }
        }
        keep_attributes(&fs::metadata(from)?, to)
    }

    /// Copies a file, a link, a directory or a special file to a path at which there is nothing.
    fn entry(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(from)?;
        let kind = found.file_type();
        if kind.is_dir() {
            fs::DirBuilder::new().mode(0o700).create(to)?;
            return self.content(from, to);
        }
        if found.nlink() > 1 {
            if let Some(first) = self.linked.get(&(found.dev(), found.ino())) {
                return fs::hard_link(first, to);
            }
            self.linked.insert((found.dev(), found.ino()), to.to_owned());
        }
        if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(from)?, to)?;
        } else if kind.is_file() {
            io::copy(&mut File::open(from)?, &mut File::create_new(to)?)?;
        } else {
            let kind = SFlag::from_bits_truncate(found.mode()) & SFlag::S_IFMT;
            mknod(to, kind, Mode::empty(), found.rdev())?;
        }
        keep_attributes(&found, to)
    }
}

/// Gives a copy the owner, the permissions and the time of the original.
fn keep_attributes(original: &Metadata, copy: &Path) -> io::Result<()> {
    lchown(copy, Some(original.uid()), Some(original.gid()))?;
    if !original.is_symlink() {
        fs::set_permissions(copy, Permissions::from_mode(original.mode() & 0o7777))?;
    }
    let time = TimeSpec::new(original.mtime(), original.mtime_nsec());
    Ok(utimensat(AT_FDCWD, copy, &time, &time, UtimensatFlags::NoFollowSymlink)?)
}

/// Adds the path below the copied directory to an error, unless the error has it already.
fn at(path: &Path, error: io::Error) -> io::Error {
    if error.get_ref().is_some() {
        return error;
    }
    let path = path.to_string_lossy();
    let inside = path.split_once("/./").map_or(&*path, |(_, inside)| inside);
    io::Error::new(error.kind(), format!("{inside}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_files_with_their_attributes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("from/inner")).unwrap();
        fs::write(at("from/inner/file"), "x").unwrap();
        fs::hard_link(at("from/inner/file"), at("from/same")).unwrap();
        std::os::unix::fs::symlink("/nowhere", at("from/link")).unwrap();
        nix::unistd::mkfifo(&at("from/pipe"), Mode::S_IRUSR).unwrap();
        fs::create_dir(at("from/lost+found")).unwrap();
        fs::set_permissions(at("from/inner/file"), Permissions::from_mode(0o4751)).unwrap();
        fs::set_permissions(at("from/inner"), Permissions::from_mode(0o1711)).unwrap();
        let time = TimeSpec::new(1_000_000, 7);
        for path in ["from/link", "from/inner/file", "from/inner", "from"] {
            let flags = UtimensatFlags::NoFollowSymlink;
            utimensat(AT_FDCWD, &at(path), &time, &time, flags).unwrap();
        }
        fs::create_dir(at("to")).unwrap();
        Copy::default().content(&at("from"), &at("to")).unwrap();
        assert_eq!(fs::read_to_string(at("to/inner/file")).unwrap(), "x");
        for path in ["", "inner", "inner/file", "same", "link", "pipe"] {
            let [one, other] = ["from", "to"].map(|root| {
                let it = fs::symlink_metadata(at(root).join(path)).unwrap();
                (
                    it.mode(),
                    it.uid(),
                    it.gid(),
                    (path != "pipe").then(|| (it.mtime(), it.mtime_nsec())),
                )
            });
            assert_eq!(one, other, "{path}");
        }
        let inode = |path: &str| fs::metadata(at(path)).unwrap().ino();
        assert_eq!(inode("to/same"), inode("to/inner/file"));
        assert_eq!(fs::read_link(at("to/link")).unwrap(), Path::new("/nowhere"));
        assert!(!at("to/lost+found").exists());
        assert_eq!(entries(&at("from")).unwrap().len(), 4);
        entries(&at("to")).unwrap().iter().for_each(|it| remove(it).unwrap());
        assert!(entries(&at("to")).unwrap().is_empty() && at("from/inner/file").exists());
    }

    #[test]
    fn the_directory_of_the_first_image_with_files_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for path in ["a/empty", "b/empty/x", "a/real/y", "b/real"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("/real", root.join("a/link")).unwrap();
        fs::write(root.join("a/file"), "").unwrap();
        let mut plan = crate::plan::parse(crate::plan::tests::EXAMPLE.as_bytes()).unwrap();
        plan.agent.root = root.join("a").display().to_string();
        plan.business = Some(plan.agent.clone());
        plan.business.as_mut().unwrap().root = root.join("b").display().to_string();
        let found = |guest: &str, scope| {
            let found = image(guest, scope, &plan).unwrap()?;
            let path = fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).unwrap();
            Some(path.strip_prefix(&root).unwrap().display().to_string())
        };
        for (guest, scope, expected) in [
            ("/empty", Scope::Both, Some("b/empty")),
            ("/empty", Scope::Agent, Some("a/empty")),
            ("/real", Scope::Both, Some("a/real")),
            ("/real", Scope::Business, Some("b/real")),
            ("/link", Scope::Both, Some("a/real")),
            ("/file", Scope::Both, None),
            ("/file/x", Scope::Both, None),
            ("/none", Scope::Both, None),
        ] {
            assert_eq!(found(guest, scope).as_deref(), expected, "{guest}");
        }
    }
}
