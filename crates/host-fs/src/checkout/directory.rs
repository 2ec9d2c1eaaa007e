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

/// An open directory. Everything in it is reached through its handle, name by name and through no link, so that nobody who
/// changes the checkout meanwhile leads a reader out of it, or into a home below it.
#[derive(Debug)]
pub struct Directory<'b> {
    handle: OwnedFd,
    checkout: &'b Bounds,
    /// Its path without links, when it was opened.
    path: PathBuf,
}

/// Something in a directory.
#[derive(Debug)]
pub enum Entry<'b> {
    /// A directory.
    Directory(Directory<'b>),
    /// A regular file, open for reading.
    File(File),
    /// A symbolic link, and the path in it.
    Link(OsString),
    /// A device, a pipe or a socket.
    Special,
}

impl<'b> Directory<'b> {
    /// Opens a directory whose handle may be one that is not for reading.
    pub(super) fn open(handle: &OwnedFd, checkout: &'b Bounds, path: PathBuf) -> io::Result<Self> {
        Ok(Self { handle: open(handle, OsStr::new("."))?, checkout, path })
    }

    /// Opens a directory in this one.
    fn inner(&self, name: &OsStr) -> io::Result<Self> {
        let (handle, path) = (open(&self.handle, name)?, self.path.join(name));
        self.checkout.check(&handle, &path, &path)?;
        Ok(Self { handle, checkout: self.checkout, path })
    }

    /// Returns the names in it, in no order. They are read as they are taken, as a directory can have more than fit into
    /// memory.
    ///
    /// # Errors
    /// The operating system's.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<OsString>> + use<>> {
        let name = |entry: rustix::io::Result<DirEntry>| {
            Ok(OsString::from_vec(entry?.file_name().to_bytes().to_owned()))
        };
        let is_own = |name: &io::Result<OsString>| {
            name.as_ref().is_ok_and(|name| name == "." || name == "..")
        };
        Ok(Dir::read_from(&self.handle)?.map(name).filter(move |it| !is_own(it)))
    }

    /// Returns whether something is at a path in it, be it a link.
    pub fn has(&self, path: &Path) -> bool {
        statat(&self.handle, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Returns what a name in it stands for.
    ///
    /// # Errors
    /// The operating system's; [`InHome`](super::InHome) of a home; and one of a file that was replaced meanwhile.
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

/// Opens a directory for reading by a name in another one, which is not a link.
fn open(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, name, flags, Mode::empty())?)
}
