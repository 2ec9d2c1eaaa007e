//! A directory of a checkout that is read through its handle.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};

use crate::read::{Links, open_regular_at};

/// An open directory. Everything in it is reached through its handle, name by name and through no link, so that nobody who
/// changes the checkout meanwhile leads a reader out of it.
#[derive(Debug)]
pub struct Directory(OwnedFd);

/// Something in a directory.
#[derive(Debug)]
pub enum Entry {
    /// A directory.
    Directory(Directory),
    /// A regular file, open for reading.
    File(File),
    /// A symbolic link, and the path in it.
    Link(OsString),
    /// A device, a pipe or a socket.
    Special,
}

impl Directory {
    /// Opens a directory by a name in another one, which is not a link.
    pub(super) fn open(parent: &OwnedFd, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(openat(parent, name, flags, Mode::empty())?))
    }

    /// Returns the names in it, sorted.
    ///
    /// # Errors
    /// The operating system's.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_owned();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns what a name in it stands for.
    ///
    /// # Errors
    /// The operating system's; and one of a file that was replaced meanwhile.
    pub fn entry(&self, name: &OsStr) -> io::Result<Entry> {
        let found = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Entry::Directory(Self::open(&self.0, name)?),
            FileType::RegularFile => {
                Entry::File(open_regular_at(&self.0, Path::new(name), Links::Refuse)?)
            }
            FileType::Symlink => {
                let target = readlinkat(&self.0, name, Vec::new())?;
                Entry::Link(OsStr::from_bytes(target.to_bytes()).to_owned())
            }
            _ => Entry::Special,
        })
    }
}
