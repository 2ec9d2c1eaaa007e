//! The means of this host's kernel to isolate a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use landlock::{AccessFs, LandlockStatus, Ruleset, RulesetAttr};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};

/// Where control groups are mounted.
pub(crate) const CGROUPS: &str = "/sys/fs/cgroup";

/// The kernel's Landlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// A process restricted itself with it; the version of its interface.
    Works(i32),
    /// The kernel has it, and was started without it.
    Disabled,
    /// The kernel does not have it.
    Missing,
}

/// The control groups of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cgroups {
    /// Version 2.
    Unified {
        /// The controllers of this process's own group.
        controllers: Vec<String>,
        /// Whether this user may make groups below it.
        delegated: bool,
    },
    /// Version 1, with or without parts of version 2.
    Legacy,
    /// None are mounted.
    Missing,
}

/// Restricts a thread with Landlock, and lets it end.
pub fn landlock() -> Landlock {
    let tried = thread::spawn(|| {
        let rules = Ruleset::default().handle_access(AccessFs::Execute).ok()?;
        rules.create().ok()?.restrict_self().ok().map(|done| done.landlock)
    });
    tried.join().ok().flatten().map_or(Landlock::Missing, Landlock::from)
}

impl From<LandlockStatus> for Landlock {
    fn from(status: LandlockStatus) -> Self {
        match status {
            LandlockStatus::Available { effective_abi, kernel_abi } => {
                Self::Works(kernel_abi.unwrap_or(effective_abi as i32))
            }
            LandlockStatus::NotEnabled => Self::Disabled,
            LandlockStatus::NotImplemented => Self::Missing,
        }
    }
}

impl Landlock {
    /// Returns the version of its interface.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub const fn version(self) -> Result<i32, &'static str> {
        match self {
            Self::Works(version) => Ok(version),
            Self::Disabled => Err("the kernel was started without it"),
            Self::Missing => Err("the kernel does not have it"),
        }
    }
}

/// Reads which control groups this process is in.
pub fn cgroups() -> Cgroups {
    let Ok(mounted) = statfs(CGROUPS) else { return Cgroups::Missing };
    if mounted.filesystem_type() != CGROUP2_SUPER_MAGIC {
        let any = fs::read_dir(CGROUPS).is_ok_and(|mut entries| entries.next().is_some());
        return if any { Cgroups::Legacy } else { Cgroups::Missing };
    }
    let own = own_group();
    let controllers = fs::read_to_string(own.join("cgroup.controllers")).unwrap_or_default();
    let controllers = controllers.split_whitespace().map(str::to_owned).collect();
    let needed = [".", "cgroup.procs", "cgroup.subtree_control"];
    let delegated = needed.iter().all(|name| access(&own.join(name), AccessFlags::W_OK).is_ok());
    Cgroups::Unified { controllers, delegated }
}

/// Returns the directory of this process's control group of version 2.
pub(crate) fn own_group() -> PathBuf {
    group_of(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// Returns the directory of the group in the text of `/proc/PID/cgroup` (cgroups(7)).
fn group_of(text: &str) -> PathBuf {
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Path::new(CGROUPS).join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_that_of_version_2() {
        let text = "1:name=systemd:/x\n0::/user.slice/a b.scope\n";
        assert_eq!(group_of(text), Path::new("/sys/fs/cgroup/user.slice/a b.scope"));
        assert_eq!(group_of("0::/\n"), Path::new("/sys/fs/cgroup"));
        assert_eq!(group_of(""), Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn trying_landlock_leaves_this_thread_alone() {
        let tried = landlock();
        assert!(std::process::Command::new("/bin/true").status().unwrap().success());
        assert_eq!(landlock(), tried);
        if let Landlock::Works(version) = tried {
            assert!(version >= 1);
        }
    }
}
