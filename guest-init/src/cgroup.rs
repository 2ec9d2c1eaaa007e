//! cgroup v2: one leaf per component, `/sys/fs/cgroup/a3s/agent` and `/sys/fs/cgroup/a3s/business`, and one for the verification
//! of a task.
//!
//! A leaf contains workloads. The agent's leaf also contains the tasks on skills, and each leaf the process that sends the
//! component's requests as files. Init, the components' holders and the bridges stay in the root cgroup, the only cgroup
//! that can have processes and children with controllers ([no internal process constraint](https://docs.kernel.org/admin-guide/cgroup-v2.html#no-internal-process-constraint)). So
//! these processes are not charged to a component's limits, and are not killed if a component is out of memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use box_contract::wire::ComponentUsage;
use box_contract::{ComponentName, Limits};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::error::{InitError, Step as _};

/// Where init mounts cgroup v2.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";
/// The parent of the leaves.
const PARENT: &str = "/sys/fs/cgroup/a3s";
/// The controllers that limit the leaves.
const CONTROLLERS: &str = "+memory +pids +cpu";

/// Enables the controllers for the leaves.
///
/// # Errors
/// The kernel's error, with the file.
pub(crate) fn prepare() -> Result<(), InitError> {
    let enable = |parent: &str| write(&format!("{parent}/cgroup.subtree_control"), CONTROLLERS);
    enable(MOUNT)?;
    std::fs::create_dir(PARENT).step_with(|| format!("make {PARENT}"))?;
    enable(PARENT)
}

fn write(path: &str, value: &str) -> Result<(), InitError> {
    try_write(path, value).step_with(|| format!("write `{value}` to {path}"))
}

/// Writes without `O_CREAT`, so that a missing file is `NotFound`.
fn try_write(path: &str, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// Returns the files of a leaf that set its limits, with their contents.
fn settings(limits: &Limits) -> [(&'static str, String); 3] {
    [
        ("memory.max", limits.memory_bytes.to_string()),
        ("cpu.weight", limits.cpu_weight.to_string()),
        ("pids.max", limits.pids.to_string()),
    ]
}

/// The cgroup of one component's workloads.
#[derive(Debug)]
pub(crate) struct Leaf {
    path: PathBuf,
    directory: File,
}

impl Leaf {
    /// Makes the leaf and sets its limits.
    ///
    /// # Errors
    /// The kernel's error, with the file.
    pub(crate) fn create(name: &str, limits: &Limits) -> Result<Self, InitError> {
        let path = format!("{PARENT}/{name}");
        std::fs::create_dir(&path).step_with(|| format!("make {path}"))?;
        for (file, value) in settings(limits) {
            write(&format!("{path}/{file}"), &value)?;
        }
        // The file exists only if the kernel supports swap.
        match try_write(&format!("{path}/memory.swap.max"), "0") {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).step_with(|| format!("write {path}/memory.swap.max"));
            }
            _ => {}
        }
        let directory = File::open(&path).step_with(|| format!("open {path}"))?;
        Ok(Self { path: path.into(), directory })
    }

    /// Returns the leaf's directory, as a path in init's mount namespace.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path.join(file)).unwrap_or_default()
    }

    /// Returns whether the kernel's out-of-memory killer has ended a process of this leaf.
    pub(crate) fn oom_killed(&self) -> bool {
        counter(&self.read("memory.events"), "oom_kill") > 0
    }

    /// Returns the component's resource usage and limits. The fields of its disk are 0.
    pub(crate) fn usage(&self, component: ComponentName) -> ComponentUsage {
        let number = |file| self.read(file).trim().parse().unwrap_or(0);
        ComponentUsage {
            component,
            memory_bytes: number("memory.current"),
            memory_peak_bytes: number("memory.peak"),
            memory_max_bytes: number("memory.max"),
            cpu_us: counter(&self.read("cpu.stat"), "usage_usec"),
            pids: number("pids.current"),
            pids_max: number("pids.max"),
            disk_bytes: 0,
            disk_max_bytes: 0,
            oom_kills: counter(&self.read("memory.events"), "oom_kill"),
        }
    }

    /// Returns whether a process of this leaf is alive, apart from `except`.
    pub(crate) fn is_populated(&self, except: Option<Pid>) -> bool {
        match except {
            None => counter(&self.read("cgroup.events"), "populated") > 0,
            Some(_) => pids(&self.read("cgroup.procs")).any(|pid| Some(pid) != except),
        }
    }

    /// Sends a signal to every process of this leaf, apart from `except`. A process that has ended meanwhile is no error.
    pub(crate) fn signal_all(&self, signal: Signal, except: Option<Pid>) {
        for pid in pids(&self.read("cgroup.procs")).filter(|pid| Some(*pid) != except) {
            if let Err(error) = kill(pid, signal)
                && error != Errno::ESRCH
            {
                crate::console::say(&format!("signal process {pid}: {error}"));
            }
        }
    }

    /// Kills every process of this leaf at once, including processes that are forked meanwhile.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn kill(&self) -> Result<(), InitError> {
        write(&self.path.join("cgroup.kill").to_string_lossy(), "1")
    }
}

impl AsFd for Leaf {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Returns a value of a flat keyed file, or zero if the key is missing. For example, `oom_kill` of `memory.events`.
fn counter(text: &str, key: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

/// Returns the process ids of a `cgroup.procs`. Skips 1, which is init, and 0, which stands for a process of a foreign
/// PID namespace.
fn pids(text: &str) -> impl Iterator<Item = Pid> {
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1).map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_become_the_texts_of_files() {
        let limits = Limits { memory_bytes: 512 << 20, cpu_weight: 512, pids: 100 };
        let expected = [("memory.max", "536870912"), ("cpu.weight", "512"), ("pids.max", "100")];
        assert_eq!(settings(&limits).map(|(file, text)| (file, text.leak() as &str)), expected);
    }

    #[test]
    fn a_key_is_matched_whole() {
        let events = "low 0\nhigh 1\nmax 7\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(counter(events, "oom_kill"), 2);
        assert_eq!(counter(events, "oom"), 3);
        assert_eq!(counter("oom_kill_x 9\n", "oom_kill"), 0);
        assert_eq!(counter("", "populated"), 0);
    }

    #[test]
    fn init_and_foreign_processes_are_never_signalled() {
        let found: Vec<_> = pids("1\n0\n42\n-1\nx\n77\n").map(Pid::as_raw).collect();
        assert_eq!(found, [42, 77]);
    }
}
