//! cgroup v2: one leaf per component, `/sys/fs/cgroup/a3s/agent` and `/sys/fs/cgroup/a3s/business`, and one for the verification
//! of a task. Below its leaf, each program has a [`Tree`], which contains the program and everything that it has started.
//!
//! A leaf contains workloads. The agent's leaf also contains the tasks on skills, and each leaf the process that sends the
//! component's requests as files. Init, the components' holders and the bridges stay in the root cgroup, the only cgroup
//! that can have processes and children with controllers ([no internal process constraint](https://docs.kernel.org/admin-guide/cgroup-v2.html#no-internal-process-constraint)). So
//! these processes are not charged to a component's limits, and are not killed if a component is out of memory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use box_contract::wire::ComponentUsage;
use box_contract::{ComponentName, Limits};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{Pid, UnlinkatFlags, getpid, unlinkat};

use crate::error::{InitError, Step as _};

/// Where init mounts cgroup v2.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";
/// The parent of the leaves.
const PARENT: &str = "/sys/fs/cgroup/a3s";
/// The controllers that limit the leaves.
const CONTROLLERS: &str = "+memory +pids +cpu";

/// The file of a cgroup with the ids of its processes.
const PROCESSES: &str = "cgroup.procs";
/// The file of a cgroup that kills all processes of the cgroup and of those below it.
const KILL: &str = "cgroup.kill";

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
            Some(_) => self.processes().into_iter().any(|pid| Some(pid) != except),
        }
    }

    /// Sends a signal to every process of this leaf, apart from `except`. A process that has ended meanwhile is no error.
    pub(crate) fn signal_all(&self, signal: Signal, except: Option<Pid>) {
        let others = self.processes().into_iter().filter(|pid| Some(*pid) != except);
        others.for_each(|pid| send(pid, signal));
    }

    /// Returns the processes of the leaf and of its trees.
    fn processes(&self) -> Vec<Pid> {
        let trees = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        let trees = trees.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
        let files = trees.map(|it| it.path().join(PROCESSES));
        let files = files.chain([self.path.join(PROCESSES)]);
        let text = |it| std::fs::read_to_string(it).unwrap_or_default();
        files.flat_map(|it: PathBuf| pids(&text(it)).collect::<Vec<_>>()).collect()
    }

    /// Kills every process of this leaf at once, including processes that are forked meanwhile.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn kill(&self) -> Result<(), InitError> {
        write(&self.path.join(KILL).to_string_lossy(), "1")
    }
}

/// The cgroup of one program and of all processes that the program has started, also of those that have left its process group
/// or session. It is below the leaf of the program's component, without controllers: the leaf has the limits.
///
/// Opens no file by path, because a holder has no path to it.
#[derive(Debug)]
pub(crate) struct Tree {
    name: TreeName,
    directory: OwnedFd,
}

impl Tree {
    /// Makes an empty tree.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn create(leaf: &Leaf) -> io::Result<Self> {
        /// Distinguishes the trees of a process. Its copies have other process ids.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("{}-{}", getpid(), NUMBER.fetch_add(1, Ordering::Relaxed));
        mkdirat(leaf, name.as_str(), Mode::from_bits_truncate(0o755))?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let directory = openat(leaf, name.as_str(), flags, Mode::empty())?;
        Ok(Self { name: TreeName(name), directory })
    }

    /// Kills every process at once, including processes that are forked meanwhile.
    pub(crate) fn kill(&self) {
        if let Err(error) = self.open(KILL, OFlag::O_WRONLY).and_then(|mut it| it.write_all(b"1")) {
            crate::console::say(&format!("kill a program: {error}"));
        }
    }

    /// Sends a signal to every process.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let mut text = String::new();
        let read = self.open(PROCESSES, OFlag::O_RDONLY);
        if read.and_then(|mut it| it.read_to_string(&mut text)).is_ok() {
            pids(&text).for_each(|pid| send(pid, signal));
        }
    }

    /// Returns the name of the tree, which can then be removed. Closes the tree's file: many programs may leave processes behind.
    pub(crate) fn into_name(self) -> TreeName {
        self.name
    }

    fn open(&self, file: &str, flags: OFlag) -> io::Result<File> {
        Ok(File::from(openat(&self.directory, file, flags | OFlag::O_CLOEXEC, Mode::empty())?))
    }
}

/// The name of the tree of a program that has ended.
#[derive(Debug)]
pub(crate) struct TreeName(String);

impl TreeName {
    /// Removes the tree from its leaf. Returns whether that has succeeded: a tree with processes stays.
    pub(crate) fn remove(&self, leaf: &Leaf) -> bool {
        unlinkat(leaf, self.0.as_str(), UnlinkatFlags::RemoveDir).is_ok()
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// Sends a signal to a process. A process that has ended meanwhile is no error.
fn send(pid: Pid, signal: Signal) {
    if let Err(error) = kill(pid, signal)
        && error != Errno::ESRCH
    {
        crate::console::say(&format!("signal process {pid}: {error}"));
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
