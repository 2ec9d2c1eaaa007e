//! An archive becomes a path.
//!
//! Whoever wrote the archive is hostile, and so is whoever else uses the directories: on the host the box has written
//! it, and in the box another program may change what is there. What keeps its names where they belong:
//!
//! - Every name is one name, and is used below a handle of its directory, which is opened without following links.
//! - A file is made under a name of its own, and put in its place when all of it is there; what is there is replaced,
//!   never followed. A link is made and never followed.
//! - Files get no more than the permissions that a new file of this user gets.
//! - Paths are bounded in length and depth; of the extensions of tar only long names are understood.

use std::fs::File;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use host_fs::publish::{open_directory, parent_of};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, linkat, mkdirat, openat, renameat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use tar::{EntryType, Header};

use crate::{BLOCK, padding};

/// The greatest length of a path, and of a link's target.
const MAX_PATH: u64 = 4096;
/// How deep a path may lead.
const MAX_DEPTH: usize = 256;
/// The name of a file while it is written.
const DRAFT: &str = ".boxlaunch-cp.part";

/// Unpacks an archive into a directory that exists, or else as the path itself. An existing file of the same name is
/// replaced; directories are merged.
///
/// # Errors
/// The archive's, and those of the files, which are named. What was unpacked before that stays.
pub fn unpack(mut archive: impl Read, to: &Path) -> io::Result<()> {
    let archive: &mut dyn Read = &mut archive;
    let mut place = Place::of(to)?;
    let (mut path, mut target) = (None, None);
    while let Some(header) = next_header(archive)? {
        let size = header.entry_size()?;
        match header.entry_type() {
            EntryType::GNULongName => path = Some(long(archive, size)?),
            EntryType::GNULongLink => target = Some(long(archive, size)?),
            kind => {
                let path = path.take().unwrap_or_else(|| header.path_bytes().into_owned());
                let short = || header.link_name_bytes().map(|it| it.into_owned());
                let target = target.take().or_else(short).unwrap_or_default();
                let entry = Entry { kind, mode: header.mode()?, size, target };
                place.make(&path, &entry, archive)?;
            }
        }
    }
    // What a writer still has to say would be an error of its own.
    io::copy(archive, &mut io::sink()).map(drop)
}

/// Reads the next header; `None` at the end, which is a block of zeros or that of the stream.
fn next_header(archive: &mut dyn Read) -> io::Result<Option<Header>> {
    let mut header = Header::new_old();
    let block = header.as_mut_bytes();
    let first = archive.read(&mut block[..1])?;
    if first == 0 {
        return Ok(None);
    }
    archive.read_exact(&mut block[1..])?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let (given, mut own) = (header.cksum()?, header.clone());
    own.set_cksum();
    if own.cksum()? != given {
        Err(odd("it is damaged, or no tar archive"))
    } else {
        Ok(Some(header))
    }
}

/// Reads a long path, which ends with a NUL byte.
fn long(archive: &mut dyn Read, size: u64) -> io::Result<Vec<u8>> {
    if size > MAX_PATH + 1 {
        return Err(odd("it has a path that is too long"));
    }
    let mut text = Vec::new();
    copy(archive, size, &mut text)?;
    text.pop_if(|last| *last == 0);
    Ok(text)
}

/// Copies a content, and skips what fills its last block.
fn copy(archive: &mut dyn Read, size: u64, to: &mut dyn Write) -> io::Result<()> {
    if io::copy(&mut archive.take(size), to)? != size {
        return Err(odd("it ends within a file"));
    }
    archive.read_exact(&mut [0; BLOCK][..padding(size)])
}

/// An entry, without its path.
struct Entry {
    kind: EntryType,
    mode: u32,
    size: u64,
    /// Where a link leads.
    target: Vec<u8>,
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the archive cannot be unpacked: {what}"))
}

/// Where an archive is unpacked.
struct Place {
    /// The directory in which everything is made.
    base: OwnedFd,
    /// The name that takes the place of the first one of each path.
    renamed: Option<Vec<u8>>,
}

impl Place {
    fn of(to: &Path) -> io::Result<Self> {
        let is_meant = to.as_os_str().as_bytes().ends_with(b"/") || to.file_name().is_none();
        let (directory, renamed) = match to.file_name() {
            Some(name) if !is_meant && !to.is_dir() => {
                (parent_of(to), Some(name.as_bytes().to_vec()))
            }
            _ => (to, None),
        };
        // The path is the user's own: links in it are followed.
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let base = openat(CWD, directory, flags, Mode::empty());
        Ok(Self { base: base.map_err(at(directory.as_os_str().as_bytes()))?, renamed })
    }

    fn make(&mut self, path: &[u8], entry: &Entry, archive: &mut dyn Read) -> io::Result<()> {
        let names = self.names(path)?;
        let Some((name, directories)) = names.split_last() else {
            return match entry.kind {
                EntryType::Directory => self.make_base(entry.mode).map_err(at(path)),
                _ => Err(odd("it has an entry without a name")),
            };
        };
        let parent = self.open(directories).map_err(at(path))?;
        match entry.kind {
            EntryType::Directory => make_directory(&parent, name, entry.mode).map_err(at(path)),
            EntryType::Regular => make_file(&parent, name, entry, archive).map_err(named(path)),
            EntryType::Symlink | EntryType::Link if entry.target.is_empty() => {
                Err(odd("it has a link that leads nowhere"))
            }
            EntryType::Symlink => make_symlink(&parent, name, &entry.target).map_err(at(path)),
            EntryType::Link => {
                let of = self.names(&entry.target)?;
                self.make_hard_link(&of, &parent, name).map_err(at(path))
            }
            _ => Err(odd(
                "it has more than directories, files and links, or is not in the format of GNU tar",
            )),
        }
    }

    /// Splits a path of the archive into the names below the base.
    fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let mut names: Vec<_> = names.map(<[u8]>::to_vec).collect();
        let is_odd = |name: &Vec<u8>| name == b".." || name.contains(&0);
        if path.starts_with(b"/") || names.len() > MAX_DEPTH || names.iter().any(is_odd) {
            return Err(odd(&format!("it has the path \"{}\"", path.escape_ascii())));
        }
        if let (Some(renamed), Some(first)) = (&self.renamed, names.first_mut()) {
            first.clone_from(renamed);
        }
        Ok(names)
    }

    /// Makes the directory whose content the archive has, where it is not there.
    fn make_base(&mut self, mode: u32) -> Result<(), Errno> {
        if let Some(name) = self.renamed.take() {
            make_directory(&self.base, &name, mode)?;
            self.base = open_directory(&self.base, name.as_slice())?;
        }
        Ok(())
    }

    /// Opens a directory below the base, name by name.
    fn open(&self, names: &[Vec<u8>]) -> Result<OwnedFd, Errno> {
        let mut directory = rustix::io::fcntl_dupfd_cloexec(&self.base, 0)?;
        for name in names {
            directory = open_directory(&directory, name.as_slice())?;
        }
        Ok(directory)
    }

    fn make_hard_link(&self, of: &[Vec<u8>], parent: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        let (first, directories) = of.split_last().ok_or(Errno::INVAL)?;
        let directory = self.open(directories)?;
        make_room(parent, name)?;
        linkat(&directory, first.as_slice(), parent, name, AtFlags::empty())
    }
}

/// Makes a directory that this user can use; one that is there is used.
fn make_directory(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    match mkdirat(parent, name, permissions(mode) | Mode::RWXU) {
        Err(Errno::EXIST) => open_directory(parent, name).map(drop),
        made => made,
    }
}

fn make_file(
    parent: &OwnedFd,
    name: &[u8],
    entry: &Entry,
    archive: &mut dyn Read,
) -> io::Result<()> {
    // Somebody was killed while writing it.
    make_room(parent, DRAFT.as_bytes())?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = openat(parent, DRAFT, flags, permissions(entry.mode)).map(File::from)?;
    let put = || renameat(parent, DRAFT, parent, name).map_err(Error::from);
    let made = copy(archive, entry.size, &mut file).and_then(|()| put());
    if made.is_err() {
        // The error at hand matters more than another one.
        let _ = make_room(parent, DRAFT.as_bytes());
    }
    made
}

fn make_symlink(parent: &OwnedFd, name: &[u8], target: &[u8]) -> Result<(), Errno> {
    make_room(parent, name)?;
    symlinkat(target, parent, name)
}

/// Removes what has a name, unless that is a directory.
fn make_room(parent: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Returns the permissions of a new file; this process's umask takes its part of them.
fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

/// Says at which path something failed.
fn at(path: &[u8]) -> impl FnOnce(Errno) -> Error {
    let named = named(path);
    move |errno| named(errno.into())
}

fn named(path: &[u8]) -> impl FnOnce(Error) -> Error {
    let path = path.strip_suffix(b"/").unwrap_or(path).escape_ascii().to_string();
    move |error| Error::new(error.kind(), format!("{path}: {error}"))
}

#[cfg(test)]
mod tests;
