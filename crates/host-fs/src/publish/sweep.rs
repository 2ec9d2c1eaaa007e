//! Removing drafts, of this process and of killed ones.

use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::parent::{DraftName, Lock, Parent, last_of, open_directory, parent_of, tag};

/// The maximum number of directory entries to examine.
const LOOKED_AT: usize = 1 << 16;
/// The maximum number of leftovers to remove at once.
const REMOVED: usize = 64;

/// Removes the drafts beside the destination `to` that killed processes of this user left: their locks are free.
///
/// A directory that may have been at `to` is removed only if `accept` returns `true` for its path. A directory that may
/// have been at another destination is kept. Failures are ignored, because a leftover only takes space.
pub fn sweep(to: &Path, accept: impl Fn(&Path) -> bool) {
    if let Ok(parent) = Parent::open(parent_of(to)) {
        sweep_in(&parent, last_of(to), accept);
    }
}

/// Like [`sweep`], for a destination with the name `last` in an open directory.
pub(super) fn sweep_in(parent: &Parent, last: &OsStr, accept: impl Fn(&Path) -> bool) {
    let Ok(entries) = Dir::read_from(parent.fd()) else { return };
    let names = entries.take(LOOKED_AT).filter_map(Result::ok);
    let names = names.filter_map(|entry| {
        let name = DraftName::of(entry.file_name().to_bytes())?;
        Some((name, entry.file_name().to_str().ok()?.to_owned()))
    });
    let own = tag(last);
    let mut removed = 0;
    for (kind, name) in names.collect::<Vec<_>>() {
        if removed == REMOVED {
            break;
        }
        let Some(_lock) = lock_leftover(parent, &name) else { continue };
        let removable = match kind {
            DraftName::Draft => true,
            DraftName::Aside(of) => of == own && accept(&parent.join(&name)),
        };
        if removable {
            remove(parent, &name);
            removed += 1;
        }
    }
}

/// Locks a draft of this user that no process has locked. Returns `None` for all other entries.
fn lock_leftover(parent: &Parent, name: &str) -> Option<File> {
    let there = rustix::fs::statat(parent.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if !is_own(&there) {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(parent.fd(), name, flags, Mode::empty()).ok()?);
    let free = Lock::of(&file) == Lock::Held && parent.leads_to(name, &file).ok()?;
    free.then_some(file)
}

/// Returns whether `found` is the state of a file or directory of this user.
fn is_own(found: &Stat) -> bool {
    let kind = FileType::from_raw_mode(found.st_mode);
    matches!(kind, FileType::Directory | FileType::RegularFile)
        && found.st_uid == rustix::process::geteuid().as_raw()
}

/// Removes a draft recursively. Failures are ignored.
pub(super) fn remove(parent: &Parent, name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        remove_tree(parent.fd(), &name).ok();
    }
}

/// Removes a file, or a directory recursively, without following links. Another process may be doing the same.
fn remove_tree(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    match remove_entry(parent, name) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn remove_entry(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        removed => return removed,
    }
    // The permissions of an exported directory may forbid reading it and removing its entries.
    make_writable(parent, name).ok();
    let directory = open_directory(parent, name)?;
    let mut entries = Dir::new(directory)?;
    let mut names = Vec::new();
    while let Some(entry) = entries.read() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    let directory = entries.fd()?;
    // A failure for one entry does not stop the removal of the others.
    let mut removed = Ok(());
    for name in &names {
        removed = removed.and(remove_tree(directory, name));
    }
    removed?;
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Gives the owner of a directory all permissions for it, without following a link.
fn make_writable(parent: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    // fchmod(2) refuses an `O_PATH` handle, so use its path in /proc.
    let handle = format!("/proc/self/fd/{}", directory.as_raw_fd());
    rustix::fs::chmod(handle, Mode::RWXU)
}
