//! Finds the locks of boxes among the open files of processes.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use host_fs::OsError;

use super::super::{LOCKS, NAME, is_entry_name};
use super::owned;

/// How many open files of a process are examined. A supervisor opens the lock of its box early, so its number is low.
const MAX_OPEN: usize = 1024;

/// The lock of a box, locked by a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) state: PathBuf,
    pub(super) name: String,
}

/// Lists the ids of all processes.
///
/// # Errors
/// `/proc` cannot be read.
pub(super) fn all() -> Result<Vec<u32>, OsError> {
    let list = fs::read_dir("/proc").map_err(OsError::file("list", Path::new("/proc")))?;
    let id = |name: std::ffi::OsString| name.to_str()?.parse().ok();
    Ok(list.flatten().filter_map(|entry| id(entry.file_name())).collect())
}

/// Returns the locks of boxes that a process has locked. Empty for a process that has ended, or that this user may not examine.
pub(super) fn locks(pid: u32) -> Vec<Lock> {
    let directory = PathBuf::from(format!("/proc/{pid}"));
    let Ok(files) = fs::read_dir(directory.join("fd")) else { return Vec::new() };
    let lock = |file: fs::DirEntry| {
        let (state, name) = place(&fs::read_link(file.path()).ok()?)?;
        // Not the owner of `/proc/PID`, which is root for a process that hides its memory.
        let uid = user(&fs::read_to_string(directory.join("status")).ok()?)?;
        let information = directory.join("fdinfo").join(file.file_name());
        let is_locked = is_locked(&fs::read_to_string(information).ok()?);
        let lock = Lock { pid, uid, state, name };
        (is_locked && lock.is_at_path(&file.path())).then_some(lock)
    };
    files.take(MAX_OPEN).flatten().filter_map(lock).collect()
}

/// Splits the path of a lock into the state directory and the name of the box.
fn place(path: &Path) -> Option<(PathBuf, String)> {
    let name = path.file_name()?.to_str().filter(|it| is_entry_name(it))?;
    let boxes = path.parent().filter(|it| it.ends_with(LOCKS))?.parent()?;
    let state = boxes.ends_with(NAME).then(|| boxes.parent())??;
    state.is_absolute().then(|| (state.to_owned(), name.to_owned()))
}

/// Returns the user in a `/proc/PID/status`. `None` for a program that has several, such as a set-user-ID program.
fn user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut ids = line.split_whitespace().map(str::parse::<u32>);
    let first = ids.next()?.ok()?;
    ids.all(|it| it == Ok(first)).then_some(first)
}

/// Returns whether a `/proc/PID/fdinfo/FD` contains an exclusive flock(2) of the open file
/// ([proc_pid_fdinfo(5)](https://man7.org/linux/man-pages/man5/proc_pid_fdinfo.5.html)).
fn is_locked(information: &str) -> bool {
    let is_lock = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        line.starts_with("lock:") && words.contains(&"FLOCK") && words.contains(&"WRITE")
    };
    information.lines().any(is_lock)
}

impl Lock {
    /// Returns whether the open file, given as its link in `/proc`, is the file at the path of the lock, and belongs to the user.
    fn is_at_path(&self, link: &Path) -> bool {
        let path = self.state.join(NAME).join(LOCKS).join(&self.name);
        let is_same = || {
            let there = owned(&path, self.uid).ok()?.metadata().ok()?;
            let open = fs::metadata(link).ok()?;
            Some((there.dev(), there.ino()) == (open.dev(), open.ino()))
        };
        is_same() == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_path_of_a_lock_is_one() {
        let split = |path: &str| place(Path::new(path));
        let home = (PathBuf::from("/home/me/state"), "hello".to_owned());
        assert_eq!(split("/home/me/state/boxes/.locks/hello"), Some(home));
        for other in [
            "/home/me/state/boxes/.locks/hello (deleted)",
            "/home/me/state/boxes/.lock",
            "/home/me/state/boxes/hello",
            "/home/me/state/other/.locks/hello",
            "boxes/.locks/hello",
            "socket:[1]",
        ] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn the_user_is_the_only_one_of_the_process() {
        assert_eq!(user("Name:\tx\nUid:\t1000\t1000\t1000\t1000\n"), Some(1000));
        assert_eq!(user("Name:\tsudo\nUid:\t1000\t0\t0\t0\n"), None);
        assert_eq!(user("Name:\tUid: 0\n"), None);
    }

    #[test]
    fn only_an_exclusive_lock_of_the_whole_file_counts() {
        let line = |kind, access| {
            format!("pos:\t0\nlock:\t1: {kind}  ADVISORY  {access} 7 fd:00:9 0 EOF\n")
        };
        assert!(is_locked(&line("FLOCK", "WRITE")));
        assert!(!is_locked(&line("FLOCK", "READ")) && !is_locked(&line("POSIX", "WRITE")));
        assert!(!is_locked("pos:\t0\nflags:\t02100002\n"));
    }
}
