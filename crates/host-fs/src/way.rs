//! The way to a directory: open handles of all directories from `/` to it. Each was opened relative to the handle of its
//! parent, without following a link. Replacing a directory on the way afterwards has no effect.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::known::{Identity, Known};
use crate::trust::Trusted;

/// Opens a file only for examining it and for opening its entries.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const DIRECTORY: OFlags = LOOK.union(OFlags::DIRECTORY);

/// The way to a directory.
#[derive(Debug)]
pub struct Way {
    /// The directories below `/`, in the order of the path.
    below: Vec<Opened>,
    root: Opened,
}

/// An open directory, and the path by which it was reached.
#[derive(Debug)]
struct Opened {
    open: OwnedFd,
    path: PathBuf,
}

/// The type of a directory entry, with the open handle of a directory or link.
pub(crate) enum Found {
    Directory(OwnedFd),
    Link(OwnedFd),
    /// Any other type of file.
    Other,
}

/// Replaces the error for a missing link of an open file: the file is there, but `/proc` is not mounted.
fn no_proc(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            io::Error::other("/proc is not mounted; it is needed to find directories")
        }
        _ => error,
    }
}

impl Way {
    /// Opens the way to the directory at `path`, which may contain links.
    ///
    /// # Errors
    /// The operating system's error, or that a directory on the way was replaced meanwhile.
    pub fn of(path: &Path) -> io::Result<Self> {
        Self::of_open(&openat(CWD, path, DIRECTORY, Mode::empty())?)
    }

    /// Opens the way to an open directory.
    fn of_open(open: &OwnedFd) -> io::Result<Self> {
        let path = fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).map_err(no_proc)?;
        let way = Self::to(&path)?;
        if way.identity()? != Identity::of_open(open)? {
            return Err(io::Error::other("its path leads to another directory now"));
        }
        Ok(way)
    }

    /// Opens the way to the directory at `path`, which must be absolute and without links.
    ///
    /// # Errors
    /// The operating system's error, for example for a link on the way.
    pub fn to(path: &Path) -> io::Result<Self> {
        let mut way = Self::root()?;
        for name in path.iter().skip(1) {
            let open = openat(way.open(), name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
            way.enter(open, name);
        }
        Ok(way)
    }

    /// Returns the way to `/`.
    pub(crate) fn root() -> io::Result<Self> {
        let path = PathBuf::from("/");
        let root = Opened { open: openat(CWD, &path, DIRECTORY, Mode::empty())?, path };
        Ok(Self { below: Vec::new(), root })
    }

    fn last(&self) -> &Opened {
        self.below.last().unwrap_or(&self.root)
    }

    /// Returns the handle of the directory.
    pub fn open(&self) -> BorrowedFd<'_> {
        self.last().open.as_fd()
    }

    /// Returns the path of the directory, without links.
    pub fn path(&self) -> &Path {
        &self.last().path
    }

    /// Returns the handle of the directory, and closes the handles of its ancestors.
    pub fn into_open(mut self) -> OwnedFd {
        self.below.pop().unwrap_or(self.root).open
    }

    /// Returns the identity of the directory.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn identity(&self) -> io::Result<Identity> {
        Identity::of_open(self.open())
    }

    /// Returns the identity of the directory at `path`, if the way contains that directory.
    pub(crate) fn identity_of(&self, path: &Path) -> Option<Identity> {
        Identity::of_open(self.open_of(path)?).ok()
    }

    /// Returns the handle of the directory at `path`, if the way contains that directory.
    pub(crate) fn open_of(&self, path: &Path) -> Option<BorrowedFd<'_>> {
        self.places().find(|it| it.path == path).map(|it| it.open.as_fd())
    }

    /// Returns whether `known` contains the directory or one of its ancestors.
    pub fn is_in(&self, known: &Known) -> bool {
        let identity = |it: &Opened| Identity::of_open(&it.open).ok();
        self.places().filter_map(identity).any(|it| known.find(it).is_some())
    }

    /// Returns whether only root can change the entries of the directory and of its ancestors.
    pub(crate) fn is_roots(&self) -> io::Result<bool> {
        for place in self.places() {
            if Trusted::root().untrusted_writer(&place.open, &place.path)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn places(&self) -> impl Iterator<Item = &Opened> {
        std::iter::once(&self.root).chain(&self.below)
    }

    /// Shortens the way to the parent directory. A no-op at `/`.
    pub(crate) fn up(&mut self) {
        self.below.pop();
    }

    /// Extends the way by `open`, the subdirectory `name` of the directory.
    pub(crate) fn enter(&mut self, open: OwnedFd, name: &OsStr) {
        let path = self.path().join(name);
        self.below.push(Opened { open, path });
    }

    /// Opens the entry `name` of the directory, without following a link.
    pub(crate) fn look(&self, name: &OsStr) -> io::Result<Found> {
        // First with `O_DIRECTORY`, because `O_PATH` alone does not trigger an automount (open(2)).
        match openat(self.open(), name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => {}
            opened => return Ok(Found::Directory(opened?)),
        }
        let open = openat(self.open(), name, LOOK | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(match FileType::from_raw_mode(fstat(&open)?.st_mode) {
            FileType::Directory => Found::Directory(open),
            FileType::Symlink => Found::Link(open),
            _ => Found::Other,
        })
    }

    /// Follows the magic link `name`, such as `/proc/self/cwd`. Only the kernel can, because the link's text may not be a
    /// path to its target.
    pub(crate) fn through(&self, name: &OsStr) -> io::Result<Self> {
        Self::of_open(&openat(self.open(), name, DIRECTORY, Mode::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_way_stays_the_same_whatever_is_exchanged_on_it() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::create_dir_all(at("other/b")).unwrap();
        symlink("a", at("link")).unwrap();
        let way = Way::of(&at("link/b")).unwrap();
        assert_eq!(way.path(), at("a/b"));
        let known = |path: &str| Known::of([at(path)]);
        let (outer, other) = (known("a"), known("other"));
        fs::rename(at("a"), at("moved")).unwrap();
        symlink("other", at("a")).unwrap();
        assert!(way.is_in(&outer) && way.is_in(&known("moved/b")) && way.is_in(&known("")));
        assert!(!way.is_in(&other) && !way.is_in(&known("a/b")));
        assert_eq!(way.identity().unwrap(), Identity::of(&at("moved/b")).unwrap());
        Way::to(&at("a/b")).unwrap_err();
        Way::of(&at("none")).unwrap_err();
    }
}
