//! The symbolic links, pipes, sockets and devices that the guest asks libkrun's file server to make.
//!
//! The file server makes them with `symlinkat` and `mknodat` of the C library. This module defines both functions for the whole
//! program, in place of the C library's, and refuses what a program of the host could follow out of a *guarded* directory: the
//! repository of a project, into which git writes as the user of the host. The filter of system calls lets only these two
//! definitions through ([`PERMIT`]), so a program that was linked in another way makes no link at all.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::libc::{self, dev_t, mode_t};
use rustix::fs::{AtFlags, StatxFlags, statx};

/// The additional last argument of the system calls `symlinkat` and `mknodat` of this module. The kernel ignores
/// it. It is no secret: it shows that a call is made on purpose.
pub const PERMIT: u64 = 0x626f_785f_6c69_6e6b;
/// The link with which `git init` tests whether a file system has symbolic links (`create_default_files` in git's
/// `setup.c`). If it cannot make that link, git writes `core.symlinks=false` into the new repository, for example of a submodule.
const TEST_TARGET: &[u8] = b"testing";
/// The target that this link gets instead. It leads nowhere, so no program writes through the link, whatever its name is later.
pub const NOWHERE: &CStr = c"/dev/null/testing";

/// The ids of the mounts that are guarded. Not set in a process that serves no directories.
static GUARDED: OnceLock<Vec<u64>> = OnceLock::new();

/// Refuses links and special files on these mounts from now on. A mount, and not a path, is guarded, because the kernel moves nothing
/// from one mount to another, and a program of the host may rename a directory.
pub(super) fn guard(mounts: Vec<u64>) {
    // A process enters a jail once, so nothing was set before.
    GUARDED.get_or_init(|| mounts);
}

/// The mount on which a guest wants to make an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mount {
    /// Anything may be made there.
    Open,
    /// Only directories and regular files may be made there.
    Guarded,
}

impl Mount {
    /// Finds the mount of the entry `name` of an open directory. `guarded` are the ids of the guarded mounts.
    ///
    /// # Errors
    /// `EPERM` for a name that no kernel sends, because it could lead elsewhere.
    fn of(guarded: &[u64], directory: c_int, name: &CStr) -> Result<Self, Errno> {
        if name.to_bytes().contains(&b'/') {
            return Err(Errno::EPERM);
        }
        // A directory whose mount is not known counts as guarded.
        let is_guarded =
            !guarded.is_empty() && mount_of(directory).is_none_or(|it| guarded.contains(&it));
        Ok(if is_guarded { Self::Guarded } else { Self::Open })
    }

    /// Returns the target with which a link is made.
    ///
    /// # Errors
    /// `EPERM` if no link may be made.
    fn target<'a>(self, target: &'a CStr, name: &CStr) -> Result<&'a CStr, Errno> {
        match self {
            Self::Open => Ok(target),
            Self::Guarded if is_test(target, name) => Ok(NOWHERE),
            Self::Guarded => Err(Errno::EPERM),
        }
    }

    /// Checks the mode of a file that is about to be made.
    ///
    /// # Errors
    /// `EPERM` if no such file may be made.
    fn check_mode(self, mode: mode_t) -> Result<(), Errno> {
        let is_plain = matches!(mode & libc::S_IFMT, 0 | libc::S_IFREG);
        if self == Self::Open || is_plain { Ok(()) } else { Err(Errno::EPERM) }
    }
}

/// Returns the id of the mount on which an open directory is.
fn mount_of(directory: c_int) -> Option<u64> {
    if directory < 0 {
        return None;
    }
    // SAFETY: the number is not -1, and a descriptor that is not open is an error of the kernel.
    let directory = unsafe { BorrowedFd::borrow_raw(directory) };
    let found = statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(found.stx_mask)
        .contains(StatxFlags::MNT_ID)
        .then_some(found.stx_mnt_id)
}

/// Returns whether a link is the test link ([`TEST_TARGET`]). Its name is `t` and six random letters and digits.
fn is_test(target: &CStr, name: &CStr) -> bool {
    let is_name = matches!(name.to_bytes(), [b't', rest @ ..] if rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric));
    target.to_bytes() == TEST_TARGET && is_name
}

/// Replaces [symlinkat(2)](https://man7.org/linux/man-pages/man2/symlinkat.2.html) of the C library.
///
/// # Safety
/// `target` and `name` are C strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn symlinkat(
    target: *const c_char,
    directory: c_int,
    name: *const c_char,
) -> c_int {
    let Some(guarded) = GUARDED.get() else {
        // SAFETY: the caller's promise.
        return unsafe { make_link(target, directory, name) };
    };
    // SAFETY: the caller's promise.
    let wanted = unsafe { CStr::from_ptr(target) };
    // SAFETY: the caller's promise.
    let called = unsafe { CStr::from_ptr(name) };
    let mount = Mount::of(guarded, directory, called);
    match mount.and_then(|it| it.target(wanted, called)) {
        // SAFETY: both are C strings.
        Ok(target) => unsafe { make_link(target.as_ptr(), directory, name) },
        Err(error) => refused(error),
    }
}

/// Replaces [mknodat(2)](https://man7.org/linux/man-pages/man2/mknodat.2.html) of the C library.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn mknodat(
    directory: c_int,
    name: *const c_char,
    mode: mode_t,
    device: dev_t,
) -> c_int {
    if let Some(guarded) = GUARDED.get() {
        // SAFETY: the caller's promise.
        let called = unsafe { CStr::from_ptr(name) };
        let mount = Mount::of(guarded, directory, called);
        if let Err(error) = mount.and_then(|it| it.check_mode(mode)) {
            return refused(error);
        }
    }
    // SAFETY: the kernel checks the arguments. The last one is not part of the call.
    let made = unsafe { libc::syscall(libc::SYS_mknodat, directory, name, mode, device, PERMIT) };
    if made == 0 { 0 } else { -1 }
}

/// Makes a link with the system call.
///
/// # Safety
/// Both pointers are C strings.
unsafe fn make_link(target: *const c_char, directory: c_int, name: *const c_char) -> c_int {
    // SAFETY: the kernel checks the arguments. The last one is not part of the call.
    let made = unsafe { libc::syscall(libc::SYS_symlinkat, target, directory, name, PERMIT) };
    if made == 0 { 0 } else { -1 }
}

/// Fails as a function of the C library does.
fn refused(error: Errno) -> c_int {
    error.set();
    -1
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::fd::AsRawFd as _;
    use std::path::Path;

    use super::*;

    #[test]
    fn only_files_and_directories_are_made_on_a_guarded_mount() {
        let dir = tempfile::tempdir().unwrap();
        let opened = File::open(dir.path()).unwrap();
        let id = mount_of(opened.as_raw_fd()).unwrap();
        let place = |guarded: &[u64], name| Mount::of(guarded, opened.as_raw_fd(), name);
        assert_eq!(place(&[1, id], c"HEAD"), Ok(Mount::Guarded));
        assert_eq!(place(&[id + 1], c"HEAD"), Ok(Mount::Open));
        assert_eq!(place(&[], c"HEAD"), Ok(Mount::Open));
        for name in [c".git/logs/HEAD", c"../HEAD", c"/HEAD"] {
            assert_eq!(place(&[id + 1], name), Err(Errno::EPERM), "{name:?}");
            assert_eq!(place(&[], name), Err(Errno::EPERM), "{name:?}");
        }
        for none in [-1, libc::AT_FDCWD, c_int::MAX] {
            assert_eq!(Mount::of(&[id], none, c"HEAD"), Ok(Mount::Guarded), "{none}");
        }
    }

    #[test]
    fn git_may_test_for_links_with_one_that_leads_nowhere() {
        let target = |target, name| Mount::Guarded.target(target, name);
        assert_eq!(target(c"testing", c"tAb3dEf"), Ok(NOWHERE));
        for (wanted, name) in [
            (c"testing", c"HEAD"),
            (c"testing", c"tAb3dEfg"),
            (c"testing", c"tAb3dE."),
            (c"../testing", c"tAb3dEf"),
            (c"", c"tAb3dEf"),
        ] {
            assert_eq!(target(wanted, name), Err(Errno::EPERM), "{wanted:?} {name:?}");
        }
        assert_eq!(Mount::Open.target(c"/etc", c"HEAD"), Ok(c"/etc"));
    }

    #[test]
    fn pipes_sockets_and_devices_are_not_made_there() {
        for kind in [libc::S_IFIFO, libc::S_IFSOCK, libc::S_IFCHR, libc::S_IFBLK, libc::S_IFLNK] {
            assert_eq!(Mount::Guarded.check_mode(kind | 0o600), Err(Errno::EPERM), "{kind:o}");
            assert_eq!(Mount::Open.check_mode(kind | 0o600), Ok(()));
        }
        assert_eq!(Mount::Guarded.check_mode(libc::S_IFREG | 0o600), Ok(()));
        assert_eq!(Mount::Guarded.check_mode(0o600), Ok(()));
    }

    /// Calls of the C library from other crates of the program, as libkrun's, reach this module.
    #[test]
    fn the_functions_of_the_program_are_these() {
        let dir = tempfile::tempdir().unwrap();
        let opened = File::open(dir.path()).unwrap();
        nix::unistd::symlinkat("target", &opened, "link").unwrap();
        assert_eq!(fs::read_link(dir.path().join("link")).unwrap(), Path::new("target"));
        let (linked, made) = (libc::symlinkat as *const (), libc::mknodat as *const ());
        assert_eq!((linked, made), (symlinkat as *const (), mknodat as *const ()));
    }
}
