//! Checks who else can change a file or a directory.
//!
//! There is one rule: a trusted user must own the file or directory, and neither all users nor an untrusted group may write
//! to it. Open handles are checked, because a path can lead elsewhere by the time of use. The trusted users are one of
//! these sets:
//!
//! - [`Trusted::alone`]: root and this user, for files that boxbuild itself made, and for files that are read long
//!   after the check;
//! - [`Trusted::this_user`]: in addition the groups of root and this user, for files that are used because they exist. On
//!   most systems a user's group has no other members, and with a umask of 002 it may write to all files of the user;
//! - [`Trusted::of_user`]: in addition the user who became root with sudo, and that user's group.
//!
//! There is one exception, [`Trusted::untrusted_replacer`], for a directory in which a file is made: a sticky directory, such as
//! `/tmp`, may be writable for all users, because they cannot replace each other's files there.
//!
//! If a search found a file that the user did not name, its directory is checked as well: a user who can write to the
//! directory can replace the file. git's [`safe.directory`](https://git-scm.com/docs/git-config) exists for the same reason.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::steps::MAX_LINKS;

/// Opens a file only for examining it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// In a directory with this bit, each user can rename and remove only their own files.
const STICKY: u32 = 0o1000;

/// The users and groups that may change a file or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The user ids.
    pub users: Vec<u32>,
    /// The group ids. All members of these groups are trusted.
    pub groups: Vec<u32>,
}

/// Untrusted users who can change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stranger {
    /// The user who owns the file, a link to it, or a directory of either.
    Owner(u32),
    /// A group that can write to this file or directory.
    Group(u32, PathBuf),
    /// All users can write to this file or directory.
    Everybody(PathBuf),
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(uid) => {
                write!(f, "it or its directory belongs to another user (uid {uid})")
            }
            Self::Group(gid, path) => {
                write!(f, "another group (gid {gid}) can write to {}", path.display())
            }
            Self::Everybody(path) => write!(f, "everybody can write to {}", path.display()),
        }
    }
}

impl Trusted {
    /// Trusts root, who could replace this program itself, this user, and the groups of both. On most systems a user's
    /// group has no other members.
    pub fn this_user() -> Self {
        Self { users: vec![0, geteuid().as_raw()], groups: vec![0, getegid().as_raw()] }
    }

    /// Like [`this_user`](Self::this_user), and trusts the user who became root with sudo, and that user's group.
    /// `variable` returns the value of an environment variable.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut trusted = Self::this_user();
        let sudo = |name| variable(name)?.to_str()?.parse::<u32>().ok();
        if trusted.users.iter().all(|user| *user == 0) {
            trusted.users.extend(sudo("SUDO_UID"));
            trusted.groups.extend(sudo("SUDO_GID"));
        }
        trusted
    }

    /// Trusts this user and root, and no group.
    pub fn alone() -> Self {
        Self { groups: Vec::new(), ..Self::this_user() }
    }

    /// Trusts root, and no group.
    pub fn root() -> Self {
        Self { users: vec![0], groups: Vec::new() }
    }

    /// Returns an untrusted user who can change an open file, or the entries of an open directory. `path` is its path for
    /// the result.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn untrusted_writer(&self, open: impl AsFd, path: &Path) -> io::Result<Option<Stranger>> {
        Ok(self.judge(&fstat(open)?, path))
    }

    /// Returns an untrusted user who can replace files that this user makes in `directory`, or who owns the symbolic link
    /// at that path. In a chain of links, only the first is checked.
    ///
    /// # Errors
    /// The operating system's error, for example if the path does not lead to a directory.
    pub fn untrusted_replacer(&self, directory: &Path) -> io::Result<Option<Stranger>> {
        let link = fstat(openat(CWD, directory, LOOK | OFlags::NOFOLLOW, Mode::empty())?)?;
        let mut found = fstat(openat(CWD, directory, LOOK | OFlags::DIRECTORY, Mode::empty())?)?;
        if found.st_mode & STICKY != 0 {
            found.st_mode &= !0o022;
        }
        let of_link = FileType::from_raw_mode(link.st_mode) == FileType::Symlink;
        let of_link = of_link.then(|| self.judge(&link, directory)).flatten();
        Ok(of_link.or_else(|| self.judge(&found, directory)))
    }

    /// Returns an untrusted user who can change or replace `file`, or, if it is a symbolic link, any file in its chain of
    /// links. The parent directory of each is checked as well.
    ///
    /// # Errors
    /// The operating system's error, for example if the file does not exist.
    pub fn untrusted_user_on_path(&self, file: &Path) -> io::Result<Option<Stranger>> {
        let mut path = file.to_owned();
        for _ in 0..MAX_LINKS {
            let parent = path.parent().filter(|it| *it != Path::new(""));
            let parent = parent.unwrap_or(Path::new(".")).to_owned();
            let directory = openat(CWD, &parent, LOOK | OFlags::DIRECTORY, Mode::empty())?;
            let open = match path.file_name() {
                Some(name) => openat(&directory, name, LOOK | OFlags::NOFOLLOW, Mode::empty())?,
                None => openat(CWD, &path, LOOK | OFlags::NOFOLLOW, Mode::empty())?,
            };
            let of_directory = self.untrusted_writer(&directory, &parent)?;
            if let Some(untrusted_user_on_path) =
                of_directory.or(self.untrusted_writer(&open, &path)?)
            {
                return Ok(Some(untrusted_user_on_path));
            }
            if FileType::from_raw_mode(fstat(&open)?.st_mode) != FileType::Symlink {
                return Ok(None);
            }
            let target = readlinkat(&open, "", Vec::new())?;
            let parent = fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
            path = parent.join(OsStr::from_bytes(target.as_bytes()));
        }
        Err(Errno::LOOP.into())
    }

    fn judge(&self, found: &Stat, path: &Path) -> Option<Stranger> {
        let is_link = FileType::from_raw_mode(found.st_mode) == FileType::Symlink;
        // Ignore the permissions of a link, which have no effect.
        let mode = if is_link { 0 } else { found.st_mode };
        let path = || path.to_owned();
        match (found.st_uid, found.st_gid) {
            (uid, _) if !self.users.contains(&uid) => Some(Stranger::Owner(uid)),
            _ if mode & 0o002 != 0 => Some(Stranger::Everybody(path())),
            (_, gid) if mode & 0o020 != 0 && !self.groups.contains(&gid) => {
                Some(Stranger::Group(gid, path()))
            }
            _ => None,
        }
    }
}

/// Returns `true` if only root and this user can change an open file or directory.
///
/// # Errors
/// The operating system's error.
pub fn is_private(open: impl AsFd) -> io::Result<bool> {
    Ok(Trusted::alone().untrusted_writer(open, Path::new("it"))?.is_none())
}

/// Opens a directory that only root and this user can change. A symbolic link is an error.
///
/// # Errors
/// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if another user can change it, or the operating system's error.
pub fn open_private(parent: impl AsFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = File::from(openat(parent, name, flags, Mode::empty())?);
    if is_private(&directory)? {
        return Ok(directory);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user can change it"))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};

    use super::*;

    /// A file of this user in a directory of this user, who alone is trusted.
    fn scene() -> (tempfile::TempDir, PathBuf, Trusted) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let own = fs::metadata(&file).unwrap();
        (directory, file, Trusted { users: vec![own.uid()], groups: vec![own.gid()] })
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_of_this_user_is_trusted() {
        let (_directory, file, trusted) = scene();
        assert_eq!(trusted.untrusted_user_on_path(&file).unwrap(), None);
        assert_eq!(Trusted::this_user().untrusted_user_on_path(&file).unwrap(), None);
        set(&file, 0o664);
        assert_eq!(trusted.untrusted_user_on_path(&file).unwrap(), None, "the user's own group");
    }

    #[test]
    fn another_owner_is_a_stranger() {
        let (_directory, file, trusted) = scene();
        let others = Trusted { users: vec![trusted.users[0] + 1], ..trusted.clone() };
        let untrusted_user_on_path = others.untrusted_user_on_path(&file).unwrap();
        assert_eq!(untrusted_user_on_path, Some(Stranger::Owner(trusted.users[0])));
        let text = "it or its directory belongs to another user (uid 7)";
        assert_eq!(Stranger::Owner(7).to_string(), text);
    }

    #[test]
    fn whoever_can_write_to_the_file_or_its_directory_is_a_stranger() {
        let (directory, file, trusted) = scene();
        let others = Trusted { groups: vec![trusted.groups[0] + 1], ..trusted.clone() };
        let group = |path: &Path| Some(Stranger::Group(trusted.groups[0], path.to_owned()));
        for path in [&file, directory.path()] {
            set(path, 0o770);
            assert_eq!(others.untrusted_user_on_path(&file).unwrap(), group(path));
            set(path, 0o1777);
            let everybody = Some(Stranger::Everybody(path.to_owned()));
            assert_eq!(trusted.untrusted_user_on_path(&file).unwrap(), everybody);
            set(path, 0o700);
        }
    }

    #[test]
    fn what_is_private_belongs_to_root_or_this_user_and_nobody_else_may_write_to_it() {
        let (directory, file, _) = scene();
        let open = || File::open(directory.path()).unwrap();
        for (mode, private) in
            [(0o700, true), (0o755, true), (0o770, false), (0o702, false), (0o1777, false)]
        {
            set(directory.path(), mode);
            assert_eq!(is_private(open()).unwrap(), private, "{mode:o}");
            assert_eq!(open_private(CWD, directory.path()).is_ok(), private, "{mode:o}");
        }
        set(directory.path(), 0o700);
        assert!(is_private(File::open("/usr").unwrap()).unwrap(), "root's");
        symlink(directory.path(), directory.path().join("link")).unwrap();
        open_private(CWD, &directory.path().join("link")).unwrap_err();
        open_private(CWD, &file).unwrap_err();
        if give_away(directory.path()) {
            assert!(!is_private(open()).unwrap());
            let error = open_private(CWD, directory.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
    }

    #[test]
    fn nobody_else_exchanges_what_is_in_a_closed_or_a_sticky_directory() {
        let (directory, file, this_user) = scene();
        let alone = Trusted { groups: Vec::new(), ..this_user.clone() };
        let untrusted_replacer = |trusted: &Trusted, mode| {
            set(directory.path(), mode);
            trusted.untrusted_replacer(directory.path()).unwrap()
        };
        for mode in [0o700, 0o755, 0o1777, 0o1770] {
            assert_eq!(untrusted_replacer(&alone, mode), None, "{mode:o}");
        }
        assert!(matches!(untrusted_replacer(&alone, 0o777), Some(Stranger::Everybody(_))));
        assert!(matches!(untrusted_replacer(&alone, 0o775), Some(Stranger::Group(..))));
        assert_eq!(untrusted_replacer(&this_user, 0o775), None, "the user's own group");
        alone.untrusted_replacer(&file).unwrap_err();
        alone.untrusted_replacer(Path::new("/no/such/directory")).unwrap_err();
        let link = directory.path().join("link");
        symlink("/usr", &link).unwrap();
        assert_eq!(Trusted::alone().untrusted_replacer(&link).unwrap(), None);
        if give_away(&link) {
            assert_eq!(alone.untrusted_replacer(&link).unwrap(), Some(Stranger::Owner(54_321)));
        }
        if give_away(directory.path()) {
            assert_eq!(untrusted_replacer(&alone, 0o1777), Some(Stranger::Owner(54_321)));
        }
    }

    /// Gives a file to another user. Returns `false` if this user is not root.
    fn give_away(path: &Path) -> bool {
        lchown(path, Some(54_321), None).is_ok()
    }

    #[test]
    fn every_link_on_the_way_is_looked_at() {
        let (directory, file, trusted) = scene();
        let open = directory.path().join("open");
        fs::create_dir(&open).unwrap();
        symlink("../file", open.join("link")).unwrap();
        symlink("open/link", directory.path().join("start")).unwrap();
        let start = directory.path().join("start");
        assert_eq!(trusted.untrusted_user_on_path(&start).unwrap(), None);
        set(&open, 0o777);
        assert!(matches!(
            trusted.untrusted_user_on_path(&start).unwrap(),
            Some(Stranger::Everybody(_))
        ));
        assert_eq!(trusted.untrusted_user_on_path(&file).unwrap(), None);
        symlink("loop", directory.path().join("loop")).unwrap();
        trusted.untrusted_user_on_path(&directory.path().join("loop")).unwrap_err();
    }
}
