//! The directory in which drafts are made, and the locks and names of its entries.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// The prefix of the names of drafts.
const PREFIX: &str = ".boxbuild-";
/// The suffix of a draft's name while it may refer to the old directory.
const ASIDE: &str = "-old";
/// The number of hexadecimal digits after the prefix, and in the tag of a destination.
const DIGITS: usize = 16;
/// The number of attempts to find a free name.
const ATTEMPTS: usize = 100;

#[derive(Debug)]
pub(super) struct Parent {
    directory: OwnedFd,
    path: PathBuf,
}

/// A new entry of a directory. This process holds its lock, if the file system has locks.
#[derive(Debug)]
pub(super) struct NewEntry {
    pub(super) name: String,
    pub(super) file: File,
}

/// The result of trying to lock without waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    /// This handle holds the lock.
    Held,
    /// Another handle holds it.
    Taken,
    /// The file system does not support locks.
    Unsupported,
}

impl Lock {
    pub(super) fn of(file: &File) -> Self {
        match file.try_lock() {
            Ok(()) => Self::Held,
            Err(TryLockError::WouldBlock) => Self::Taken,
            Err(TryLockError::Error(_)) => Self::Unsupported,
        }
    }
}

impl Parent {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// Opens a directory again from a handle. `path` is for messages.
    pub(super) fn reopen(directory: impl AsFd, path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// Returns the path of an entry.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Makes an entry under a random name, and locks it.
    ///
    /// Between these two steps another process may take the entry for a leftover and remove it. The function then tries again.
    pub(super) fn create(
        &self,
        make: impl Fn(BorrowedFd<'_>, &str) -> rustix::io::Result<OwnedFd>,
    ) -> io::Result<NewEntry> {
        let mut last = Errno::EXIST;
        for _ in 0..ATTEMPTS {
            let name = format!("{PREFIX}{:0DIGITS$x}", getrandom::u64().map_err(io::Error::other)?);
            match make(self.fd(), &name) {
                Ok(made) => {
                    let file = File::from(made);
                    let leads = Lock::of(&file) != Lock::Taken;
                    match leads.then(|| self.leads_to(&name, &file)).transpose() {
                        Ok(Some(true)) => return Ok(NewEntry { name, file }),
                        Ok(_) => {}
                        Err(error) => {
                            self.abandon(&name, &file);
                            return Err(error.into());
                        }
                    }
                }
                Err(error @ (Errno::EXIST | Errno::NOENT)) => last = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.into())
    }

    /// Removes a new, empty entry. Failures are ignored.
    fn abandon(&self, name: &str, file: &File) {
        let is_directory = file.metadata().is_ok_and(|it| it.is_dir());
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        rustix::fs::unlinkat(self.fd(), name, flags).ok();
    }

    /// Opens a directory in this one, without following a link.
    pub(super) fn open_directory(&self, name: impl rustix::path::Arg) -> rustix::io::Result<File> {
        open_directory(self.fd(), name).map(File::from)
    }

    /// Returns whether a name refers to the file that is open as `file`.
    pub(super) fn leads_to(
        &self,
        name: impl rustix::path::Arg,
        file: &File,
    ) -> rustix::io::Result<bool> {
        let opened = rustix::fs::fstat(file)?;
        match rustix::fs::statat(self.fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Renames an entry. If an entry has the new name already, it is replaced.
    pub(super) fn rename(
        &self,
        from: impl rustix::path::Arg,
        to: impl rustix::path::Arg,
    ) -> rustix::io::Result<()> {
        rustix::fs::renameat(self.fd(), from, self.fd(), to)
    }

    /// Exchanges two entries in one step.
    pub(super) fn exchange(&self, one: &str, other: &OsStr) -> rustix::io::Result<()> {
        rustix::fs::renameat_with(self.fd(), one, self.fd(), other, RenameFlags::EXCHANGE)
    }

    /// Renames an entry to a name that does not exist, in this directory or another one. Returns [`Errno::EXIST`] if
    /// the name exists.
    ///
    /// If the file system does not support `RENAME_NOREPLACE`, a file or an empty directory that another process makes
    /// at `to` at the same moment is replaced.
    pub(super) fn rename_new(
        &self,
        from: &str,
        other: &Self,
        to: &OsStr,
    ) -> rustix::io::Result<()> {
        let new = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(self.fd(), from, other.fd(), to, new) {
            Err(error) if is_unsupported(error) => {}
            renamed => return renamed,
        }
        match rustix::fs::statat(other.fd(), to, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found => return found.and(Err(Errno::EXIST)),
        }
        rustix::fs::renameat(self.fd(), from, other.fd(), to)
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        flush(self.fd())
    }
}

/// Flushes the names in a directory.
pub(super) fn flush(directory: BorrowedFd<'_>) -> io::Result<()> {
    match rustix::fs::fsync(directory) {
        // Ignore these errors, because some network file systems cannot flush a directory.
        Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
        flushed => Ok(flushed?),
    }
}

/// Flushes the names in the directory at this path.
///
/// # Errors
/// The operating system's error, without a path.
pub fn flush_names(directory: &Path) -> io::Result<()> {
    Parent::open(directory)?.flush()
}

/// Returns the parent directory of `path`, or `.` if `path` is a single name.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Opens a directory in another one, without following a link.
///
/// # Errors
/// The operating system's error.
pub fn open_directory(
    parent: impl AsFd,
    name: impl rustix::path::Arg,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Returns whether an error of `renameat2` means that the file system, the kernel or a filter of system calls does
/// not support its flags.
pub(super) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP)
}

/// The kinds of names of drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraftName {
    /// A draft, or an old directory that has passed its check.
    Draft,
    /// A draft or the unchecked old directory of the destination with this tag.
    Aside(u64),
}

impl DraftName {
    /// Parses a name. Returns `None` if it is not the name of a draft.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX.as_bytes())?;
        let (digits, end) = rest.split_at_checked(DIGITS)?;
        let is_digit = |it: &u8| it.is_ascii_digit() || (b'a'..=b'f').contains(it);
        if !digits.iter().all(is_digit) {
            return None;
        }
        if end.is_empty() {
            return Some(Self::Draft);
        }
        let tag = end.strip_prefix(b"-")?.strip_suffix(ASIDE.as_bytes())?;
        let is_tag = tag.len() == DIGITS && tag.iter().all(is_digit);
        let tag = std::str::from_utf8(tag).ok().filter(|_| is_tag)?;
        u64::from_str_radix(tag, 16).ok().map(Self::Aside)
    }

    /// Returns the name of `draft` during its exchange with the destination `last`, when the name may refer to either.
    pub(super) fn aside(draft: &str, last: &OsStr) -> String {
        format!("{draft}-{:0DIGITS$x}{ASIDE}", tag(last))
    }
}

/// Returns the tag of a destination: the FNV-1a hash of its last component. Collisions are rare.
pub(super) fn tag(last: &OsStr) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    last.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Returns the last component of `path`: its name in [`parent_of`] `path`.
pub(super) fn last_of(path: &Path) -> &OsStr {
    path.components().next_back().map(|it| it.as_os_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_drafts_are_names_of_drafts() {
        let of = |name: &str| DraftName::of(name.as_bytes());
        assert_eq!(of(".boxbuild-0123456789abcdef"), Some(DraftName::Draft));
        let aside = DraftName::aside(".boxbuild-0123456789abcdef", OsStr::new("a"));
        assert_eq!(aside, ".boxbuild-0123456789abcdef-af63dc4c8601ec8c-old");
        assert_eq!(of(&aside), Some(DraftName::Aside(tag(OsStr::new("a")))));
        for name in [
            ".boxbuild-",
            ".boxbuild-notes",
            ".boxbuild-0123456789abcde",
            ".boxbuild-0123456789abcdeg",
            ".boxbuild-0123456789ABCDEF",
            ".boxbuild-0123456789abcdef-old",
            ".boxbuild-0123456789abcdef-0123456789abcdef-new",
            ".boxbuild-0123456789abcdef-+123456789abcdef-old",
            ".boxbuild-0123456789abcdef0",
            "boxbuild-0123456789abcdef",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
