//! A directory of a checkout that is read through its handle.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, DirEntry, FileType, Mode, OFlags, openat, readlinkat, statat};

use super::Bounds;
use crate::read::{Links, open_regular_at};

/// An open directory. Every entry is opened relative to its handle, one name at a time, without following links. So another
/// program that changes the checkout meanwhile cannot lead a reader out of it, or into a home below it.
#[derive(Debug)]
pub struct Directory<'b> {
    handle: OwnedFd,
    checkout: &'b Bounds,
    /// The path without links, at the time of opening.
    path: PathBuf,
}

/// An entry of a directory.
#[derive(Debug)]
pub enum Entry<'b> {
    /// A directory.
    Directory(Directory<'b>),
    /// A regular file, open for reading.
    File(File),
    /// A symbolic link, with its target.
    Link(OsString),
    /// A device, a pipe or a socket.
    Special,
}

impl<'b> Directory<'b> {
    /// Opens a directory for reading, from a handle that may be `O_PATH`.
    pub(super) fn open(handle: &OwnedFd, checkout: &'b Bounds, path: PathBuf) -> io::Result<Self> {
        Ok(Self { handle: open(handle, OsStr::new("."))?, checkout, path })
    }

    /// Opens the subdirectory `name`, which must not be a home.
    fn inner(&self, name: &OsStr) -> io::Result<Self> {
        let (handle, path) = (open(&self.handle, name)?, self.path.join(name));
        self.checkout.check(&handle, &path, &path)?;
        Ok(Self { handle, checkout: self.checkout, path })
    }

    /// Returns an iterator over the names, in no order. It reads lazily, because a directory can have more names than
    /// fit into memory.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let name = |entry: rustix::io::Result<DirEntry>| {
            Ok(OsString::from_vec(entry?.file_name().to_bytes().to_owned()))
        };
        let is_own = |name: &io::Result<OsString>| {
            name.as_ref().is_ok_and(|name| name == "." || name == "..")
        };
        Ok(Dir::read_from(&self.handle)?.map(name).filter(move |it| !is_own(it)))
    }

    /// Returns whether `path` exists in this directory. A dangling link exists.
    pub fn has(&self, path: &Path) -> bool {
        statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Opens the entry `name` if it is a directory or a regular file. Returns the target of a symbolic link.
    ///
    /// # Errors
    /// The operating system's error, [`InHome`](super::InHome) for a home, or an error for an entry that was replaced meanwhile.
    pub fn entry(&self, name: &OsStr) -> io::Result<Entry<'b>> {
        let found = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Entry::Directory(self.inner(name)?),
            FileType::RegularFile => {
                Entry::File(open_regular_at(&self.handle, name.as_ref(), Links::Refuse)?)
            }
            FileType::Symlink => {
                let target = readlinkat(&self.handle, name, Vec::new())?;
                Entry::Link(OsStr::from_bytes(target.to_bytes()).to_owned())
            }
            _ => Entry::Special,
        })
    }
}

/// Opens a directory for reading by its name in another one. A symbolic link is an error.
fn open(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}
