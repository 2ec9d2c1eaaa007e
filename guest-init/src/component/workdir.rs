//! The working directory. The holder makes it before any workload runs, and each workload enters it with the workload's
//! rights.
//!
//! The image's configuration and symbolic links determine its path. Links may refer to any path in the component's
//! root. The kernel's *magic links* (`/proc/self/fd/5`, `/proc/1/root`) can lead out of every root, and are never
//! followed ([openat2(2)](https://man7.org/linux/man-pages/man2/openat2.2.html), `RESOLVE_NO_MAGICLINKS`). A plan whose
//! working directory is textually in `/proc`, `/sys` or `/dev` has been refused before (`RunPlan::check`).

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use box_contract::User;
use box_contract::plan::can_be_kept;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Gid, Uid, fchdir, fchownat, getcwd};

use crate::error::{InitError, Step as _};
use crate::sys::mounts::{self, Attributes};

/// Makes the working directory and its missing parents. A new directory belongs to `user`. Must be called before a
/// program of the component runs, which could redirect the path.
///
/// # Errors
/// The kernel's error, with the directory. "Too many symbolic links" for a magic link.
pub(crate) fn make(workdir: &str, user: &User) -> Result<(), InitError> {
    try_make(Path::new(workdir), user).step_with(|| format!("make the working directory {workdir}"))
}

fn try_make(workdir: &Path, user: &User) -> nix::Result<()> {
    let (at, made) = open_or_make_all(workdir)?;
    if made {
        let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
        fchownat(&at, "", Some(uid), Some(gid), AtFlags::AT_EMPTY_PATH)?;
    }
    Ok(())
}

/// Opens a directory by its absolute path, and makes it and its missing parents. Returns `true` if the directory itself
/// was made.
///
/// # Errors
/// The kernel's error. "Too many symbolic links" for a magic link.
fn open_or_make_all(directory: &Path) -> nix::Result<(OwnedFd, bool)> {
    let mut at = open(AT_FDCWD, Path::new("/"))?;
    let mut made = false;
    for name in directory.components().filter(|component| *component != Component::RootDir) {
        (at, made) = open_or_make(at.as_fd(), Path::new(&name))?;
    }
    Ok((at, made))
}

/// Opens the directory `name` in `at`, and makes it if it is missing. Returns `true` if it was made.
fn open_or_make(at: BorrowedFd<'_>, name: &Path) -> nix::Result<(OwnedFd, bool)> {
    match open(at, name) {
        Err(Errno::ENOENT) => {
            let made = match mkdirat(at, name, Mode::from_bits_truncate(0o755)) {
                Ok(()) => true,
                // The other component has made it meanwhile, in a directory that both components see.
                Err(Errno::EEXIST) => false,
                Err(error) => return Err(error),
            };
            Ok((open(at, name)?, made))
        }
        opened => Ok((opened?, false)),
    }
}

/// Returns the path of the working directory without symbolic links. Like [`make`], must be called before a program of the
/// component runs.
///
/// # Errors
/// The kernel's error, with the directory.
pub(crate) fn resolved(workdir: &str) -> Result<PathBuf, InitError> {
    std::fs::canonicalize(workdir).step_with(|| format!("find the working directory {workdir}"))
}

/// Returns a detached mount of the working directory, without what is mounted in it. `workdir` is the path that [`resolved`] has
/// returned. Programs of the component have run meanwhile, so no link of this path is followed.
///
/// # Errors
/// What the programs have put in the place of the directory, or the kernel's error.
pub(crate) fn detached(workdir: &Path) -> Result<OwnedFd, InitError> {
    let step = || format!("take over the working directory {}", workdir.display());
    if !workdir.to_str().is_some_and(can_be_kept) {
        return Err("it is a directory of the system").step_with(step);
    }
    let detach = || -> nix::Result<OwnedFd> {
        let directory = open_without_links(AT_FDCWD, workdir)?;
        let mount = mounts::copy_at(&directory, Path::new("."))?;
        mounts::set_attributes(&mount, Attributes { read_only: false, id_map: None })?;
        Ok(mount)
    };
    detach().map_err(why_not_kept).step_with(step)
}

/// Opens a directory. A symbolic link in its path is an error, and so is another mount.
fn open_without_links(at: impl AsFd, path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_XDEV);
    openat2(at, path, how)
}

/// Returns what programs have put in the place of the working directory.
fn why_not_kept(error: Errno) -> &'static str {
    match error {
        Errno::ELOOP => "a symbolic link is in its place",
        Errno::ENOTDIR => "a file is in its place",
        Errno::ENOENT => "it does not exist any more",
        Errno::EXDEV => "a symbolic link of the image leads to it from another mount",
        error => error.desc(),
    }
}

/// Enters the working directory. The process must have only its workload's rights and files.
///
/// # Errors
/// The kernel's error, with the directory. A directory outside of the component's root is an error, too.
pub(crate) fn enter(workdir: &OsStr) -> Result<(), InitError> {
    let step = || format!("enter the working directory {}", workdir.display());
    let directory = open(AT_FDCWD, Path::new(workdir)).step_with(step)?;
    fchdir(directory).step_with(step)?;
    // The kernel prefixes a directory that is unreachable from the root with "(unreachable)"
    // ([getcwd(2)](https://man7.org/linux/man-pages/man2/getcwd.2.html)).
    let reached = getcwd().step_with(step)?;
    if reached.has_root() {
        return Ok(());
    }
    Err("it is outside the component's root").step_with(step)
}

fn open(at: impl AsFd, path: &Path) -> nix::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_MAGICLINKS);
    openat2(at, path, how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("box-init-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap();
        path
    }

    fn own_user(directory: &Path) -> User {
        let found = fs::metadata(directory).unwrap();
        User { uid: found.uid(), gid: found.gid(), groups: Vec::new() }
    }

    #[test]
    fn what_is_missing_is_made_through_ordinary_links() {
        let root = scratch("workdir-made");
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("link")).unwrap();
        let (workdir, user) = (root.join("link/a/b"), own_user(&root));
        try_make(&workdir, &user).unwrap();
        assert!(root.join("real/a/b").is_dir());
        try_make(&workdir, &user).unwrap();
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(try_make(&root.join("file/x"), &user), Err(Errno::ENOTDIR));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_working_directory_that_programs_have_replaced_is_not_taken_over() {
        let root = fs::canonicalize(scratch("workdir-kept")).unwrap();
        let open = File::open(&root).unwrap();
        let of =
            |path: &str| open_without_links(&open, Path::new(path)).map(drop).map_err(why_not_kept);
        fs::create_dir_all(root.join("real/work")).unwrap();
        symlink("real", root.join("parent")).unwrap();
        symlink("real/work", root.join("work")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        for (path, reason) in [
            ("work", "a symbolic link is in its place"),
            ("parent/work", "a symbolic link is in its place"),
            ("file", "a file is in its place"),
            ("gone", "it does not exist any more"),
        ] {
            assert_eq!(of(path), Err(reason), "{path}");
        }
        assert_eq!(of("real/work"), Ok(()));
        let failed = detached(Path::new("/usr")).unwrap_err().to_string();
        assert_eq!(failed, "take over the working directory /usr: it is a directory of the system");
        assert_eq!(resolved(root.join("work").to_str().unwrap()).unwrap(), root.join("real/work"));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn magic_links_are_never_followed() {
        let root = scratch("workdir-magic");
        let open = File::open(&root).unwrap();
        let magic = format!("/proc/self/fd/{}", open.as_raw_fd());
        symlink(&magic, root.join("link")).unwrap();
        assert!(root.join("link").is_dir(), "it could be followed");
        let user = own_user(&root);
        for path in [PathBuf::from(magic), root.join("link"), root.join("link/below")] {
            assert_eq!(try_make(&path, &user), Err(Errno::ELOOP), "{}", path.display());
            let error = enter(path.as_os_str()).unwrap_err();
            assert!(error.report().step.starts_with("enter the working directory"), "{error}");
            assert!(error.report().message.contains("ELOOP"), "{error}");
        }
        assert!(!root.join("below").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
