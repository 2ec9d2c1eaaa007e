//! The names of the two guest kernels of this project, and the kernel options that a box needs.

use crate::plan::{Namespaces, RunPlan, SandboxFallback, SandboxPreset};

crate::named_enum! {
    /// A guest kernel that a Boxfile declares by its name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum KernelName {
        /// The kernel that is built for boxes, with only the options that boxes need.
        Lean "lean",
        /// The kernel of [libkrunfw](https://github.com/containers/libkrunfw).
        Krunfw "krunfw",
    }
}

impl KernelName {
    /// The suffix of the lean kernel's release, as printed by `uname -r`.
    pub const LEAN_RELEASE: &'static str = "-boxbuild";

    /// Returns whether a kernel's release is that of the lean kernel.
    pub fn is_lean(release: &str) -> bool {
        release.trim_end().ends_with(Self::LEAN_RELEASE)
    }

    /// Returns the kernel with this name, or `None` if the text is a path.
    pub fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == text)
    }

    /// Puts `./` before a path that would otherwise be parsed as a name.
    pub fn as_path(path: String) -> String {
        if Self::of(&path).is_some() { format!("./{path}") } else { path }
    }

    /// Returns the file name of this kernel in the user's data directory.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Lean => "lean-kernel",
            Self::Krunfw => "guest-kernel",
        }
    }
}

/// A kernel configuration option that a box needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The option's name, without `CONFIG_`.
    pub option: &'static str,
    /// The part of the box that needs the option.
    pub by: &'static str,
}

impl Need {
    /// [Landlock](https://docs.kernel.org/userspace-api/landlock.html). `CONFIG_LSM`, the list of modules that the
    /// kernel starts, must also contain it.
    pub const LANDLOCK: &'static str = "SECURITY_LANDLOCK";
}

/// The options that every box needs.
const ALWAYS: [Need; 24] = [
    Need { option: "VIRTIO_MMIO_CMDLINE_DEVICES", by: "libkrun's devices" },
    Need { option: "VIRTIO_BLK", by: "the root's disk" },
    Need { option: "VIRTIO_CONSOLE", by: "the console" },
    Need { option: "VIRTIO_VSOCKETS", by: "the channel to the launcher" },
    Need { option: "VIRTIO_FS", by: "the first root" },
    Need { option: "EROFS_FS", by: "the root" },
    Need { option: "EROFS_FS_XATTR", by: "the root's extended attributes" },
    Need { option: "OVERLAY_FS", by: "the root's writable layer" },
    Need { option: "EXT4_FS", by: "the disk of the root's writable layer" },
    Need { option: "TMPFS", by: "the root's writable layer" },
    Need { option: "DEVTMPFS", by: "/dev" },
    Need { option: "PROC_FS", by: "/proc" },
    Need { option: "SYSFS", by: "/sys" },
    Need { option: "CGROUPS", by: "the limits of components" },
    Need { option: "MEMCG", by: "`memory`" },
    Need { option: "CGROUP_PIDS", by: "`pids`" },
    Need { option: "FAIR_GROUP_SCHED", by: "`cpu-weight`" },
    Need { option: "MULTIUSER", by: "the components' users" },
    Need { option: "PROC_SYSCTL", by: "the ban on user namespaces" },
    Need { option: "SIGNALFD", by: "box-init" },
    Need { option: "SECCOMP_FILTER", by: "the filters of system calls" },
    Need { option: "UNIX", by: "the box's sockets" },
    Need { option: "INET", by: "loopback" },
    Need { option: "UNIX98_PTYS", by: "terminals" },
];

/// Returns the kernel options that a box with this plan needs.
pub fn needs(plan: &RunPlan) -> Vec<Need> {
    let mut needs = ALWAYS.to_vec();
    let mut add =
        |is_needed: bool, option, by| needs.extend(is_needed.then_some(Need { option, by }));
    let own = |of: fn(Namespaces) -> bool| plan.components().any(|(_, it)| of(it.namespaces));
    add(own(|it| it.pid), "PID_NS", "`namespaces pid`");
    add(own(|it| it.ipc), "IPC_NS", "`namespaces ipc`");
    add(own(|it| it.uts), "UTS_NS", "`namespaces uts`");
    add(own(|it| it.net), "NET_NS", "`namespaces net`");
    add(plan.vm.cpus > 1, "SMP", "`vm` with more than one CPU");
    let strict = plan.sandbox.as_ref().is_some_and(|it| it.fallback == SandboxFallback::Strict);
    add(strict, Need::LANDLOCK, "`sandbox` (and landlock in CONFIG_LSM)");
    let is_offline = plan.sandbox.as_ref().is_some_and(|it| it.preset == SandboxPreset::Ci);
    add(is_offline, "NET_NS", "`sandbox \"ci\"`");
    add(!plan.shares.is_empty(), "FUSE_FS", "`share`");
    add(plan.has_file_requests(), "INOTIFY_USER", "`cap \"http\"`");
    needs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::grown;

    #[test]
    fn a_path_is_never_a_name() {
        assert_eq!(KernelName::of("lean"), Some(KernelName::Lean));
        assert_eq!(KernelName::of("./lean"), None);
        assert_eq!(KernelName::as_path("krunfw".to_owned()), "./krunfw");
        assert_eq!(KernelName::as_path("boot/lean".to_owned()), "boot/lean");
    }

    #[test]
    fn what_a_box_declares_decides_what_it_needs() {
        let options = |more: &str| {
            let needs = needs(&grown(more));
            needs.iter().map(|it| it.option).collect::<Vec<_>>()
        };
        let plain = options("{}");
        assert_eq!(
            plain[ALWAYS.len()..],
            ["PID_NS", "IPC_NS", "UTS_NS"],
            "one CPU and nothing else"
        );
        let more = options(
            r#"{"vm": {"cpus": 2, "memory-mib": 512}, "sandbox": {"preset": "ci", "fallback": "strict", "max-output-bytes": 1}}"#,
        );
        assert_eq!(more[plain.len()..], ["SMP", "SECURITY_LANDLOCK", "NET_NS"]);
    }
}
