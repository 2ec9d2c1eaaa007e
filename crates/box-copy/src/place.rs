//! The source or destination of a copy: an open directory, and perhaps a name in it. Because the directory is open, another
//! program that replaces a directory of the path does not redirect the copy.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use host_fs::publish::{open_directory, parent_of};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::name_of;

/// The source or the destination of a copy.
#[derive(Debug)]
pub struct CopyEnd {
    pub(crate) directory: OwnedFd,
    /// The path of the directory, for messages.
    pub(crate) path: PathBuf,
    /// The name in the directory. `None` means the directory itself.
    pub(crate) name: Option<OsString>,
    /// Whether a symbolic link under the name is followed.
    pub(crate) follows: bool,
}

impl CopyEnd {
    /// Opens the source at `path`: the entry with the path's last name, or the content of the directory if the path ends with
    /// `/.`. `find` opens a directory by its path, as [`by_path`] does.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn source<E>(
        path: &Path,
        find: impl FnOnce(&Path) -> Result<OwnedFd, E>,
    ) -> Result<Self, E> {
        match path.file_name().filter(|_| name_of(path) != ".") {
            Some(name) => Self::of(parent_of(path), Some(name), find),
            None => Self::of(path, None, find),
        }
    }

    /// Opens the destination at `path`. If there is a directory at `path`, the copy is placed inside it, and otherwise the copy
    /// gets the path's last name. A symbolic link to a directory is used as a directory only if the path ends with `/` or `/.`.
    /// `find` opens a directory by its path, as [`by_path`] does.
    ///
    /// # Errors
    /// The errors of `find`.
    pub fn destination<E>(
        path: &Path,
        find: impl Fn(&Path) -> Result<OwnedFd, E>,
    ) -> Result<Self, E> {
        let ends = |with: &[u8]| path.as_os_str().as_bytes().ends_with(with);
        let Some(name) = path.file_name().filter(|_| !ends(b"/")) else {
            return Self::of(path, None, find);
        };
        let place = Self::of(parent_of(path), Some(name), &find)?;
        if ends(b"/.") && place.leads_to_directory() {
            return Self::of(path, None, find);
        }
        Ok(place)
    }

    fn of<E>(
        path: &Path,
        name: Option<&OsStr>,
        find: impl FnOnce(&Path) -> Result<OwnedFd, E>,
    ) -> Result<Self, E> {
        let directory = find(path)?;
        let name = name.map(OsStr::to_owned);
        Ok(Self { directory, path: path.to_owned(), name, follows: false })
    }

    /// Returns the destination with the permission to follow a symbolic link under its name, as `docker cp` does. Use it only as
    /// [`by_path`].
    #[must_use]
    pub fn following(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Checks that the name exists in the directory.
    ///
    /// # Errors
    /// The operating system's error, with the path.
    pub fn check(&self) -> io::Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let found = statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        found.map(drop).map_err(|errno| at_path(&self.path.join(name), errno.into()))
    }

    /// Returns whether the name is a directory or a symbolic link to one.
    fn leads_to_directory(&self) -> bool {
        let Some(name) = &self.name else { return true };
        statat(&self.directory, name, AtFlags::empty())
            .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
    }

    /// If the name is a directory, opens it, and returns it without a name. A symbolic link is followed only with
    /// [`Self::following`]: it may be a copy of a link that a box has made.
    pub(crate) fn enter(self) -> io::Result<Self> {
        let Some(name) = &self.name else { return Ok(self) };
        let path = self.path.join(name);
        let opened = if self.follows && self.leads_to_directory() {
            let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
            openat(&self.directory, name, flags, Mode::empty())
        } else {
            open_directory(&self.directory, name)
        };
        match opened {
            Ok(directory) => Ok(Self { directory, path, name: None, ..self }),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(self),
            Err(errno) => Err(at_path(&path, errno.into())),
        }
    }
}

/// Opens a directory by its path with `O_PATH` ([open(2)](https://man7.org/linux/man-pages/man2/open.2.html)), and follows all
/// symbolic links. Use it only if everybody who can make these links could also do the copy, as in the guest.
///
/// # Errors
/// The operating system's error, with the path.
pub fn by_path(path: &Path) -> io::Result<OwnedFd> {
    // `O_PATH` needs no permission to read the directory.
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|errno| at_path(path, errno.into()))
}

/// Adds the path at which an error happened to its text. Bytes that a terminal could interpret are escaped.
pub fn at_path(path: &Path, error: io::Error) -> io::Error {
    // Removes a slash or `/.` at the end.
    let path: PathBuf = path.components().collect();
    let path = path.into_os_string().into_vec().escape_ascii().to_string();
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the path of the directory that was opened, and the name in it.
    fn parts(place: &CopyEnd) -> (String, Option<&str>) {
        let name = place.name.as_deref().and_then(OsStr::to_str);
        (place.path.display().to_string(), name)
    }

    #[test]
    fn a_path_is_a_name_in_a_directory_or_the_directory() {
        let find = |_: &Path| by_path(Path::new("/"));
        for (path, directory, name) in [
            ("a/b", "a", Some("b")),
            ("a", ".", Some("a")),
            ("/a/b/", "/a", Some("b")),
            ("a/b/.", "a/b/.", None),
            ("..", "..", None),
            ("/", "/", None),
        ] {
            let place = CopyEnd::source(Path::new(path), find).unwrap();
            assert_eq!(parts(&place), (directory.to_owned(), name), "{path}");
        }
        for (path, directory, name) in [
            ("a/b", "a", Some("b")),
            ("a", ".", Some("a")),
            ("/a/b/", "/a/b/", None),
            // `/tmp` exists in these tests, `/missing` does not.
            ("/tmp/.", "/tmp/.", None),
            ("/missing/.", "/", Some("missing")),
            ("..", "..", None),
        ] {
            let place = CopyEnd::destination(Path::new(path), find).unwrap();
            assert_eq!(parts(&place), (directory.to_owned(), name), "{path}");
        }
    }

    #[test]
    fn every_directory_is_found_by_whoever_copies() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::create_dir(at("real")).unwrap();
        symlink("real", at("link")).unwrap();
        let refused = |_: &Path| Err("refused");
        for path in ["link/a", "link/", "link/.", "real"] {
            assert_eq!(CopyEnd::source(&at(path), refused).unwrap_err(), "refused", "{path}");
            assert_eq!(CopyEnd::destination(&at(path), refused).unwrap_err(), "refused", "{path}");
        }
        // A link to a directory is entered only if the path ends with a slash.
        let enter = |path: &str| {
            let place = CopyEnd::destination(&at(path), by_path).unwrap().enter().unwrap();
            (place.path, place.name)
        };
        assert_eq!(enter("real"), (at("real"), None));
        assert_eq!(enter("link"), (at(""), Some("link".into())));
        assert_eq!(enter("link/."), (at("link/."), None));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = by_path(Path::new("/none/.")).unwrap_err().to_string();
        assert_eq!(error, "/none: No such file or directory (os error 2)");
        let place = CopyEnd::source(Path::new("/none"), by_path).unwrap();
        assert_eq!(place.check().unwrap_err().to_string(), error);
        CopyEnd::source(Path::new("/tmp"), by_path).unwrap().check().unwrap();
    }
}
