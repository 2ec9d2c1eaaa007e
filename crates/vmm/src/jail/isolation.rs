//! The features of this host's kernel that isolate a process.

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{AccessFs, CompatLevel, Compatible as _, LandlockStatus, Ruleset, RulesetAttr as _};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};

/// The mount point of control groups.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// The kernel parameters that can forbid user namespaces.
const SWITCHES: [Switch; 3] = [
    Switch { name: "user.max_user_namespaces", forbids: "0", allows: "10000" },
    Switch { name: "kernel.unprivileged_userns_clone", forbids: "0", allows: "1" },
    Switch { name: "kernel.apparmor_restrict_unprivileged_userns", forbids: "1", allows: "0" },
];

/// The state of Landlock in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landlock {
    /// A process can restrict itself with Landlock. Holds the ABI version.
    Works(i32),
    /// The kernel was compiled with Landlock, but started without it.
    Disabled,
    /// The kernel was compiled without Landlock.
    Missing,
}

/// The control groups of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cgroups {
    /// Version 2.
    Unified {
        /// The controllers that are available in this process's group.
        controllers: Vec<String>,
        /// Whether this user may make groups below this process's group.
        delegated: bool,
    },
    /// Version 1, with or without a hierarchy of version 2.
    Legacy,
    /// No control groups are mounted.
    Missing,
}

impl Cgroups {
    /// Returns why a user can make no group for a VM. `None` if no obstacle is known.
    pub const fn fault(&self, is_root: bool) -> Option<&'static str> {
        match self {
            Self::Unified { delegated, .. } if is_root || *delegated => None,
            Self::Unified { .. } => Some("no control group is delegated to this user"),
            Self::Legacy | Self::Missing => Some("the host has no control groups of version 2"),
        }
    }
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
    /// Returns the version of Landlock's ABI.
    ///
    /// # Errors
    /// The reason why Landlock does not work, as text for the user.
    pub const fn version(self) -> Result<i32, &'static str> {
        match self {
            Self::Works(version) => Ok(version),
            Self::Disabled => Err("the kernel was started without it"),
            Self::Missing => Err("the kernel does not have it"),
        }
    }
}

/// Returns whether this kernel supports Landlock. The call does not restrict this process.
pub fn has_landlock() -> bool {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Execute)
        .and_then(Ruleset::create);
    rules.is_ok()
}

/// Determines the control groups of this process.
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
pub fn own_group() -> PathBuf {
    group_of(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

/// Returns the directory of the group in the text of `/proc/PID/cgroup` (cgroups(7)).
fn group_of(text: &str) -> PathBuf {
    let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Path::new(CGROUPS).join(path.trim_start_matches('/'))
}

/// Returns a control group and its ancestors. A process in `group` is subject to the limits of each of them.
///
/// # Examples
/// ```
/// use vmm::jail::isolation::with_above;
///
/// let groups: Vec<_> = with_above("/sys/fs/cgroup/user.slice/box".as_ref()).collect();
/// assert_eq!(groups[1], "/sys/fs/cgroup/user.slice");
/// assert_eq!(groups.len(), 3);
/// ```
pub fn with_above(group: &Path) -> impl Iterator<Item = &Path> {
    group.ancestors().take_while(|it| it.starts_with(CGROUPS))
}

/// A kernel parameter ([sysctl(8)](https://man7.org/linux/man-pages/man8/sysctl.8.html)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// The parameter's name.
    pub name: &'static str,
    /// The value that forbids the feature.
    pub forbids: &'static str,
    /// A value that allows the feature.
    pub allows: &'static str,
}

/// Returns the kernel parameters of this host that forbid user namespaces to ordinary users.
pub fn forbidden() -> Vec<Switch> {
    forbidden_by(Path::new("/proc/sys"))
}

/// Like [`forbidden`], but reads the parameters below the directory `settings` instead of `/proc/sys`.
pub fn forbidden_by(settings: &Path) -> Vec<Switch> {
    let forbids = |switch: &Switch| {
        let value = fs::read_to_string(settings.join(switch.name.replace('.', "/")));
        value.is_ok_and(|text| text.trim() == switch.forbids)
    };
    SWITCHES.into_iter().filter(forbids).collect()
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
        let with_above = |text: &str| {
            let group = group_of(text);
            with_above(&group).map(|it| it.components().collect::<PathBuf>()).collect::<Vec<_>>()
        };
        assert_eq!(
            with_above("12:cpu:/x\n0::/user.slice/a.scope\n"),
            ["user.slice/a.scope", "user.slice", ""].map(|it| Path::new(CGROUPS).join(it))
        );
        assert_eq!(with_above("0::/\n"), [Path::new(CGROUPS)]);
    }

    #[test]
    fn settings_that_forbid_are_found() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(forbidden_by(root.path()), []);
        for directory in ["user", "kernel"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        for switch in SWITCHES {
            fs::write(root.path().join(switch.name.replace('.', "/")), "0\n").unwrap();
        }
        assert_eq!(forbidden_by(root.path()), SWITCHES[..2]);
    }
}
