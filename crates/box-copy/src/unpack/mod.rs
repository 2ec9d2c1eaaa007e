//! Unpacks an archive at a path.
//!
//! The author of the archive may be hostile, and so may every other program with access to the directories. On the host, the box
//! has written the archive. In the box, another program may change the files. These rules keep the archive's entries inside the
//! destination:
//!
//! - Each path is resolved name by name, relative to open directories that are opened without following links.
//! - A file is created under a temporary name, and renamed when it is complete. The rename replaces an existing entry and never
//!   follows it. A symbolic link is created and never followed.
//! - All paths in an archive from a box must begin with the last name of the requested path. Its symbolic links that lead out of
//!   the requested directory are left out, because readers of the copy would follow them.
//! - Files get at most the permissions that a new file of this user gets.
//! - Paths are limited in length and depth. Of the extensions of tar, only long names and link targets are supported, and PAX headers
//!   if the user has made the archive.
//!
//! A file in the place of another one keeps the mode of that file, and its owner if this process may give files away.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use box_contract::rules::PATH_MAX;
use host_fs::publish::open_directory;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, fchmod,
    fchown, futimens, linkat, mkdirat, openat, readlinkat, renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;
use tar::{EntryType, Header};

use crate::place::{CopyEnd, at_path};
use crate::{BLOCK, LeftOut, MAX_DEPTH, name_of, padding};
use extra::Extra;

mod extra;

/// The maximum number of temporary names to try for a file.
const TRIES: u32 = 100;
/// The maximum number of bytes to read after the end of an archive. Programs such as tar fill the last record with zeros.
const MAX_REST: u64 = 1 << 20;

/// The first bytes of a gzip stream (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The author of an archive.
#[derive(Debug, Clone, Copy)]
pub enum Author<'a> {
    /// A box from which this path was requested. It may send other paths.
    Box(&'a Path),
    /// The user who unpacks the archive.
    User,
}

/// Unpacks an archive at `to`: inside the directory `to` if it exists, and otherwise under the name of `to`. Existing files of
/// the same names are replaced, and directories are merged. No symbolic link is followed, except at `to` itself if
/// [`CopyEnd::following`] allows it.
///
/// # Errors
/// The errors of the archive, and of the files with their paths. Entries that were already unpacked stay.
pub fn unpack(mut archive: impl Read, to: CopyEnd, author: Author<'_>) -> io::Result<LeftOut> {
    let archive: &mut dyn Read = &mut archive;
    let mut unpacking = Unpacking::at(to.enter()?, author);
    let (mut extra, mut is_empty) = (Extra::default(), true);
    while let Some(header) = next_header(archive)? {
        if extra.take(&header, archive, author)? {
            continue;
        }
        let Extra { path, target, size, mtime } = std::mem::take(&mut extra);
        let path = path.unwrap_or_else(|| header.path_bytes().into_owned());
        let short = || header.link_name_bytes().map(|it| it.into_owned());
        let target = target.or_else(short).unwrap_or_default();
        let (kind, mode) = (header.entry_type(), header.mode()?);
        let size = size.map_or_else(|| header.entry_size(), Ok)?;
        let mtime = mtime.map_or_else(|| header.mtime(), Ok)?;
        unpacking.make(&path, &Entry { kind, mode, size, mtime, target }, archive)?;
        is_empty = false;
    }
    // A writer that is still filling its last record would fail if this end of the pipe were closed.
    io::copy(&mut archive.take(MAX_REST), &mut io::sink())?;
    if is_empty { Err(odd("there is nothing in it")) } else { Ok(unpacking.left_out) }
}

/// Reads the next header. Returns `None` at the end of the archive, which is a block of zeros.
pub(crate) fn next_header(archive: &mut dyn Read) -> io::Result<Option<Header>> {
    let mut header = Header::new_old();
    let block = header.as_mut_bytes();
    archive.read_exact(block).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => odd("it ends too early"),
        _ => error,
    })?;
    if block.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if header.as_bytes().starts_with(&GZIP) {
        return Err(odd("it is compressed, and has to be a plain tar"));
    }
    let (given, mut own) = (header.cksum()?, header.clone());
    own.set_cksum();
    if own.cksum()? != given {
        Err(odd("it is damaged, or no tar archive"))
    } else {
        Ok(Some(header))
    }
}

/// Reads the long path or target in the content of an extra entry. It may end with a NUL byte, which is removed.
pub(crate) fn long(archive: &mut dyn Read, size: u64) -> io::Result<Vec<u8>> {
    if size > PATH_MAX as u64 + 1 {
        return Err(odd("it has a path that is too long"));
    }
    let mut text = Vec::new();
    copy(archive, size, &mut text)?;
    text.pop_if(|last| *last == 0);
    Ok(text)
}

/// Copies a content of `size` bytes, and skips the padding of its last block.
fn copy(archive: &mut dyn Read, size: u64, to: &mut dyn Write) -> io::Result<()> {
    if io::copy(&mut archive.take(size), to)? != size {
        return Err(odd("it ends within a file"));
    }
    let rest = archive.read_exact(&mut [0; BLOCK][..padding(size)]);
    rest.map_err(|_| odd("it ends within a file"))
}

/// An entry of the archive, without its path.
struct Entry {
    kind: EntryType,
    mode: u32,
    size: u64,
    /// When the file was changed, in seconds since 1970. 0 is unknown.
    mtime: u64,
    /// The target of a symbolic link.
    target: Vec<u8>,
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the archive cannot be unpacked: {what}"))
}

/// The destination of an archive.
struct Unpacking<'a> {
    /// The directory to which the paths of the archive are relative.
    base: OwnedFd,
    /// The path of `base`, for messages.
    directory: PathBuf,
    /// The name that replaces the first name of each path. `None` if the entries keep their names.
    renamed: Option<Vec<u8>>,
    /// Whether a link in the place of the one file that is copied is followed.
    follows: bool,
    author: Author<'a>,
    left_out: LeftOut,
}

impl<'a> Unpacking<'a> {
    fn at(place: CopyEnd, author: Author<'a>) -> Self {
        let CopyEnd { directory: base, path: directory, name, follows } = place;
        let renamed = name.map(OsString::into_vec);
        Self { base, directory, renamed, follows, author, left_out: LeftOut::default() }
    }

    fn make(&mut self, path: &[u8], entry: &Entry, archive: &mut dyn Read) -> io::Result<()> {
        let names = self.names(path)?;
        let path = &self.shown(&names);
        let Some((name, directories)) = names.split_last() else {
            return match entry.kind {
                EntryType::Directory => self.make_base(entry.mode).map_err(at(path)),
                _ => Err(odd("it has an entry without a name")),
            };
        };
        self.check_has_base()?;
        let parent = self.open(directories).map_err(at(path))?;
        match entry.kind {
            EntryType::Directory => make_directory(&parent, name, entry.mode).map_err(at(path)),
            EntryType::Regular if self.follows && names.len() == 1 => {
                let (parent, name) = followed(parent, name.clone()).map_err(at(path))?;
                make_file(&parent, &name, entry, archive).map_err(named(path))
            }
            EntryType::Regular => make_file(&parent, name, entry, archive).map_err(named(path)),
            EntryType::Symlink | EntryType::Link if entry.target.is_empty() => {
                Err(odd("it has a link that leads nowhere"))
            }
            EntryType::Symlink if names.len() == 1 && self.is_named() => {
                let target = entry.target.escape_ascii();
                let what = format!("it is a symbolic link to {target}: copy that");
                Err(named(path)(Error::new(ErrorKind::InvalidInput, what)))
            }
            EntryType::Symlink => {
                self.make_symlink(&parent, &names, &entry.target).map_err(at(path))
            }
            EntryType::Link if matches!(self.author, Author::User) => {
                let of = self.names(&entry.target)?;
                self.make_hard_link(&of, &parent, name).map_err(at(path))
            }
            _ => Err(odd(UNKNOWN)),
        }
    }

    /// Returns the path with these names below the base, for messages.
    fn shown(&self, names: &[Vec<u8>]) -> Vec<u8> {
        let names = names.iter().map(|name| OsStr::from_bytes(name));
        names.fold(self.directory.clone(), |path, name| path.join(name)).into_os_string().into_vec()
    }

    /// Returns whether an entry with a name was requested from a box, rather than a directory's content (`/.`).
    fn is_named(&self) -> bool {
        matches!(self.author, Author::Box(source) if name_of(source) != ".")
    }

    /// Splits a path of the archive into the names below the base.
    fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let odd_path = || odd(&format!("it has the path \"{}\"", path.escape_ascii()));
        let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let mut names: Vec<_> = names.map(<[u8]>::to_vec).collect();
        let is_odd = |name: &Vec<u8>| name == b".." || name.contains(&0);
        if path.starts_with(b"/") || names.len() > MAX_DEPTH || names.iter().any(is_odd) {
            return Err(odd_path());
        }
        let is_expected =
            |wanted: &[u8]| wanted == b"." || names.first().is_some_and(|it| it == wanted);
        if let Author::Box(source) = self.author
            && !is_expected(name_of(source).as_bytes())
        {
            return Err(odd_path());
        }
        if let (Some(renamed), Some(first)) = (&self.renamed, names.first_mut()) {
            first.clone_from(renamed);
        }
        Ok(names)
    }

    /// Makes a symbolic link, unless the archive is from a box and the link leads out of the requested path.
    fn make_symlink(
        &mut self,
        parent: &OwnedFd,
        names: &[Vec<u8>],
        target: &[u8],
    ) -> Result<(), Errno> {
        let Some((name, directories)) = names.split_last() else { return Ok(()) };
        // The first of `directories` is the copied directory itself, unless the base is the copied directory.
        let depth = directories.len().checked_sub(usize::from(self.is_named()));
        if matches!(self.author, Author::Box(_)) && !stays_within(target, depth) {
            self.left_out.links += 1;
            return Ok(());
        }
        make_symlink(parent, name, target)
    }

    /// Checks that an archive of a directory's content (`/.`) from a box begins with the directory. Otherwise the box's first
    /// entry would be created in place of the directory, and links would be resolved from there.
    fn check_has_base(&self) -> io::Result<()> {
        let is_content = matches!(self.author, Author::Box(_)) && !self.is_named();
        match is_content && self.renamed.is_some() {
            true => Err(odd("it does not begin with the directory that was asked for")),
            false => Ok(()),
        }
    }

    /// Creates the destination of a directory's content (`/.`) if it is missing, and uses it as the base from then on.
    fn make_base(&mut self, mode: u32) -> Result<(), Errno> {
        if let Some(name) = self.renamed.take() {
            make_directory(&self.base, &name, mode)?;
            self.base = open_directory(&self.base, name.as_slice())?;
            self.directory.push(OsStr::from_bytes(&name));
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
        let link =
            |draft: &str| linkat(&directory, first.as_slice(), parent, draft, AtFlags::empty());
        let (draft, ()) = with_draft(link)?;
        renameat(parent, draft.as_str(), parent, name)?;
        // Renaming a file to another hard link of the same inode is a no-op, and the draft stays.
        let _ = unlinkat(parent, draft.as_str(), AtFlags::empty());
        Ok(())
    }
}

/// The error of an archive in another format.
const UNKNOWN: &str =
    "it has other entries than directories, files and links, or is not in the GNU tar format";

/// Returns whether the target of a link stays inside the copied directory. `depth` is the number of directories between that
/// directory and the link. For example, it is 2 for the link `top/a/b/link`, whose target may be `../../x` but not `../../../x`.
/// `..` is accepted only at the start of the target, because a name before a later `..` could itself be a link.
fn stays_within(target: &[u8], depth: Option<usize>) -> bool {
    let mut names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let up = names.by_ref().take_while(|name| *name == b"..").count();
    // `take_while` has also consumed the first name after the leading `..`. That name is not `..`.
    !target.starts_with(b"/")
        && depth.is_some_and(|depth| up <= depth)
        && names.all(|name| name != b"..")
}

/// Creates an entry under an unused temporary name. Returns the name and the result of `make`.
fn with_draft<T>(make: impl Fn(&str) -> Result<T, Errno>) -> Result<(String, T), Errno> {
    let process = std::process::id();
    for number in 0..TRIES {
        let draft = format!(".boxlaunch-{process}-{number}.part");
        match make(&draft) {
            Err(Errno::EXIST) => {}
            made => return made.map(|made| (draft, made)),
        }
    }
    Err(Errno::EXIST)
}

/// Creates a directory that this user can read, change and enter. An existing directory is accepted.
fn make_directory(parent: &OwnedFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    match mkdirat(parent, name, permissions(mode) | Mode::RWXU) {
        Err(Errno::EXIST) => open_directory(parent, name).map(drop),
        made => made,
    }
}

/// The maximum number of links from one to the next ([path_resolution(7)](https://man7.org/linux/man-pages/man7/path_resolution.7.html)).
const MAX_LINKS: u32 = 40;

/// Follows the symbolic link `name`, if it is one. Returns the directory and the name to which it leads. No file need exist there.
fn followed(mut parent: OwnedFd, mut name: Vec<u8>) -> Result<(OwnedFd, Vec<u8>), Errno> {
    for _ in 0..MAX_LINKS {
        let target = match readlinkat(&parent, name.as_slice(), Vec::new()) {
            // It is no link, or nothing is there.
            Err(Errno::INVAL | Errno::NOENT) => return Ok((parent, name)),
            target => target?.into_bytes(),
        };
        let split = target.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (directory, last) = target.split_at(split);
        if !directory.is_empty() {
            let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
            parent = openat(&parent, directory, flags, Mode::empty())?;
        }
        if matches!(last, b"" | b"." | b"..") {
            return Err(Errno::ISDIR);
        }
        name = last.to_vec();
    }
    Err(Errno::LOOP)
}

fn make_file(
    parent: &OwnedFd,
    name: &[u8],
    entry: &Entry,
    archive: &mut dyn Read,
) -> io::Result<()> {
    let before = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let before = before.filter(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
    let (draft, file) =
        with_draft(|draft| openat(parent, draft, flags, permissions(entry.mode)).map(File::from))?;
    let put = || -> io::Result<()> {
        before.as_ref().map_or(Ok(()), |before| take_over(&file, before))?;
        set_time(&file, entry.mtime)?;
        Ok(renameat(parent, draft.as_str(), parent, name)?)
    };
    let made = copy(archive, entry.size, &mut &file).and_then(|()| put());
    if made.is_err() {
        // Returns the first error, even if the draft cannot be removed.
        let _ = unlinkat(parent, draft.as_str(), AtFlags::empty());
    }
    made
}

/// Gives a new file the mode of the file that it replaces, and the owner, unless this process may not give files away.
fn take_over(file: &File, before: &Stat) -> Result<(), Errno> {
    let (user, group) = (Uid::from_raw(before.st_uid), Gid::from_raw(before.st_gid));
    match fchown(file, Some(user), Some(group)) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    fchmod(file, permissions(before.st_mode))
}

/// Sets the time of a file's last change, if it is known.
fn set_time(file: &File, mtime: u64) -> Result<(), Errno> {
    let known = i64::try_from(mtime).ok().filter(|seconds| *seconds > 0);
    let Some(tv_sec) = known else { return Ok(()) };
    let last_modification = Timespec { tv_sec, tv_nsec: 0 };
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    futimens(file, &Timestamps { last_access, last_modification })
}

fn make_symlink(parent: &OwnedFd, name: &[u8], target: &[u8]) -> Result<(), Errno> {
    make_room(parent, name)?;
    symlinkat(target, parent, name)
}

/// Removes the entry `name` if it exists. Fails if it is a directory.
fn make_room(parent: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Returns the permissions of a new file, without the set-user-ID, set-group-ID and sticky bits. The kernel applies the umask.
fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

/// Adds the path to an error.
fn at(path: &[u8]) -> impl FnOnce(Errno) -> Error {
    let named = named(path);
    move |errno| named(errno.into())
}

fn named(path: &[u8]) -> impl FnOnce(Error) -> Error {
    move |error| at_path(Path::new(OsStr::from_bytes(path)), error)
}

#[cfg(test)]
mod tests;
