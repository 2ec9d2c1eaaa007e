//! Links, pipes, sockets and devices in a repository: git has no use for them, and writes through links.

use std::ffi::{OsStr, OsString};
use std::fs::{self, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use host_fs::read::{Links, read_file};
use safe_text::shell_path;
use vmm::jail::NOWHERE;

use super::GitError;
use super::git::is_named;
use super::index::{Index, is_index};

/// What is neither a file nor a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A symbolic link. git writes to some files through it.
    Link,
    /// A named pipe, at which git waits.
    Pipe,
    /// A Unix socket.
    Socket,
    /// A character or a block device.
    Device,
}

impl Special {
    /// Returns the kind of an entry. `None` for files and directories.
    pub(super) fn of(kind: FileType) -> Option<Self> {
        if kind.is_symlink() {
            return Some(Self::Link);
        }
        if kind.is_fifo() {
            return Some(Self::Pipe);
        }
        if kind.is_socket() {
            return Some(Self::Socket);
        }
        (kind.is_char_device() || kind.is_block_device()).then_some(Self::Device)
    }
}

impl std::fmt::Display for Special {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Link => "a symbolic link, through which git would write",
            Self::Pipe => "a pipe, at which git would wait",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

/// How many entries of a repository are checked.
const MAX_ENTRIES: usize = 1_000_000;
/// The greatest size of an index that is checked, in bytes: some million files.
const MAX_INDEX: u64 = 256 << 20;

/// Checks that the repository `root/path` has only files and directories, except below `kept`, where a box makes nothing, and that
/// each index has only files of the project. `kept` is relative to `root`. Ignores directories that this user cannot read, in which git
/// cannot write either.
///
/// # Errors
/// [`GitError::Special`] or [`GitError::Index`] for the first such entry, in the order of the names, [`GitError::TooMany`], and
/// [`GitError::File`].
pub(super) fn check_special(root: &Path, path: &Path, kept: &[PathBuf]) -> Result<(), GitError> {
    let (mut left, mut count) = (vec![path.to_owned()], 0);
    while let Some(directory) = left.pop() {
        let mut entries = match list(&root.join(&directory)) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            listed => {
                listed.map_err(|source| GitError::File { path: root.join(&directory), source })?
            }
        };
        count += entries.len();
        if count > MAX_ENTRIES {
            return Err(GitError::TooMany(root.join(path)));
        }
        entries.sort_by(|a, b| b.0.cmp(&a.0));
        let is_named = directory.strip_prefix(path).is_ok_and(is_named);
        for (name, kind) in entries {
            let path = directory.join(&name);
            if kept.contains(&path) {
                continue;
            }
            check_kind(&root.join(&path), kind)?;
            if kind.is_dir() {
                left.push(path);
            } else if !is_named && is_index(&name) {
                check_index(&root.join(&path))?;
            }
        }
    }
    Ok(())
}

fn check_kind(path: &Path, kind: FileType) -> Result<(), GitError> {
    let Some(kind) = Special::of(kind) else { return Ok(()) };
    // A box may have left the link with which git tests for links. It leads nowhere.
    let is_nowhere = |it: PathBuf| it.as_os_str().as_bytes() == NOWHERE.to_bytes();
    let is_test = kind == Special::Link && fs::read_link(path).is_ok_and(is_nowhere);
    if is_test { Ok(()) } else { Err(GitError::Special { path: path.to_owned(), kind }) }
}

fn check_index(path: &Path) -> Result<(), GitError> {
    let index = read_file(path, Links::Refuse, MAX_INDEX);
    let index =
        index.map_err(|error| GitError::File { path: path.to_owned(), source: error.into() })?;
    match Index::of(&index) {
        // An index that only git can read does not stop a start: `left` names it.
        Index::Fine | Index::Unreadable => Ok(()),
        Index::Stray(entry) => {
            let entry = shell_path(Path::new(OsStr::from_bytes(&entry)));
            Err(GitError::Index { path: path.to_owned(), entry })
        }
    }
}

/// Returns the names in a directory, each with its kind.
fn list(directory: &Path) -> io::Result<Vec<(OsString, FileType)>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| entry.and_then(|it| Ok((it.file_name(), it.file_type()?)))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_repository_has_only_files_and_directories() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in [".git/logs/refs", ".git/hooks", ".git/objects/ab"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        let check = || {
            let kept = [".git/hooks".into()];
            let checked = check_special(dir.path(), Path::new(".git"), &kept);
            checked.map_err(|it| it.to_string().replace(&format!("{}/", dir.path().display()), ""))
        };
        symlink("../../scripts/check", at(".git/hooks/pre-commit")).unwrap();
        symlink("elsewhere", at("link")).unwrap();
        symlink("/dev/null/testing", at(".git/FETCH_HEAD")).unwrap();
        assert_eq!(check(), Ok(()));
        let entry = [&[0; 61][..], &[4], b"../x\0\0\0\0\0\0"].concat();
        let index = [&b"DIRC\0\0\0\x02\0\0\0\x01"[..], &entry, &[0; 20]].concat();
        fs::write(at(".git/index"), index).unwrap();
        assert_eq!(
            check().unwrap_err(),
            ".git/index has the entry ../x, which is no file of the project"
        );
        fs::remove_file(at(".git/index")).unwrap();
        let _server = UnixListener::bind(at(".git/z")).unwrap();
        assert_eq!(check().unwrap_err(), ".git/z is a socket");
        mkfifo(&at(".git/objects/ab/cd"), Mode::S_IRWXU).unwrap();
        fs::remove_file(at(".git/z")).unwrap();
        assert_eq!(check().unwrap_err(), ".git/objects/ab/cd is a pipe, at which git would wait");
        symlink("/home/me/.bashrc", at(".git/logs/HEAD")).unwrap();
        let error = ".git/logs/HEAD is a symbolic link, through which git would write";
        assert_eq!(check().unwrap_err(), error);
    }
}
