//! User and group maps for mounts: in the mount, files of the host's user belong to the component's user
//! (`MOUNT_ATTR_IDMAP` of [mount_setattr(2)](https://man7.org/linux/man-pages/man2/mount_setattr.2.html)).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, pause};

use crate::sys;

/// The number of user ids. The greatest 32-bit number is no user id.
const USERS: u32 = u32::MAX;

/// A user namespace of which only the maps are used.
#[derive(Debug)]
pub(crate) struct IdMap(File);

impl IdMap {
    /// Makes a map that exchanges the ids of `owner` and `user`, each a user and a group, and keeps all other ids.
    /// Returns `None` if `owner` and `user` are the same.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn between(owner: (u32, u32), user: (u32, u32)) -> std::io::Result<Option<Self>> {
        if owner == user {
            return Ok(None);
        }
        let child = sys::fork(CloneFlags::CLONE_NEWUSER, None, || {
            pause();
            0
        })?;
        let made = of(child, owner, user);
        kill(child, Signal::SIGKILL).ok();
        waitpid(child, None)?;
        made.map(|file| Some(Self(file)))
    }
}

impl AsFd for IdMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Writes the maps of a process's user namespace and opens the namespace.
fn of(process: Pid, owner: (u32, u32), user: (u32, u32)) -> std::io::Result<File> {
    let of_process = |name: &str| format!("/proc/{process}/{name}");
    fs::write(of_process("uid_map"), exchanged(owner.0, user.0))?;
    fs::write(of_process("gid_map"), exchanged(owner.1, user.1))?;
    File::open(of_process("ns/user"))
}

/// Returns the text of a map ([user_namespaces(7)](https://man7.org/linux/man-pages/man7/user_namespaces.7.html)) that
/// exchanges two ids. For example, 0 and 1 result in the lines `0 1 1`, `1 0 1` and `2 2 4294967293`.
fn exchanged(one: u32, other: u32) -> String {
    let (low, high) = (one.min(other), one.max(other));
    let mut text = String::new();
    let mut add = |inside: u32, outside: u32, count: u32| {
        if count > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{inside} {outside} {count}");
        }
    };
    if low == high {
        add(0, 0, USERS);
        return text;
    }
    add(0, 0, low);
    add(low, high, 1);
    add(low + 1, low + 1, high - low - 1);
    add(high, low, 1);
    add(high + 1, high + 1, USERS - high - 1);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ids_are_exchanged_and_all_others_are_themselves() {
        assert_eq!(exchanged(7, 7), "0 0 4294967295\n");
        assert_eq!(exchanged(0, 1), "0 1 1\n1 0 1\n2 2 4294967293\n");
        let expected = "0 1000 1\n1 1 999\n1000 0 1\n1001 1001 4294966294\n";
        assert_eq!(exchanged(1000, 0), expected);
        let last = "0 0 65534\n65534 4294967294 1\n65535 65535 4294901759\n4294967294 65534 1\n";
        assert_eq!(exchanged(65_534, USERS - 1), last);
    }
}
