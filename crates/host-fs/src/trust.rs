//! Checks whether another user could have put a file where it is.
//!
//! A file that is found, and that nobody named, must not come from a stranger: whoever can write to its
//! directory can replace it. git's `safe.directory` is there for the same reason.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};

use crate::steps::LINKS_MAX;

/// The users and groups that may change a file which is used because it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// Their user ids.
    pub users: Vec<u32>,
    /// The ids of groups in which there are no others.
    pub groups: Vec<u32>,
}

/// Somebody else who can change a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stranger {
    /// The user who owns the file, a link to it, or a directory of either.
    Owner(u32),
    /// A group that can write to this file or directory.
    Group(u32, PathBuf),
    /// Everybody can write to this file or directory.
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
    /// Trusts this user and their group, which on most systems has no other members, and root, who
    /// could change this program itself.
    pub fn this_user() -> Self {
        Self { users: vec![0, geteuid().as_raw()], groups: vec![0, getegid().as_raw()] }
    }

    /// Trusts also the one who became root with sudo, by a function that returns a variable's value.
    pub fn of_user(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let mut trusted = Self::this_user();
        let sudo = |name| variable(name)?.to_str()?.parse::<u32>().ok();
        if trusted.users.iter().all(|user| *user == 0) {
            trusted.users.extend(sudo("SUDO_UID"));
            trusted.groups.extend(sudo("SUDO_GID"));
        }
        trusted
    }

    /// Returns somebody else who can change a file or replace it, where symbolic links to it are part
    /// of it, and so are the directories of all of these.
    ///
    /// # Errors
    /// The operating system's; there is no such file, for example.
    pub fn stranger(&self, file: &Path) -> io::Result<Option<Stranger>> {
        let mut path = file.to_owned();
        for _ in 0..LINKS_MAX {
            let directory = path.parent().filter(|it| *it != Path::new(""));
            let directory = directory.unwrap_or(Path::new(".")).to_owned();
            let found = fs::symlink_metadata(&path)?;
            let of_directory = self.of(&directory, &fs::metadata(&directory)?);
            if let Some(stranger) = of_directory.or_else(|| self.of(&path, &found)) {
                return Ok(Some(stranger));
            }
            if !found.is_symlink() {
                return Ok(None);
            }
            path = fs::canonicalize(&directory)?.join(fs::read_link(&path)?);
        }
        Err(Errno::LOOP.into())
    }

    fn of(&self, path: &Path, found: &Metadata) -> Option<Stranger> {
        // The permissions of a link say nothing.
        let mode = if found.is_symlink() { 0 } else { found.mode() };
        let path = || path.to_owned();
        match (found.uid(), found.gid()) {
            (uid, _) if !self.users.contains(&uid) => Some(Stranger::Owner(uid)),
            _ if mode & 0o002 != 0 => Some(Stranger::Everybody(path())),
            (_, gid) if mode & 0o020 != 0 && !self.groups.contains(&gid) => {
                Some(Stranger::Group(gid, path()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A file of this user in a directory of this user, and who is trusted: nobody else.
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
        assert_eq!(trusted.stranger(&file).unwrap(), None);
        assert_eq!(Trusted::this_user().stranger(&file).unwrap(), None);
        set(&file, 0o664);
        assert_eq!(trusted.stranger(&file).unwrap(), None, "the user's own group");
    }

    #[test]
    fn another_owner_is_a_stranger() {
        let (_directory, file, trusted) = scene();
        let others = Trusted { users: vec![trusted.users[0] + 1], ..trusted.clone() };
        let stranger = others.stranger(&file).unwrap();
        assert_eq!(stranger, Some(Stranger::Owner(trusted.users[0])));
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
            assert_eq!(others.stranger(&file).unwrap(), group(path));
            set(path, 0o1777);
            let everybody = Some(Stranger::Everybody(path.to_owned()));
            assert_eq!(trusted.stranger(&file).unwrap(), everybody);
            set(path, 0o700);
        }
    }

    #[test]
    fn every_link_on_the_way_is_looked_at() {
        let (directory, file, trusted) = scene();
        let open = directory.path().join("open");
        fs::create_dir(&open).unwrap();
        symlink("../file", open.join("link")).unwrap();
        symlink("open/link", directory.path().join("start")).unwrap();
        let start = directory.path().join("start");
        assert_eq!(trusted.stranger(&start).unwrap(), None);
        set(&open, 0o777);
        assert!(matches!(trusted.stranger(&start).unwrap(), Some(Stranger::Everybody(_))));
        assert_eq!(trusted.stranger(&file).unwrap(), None);
        symlink("loop", directory.path().join("loop")).unwrap();
        trusted.stranger(&directory.path().join("loop")).unwrap_err();
    }
}
