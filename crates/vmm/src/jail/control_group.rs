//! The control group of a VM, which bounds its memory, its processes and its CPU time
//! ([cgroups(7)](https://man7.org/linux/man-pages/man7/cgroups.7.html), version 2).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::Vm;
use nix::errno::Errno;
use nix::unistd::{Pid, geteuid};
use rustix::fs::getxattr;

use crate::jail::isolation::{CGROUPS, cgroups, own_group};

/// The parent of the groups of the VMs that root starts. It is a child of the host's root group.
const PARENT: &str = "boxlaunch";
/// The group of the supervisor, a sibling of the groups of VMs, in a delegated group.
const SUPERVISOR: &str = "supervisor";
/// The controllers that the group of a VM needs.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The group of systemd's control processes, such as those of `ExecReload=`, in a delegated group. A box that replaces another one
/// when its service is reloaded starts there.
const CONTROL: &str = ".control";
/// The memory that the VMM process may use in addition to the guest's memory, in bytes. The process uses a tenth of it.
/// The rest is for the host's page cache of the box's files, which the kernel charges to the group.
const OWN_MEMORY: u64 = 256 << 20;
/// The limit on libkrun's threads, without the threads of the virtual CPUs. libkrun starts half as many.
const THREADS: u64 = 32;
/// The memory limit of a supervisor and passt, in bytes. It is several times the sum of the limits in the supervisor's
/// code and the output that `--json` keeps.
const SUPERVISOR_MEMORY: u64 = 1 << 30;
/// The limit on the threads of a supervisor and passt. Together they start about thirty.
const SUPERVISOR_THREADS: u64 = 256;
/// The number of attempts to empty a group. Its processes may start others meanwhile.
const ATTEMPTS: usize = 20;
/// The period of the limit on CPU time, in microseconds (the kernel's default).
const PERIOD_US: u64 = 100_000;

/// A control group. Dropping it removes the group; the processes in it must have ended.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    /// The supervisor's group. `None` if the VM's group is not in a delegated group.
    supervisor: Option<Bounded>,
}

/// The group of a supervisor, a sibling of its VM's group. Dropping it moves the supervisor back and removes the group.
#[derive(Debug)]
struct Bounded {
    path: PathBuf,
    /// The group to which the supervisor is moved back.
    back: PathBuf,
}

impl ControlGroup {
    /// Makes the group for a VM of this size, named after the directory of the run, for the process `vmm`. If the group
    /// is made in a delegated group, this process and `serving` get a group as well. A flood from the guest then ends
    /// the box, and not other processes of the host.
    ///
    /// # Errors
    /// The reason, as text for the user.
    pub fn create(
        runtime: &Path,
        size: Vm,
        vmm: Pid,
        serving: Option<Pid>,
    ) -> Result<Self, String> {
        let name = runtime.file_name().ok_or("the run has no directory")?;
        let parent = parent(vmm)?;
        let mut made = Self { path: parent.path().join(name), supervisor: None };
        fs::create_dir(&made.path).map_err(|error| failed("make a control group", &error))?;
        let memory = (u64::from(size.memory_mib) << 20) + OWN_MEMORY;
        let cpus = u64::from(size.cpus);
        limit(&made.path, memory, cpus + THREADS)?;
        set(&made.path, "cpu.max", &format!("{} {PERIOD_US}", cpus * PERIOD_US))?;
        if let Parent::Delegated(group) = &parent {
            made.supervisor = Some(Bounded::enter(group, name, serving)?);
        }
        Ok(made)
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    /// The reason.
    pub fn take(&self, process: Pid) -> Result<(), String> {
        enter(&self.path, &process.to_string())
            .map_err(|error| failed("enter the control group", &error))
    }
}

impl Bounded {
    /// Makes the group of this process in the delegated `group`, named after the run, and moves this process and
    /// `serving` there.
    fn enter(group: &Path, name: &OsStr, serving: Option<Pid>) -> Result<Self, String> {
        let name = [OsStr::new(SUPERVISOR), name].join(OsStr::new("-"));
        let made = Self { path: group.join(name), back: group.join(SUPERVISOR) };
        fs::create_dir(&made.path).map_err(|error| failed("make a control group", &error))?;
        limit(&made.path, SUPERVISOR_MEMORY, SUPERVISOR_THREADS)?;
        let own = ["0".to_owned()].into_iter().chain(serving.map(|it| it.to_string()));
        own.into_iter().try_for_each(|it| moved(&made.path, &it))?;
        Ok(made)
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        let left = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        left.lines().for_each(|it| drop(enter(&self.back, it)));
        drop(fs::remove_dir(&self.path));
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // If the removal fails, a later command removes a group below `PARENT` by the name of the run's directory. A
        // group in a delegated group stays until the delegated group is removed.
        drop(fs::remove_dir(&self.path));
    }
}

/// Removes the control group of a run that was killed.
pub fn remove_left(runtime: &Path) {
    if let Some(name) = runtime.file_name() {
        drop(fs::remove_dir(Path::new(CGROUPS).join(PARENT).join(name)));
    }
}

fn failed(what: &str, error: &io::Error) -> String {
    format!("cannot {what}: {error}")
}

/// The parent of the VMs' groups.
#[derive(Debug)]
enum Parent {
    /// A group that was delegated to this user, who owns everything in it.
    Delegated(PathBuf),
    /// The group [`PARENT`], for the VMs that root starts. The supervisor stays in the group of its service.
    OfRoot(PathBuf),
}

impl Parent {
    fn path(&self) -> &Path {
        let (Self::Delegated(path) | Self::OfRoot(path)) = self;
        path
    }
}

/// Limits the memory, without swap, and the threads of a group.
fn limit(group: &Path, memory: u64, threads: u64) -> Result<(), String> {
    set(group, "memory.max", &memory.to_string())?;
    set(group, "memory.swap.max", "0")?;
    set(group, "pids.max", &threads.to_string())
}

/// Sets a limit of a group. The file for swap is absent if the kernel has no swap.
fn set(group: &Path, file: &str, text: &str) -> Result<(), String> {
    match fs::write(group.join(file), text) {
        Err(error) if file == "memory.swap.max" && error.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        written => written.map_err(|error| failed(file, &error)),
    }
}

/// Returns the parent of the VMs' groups, and enables all controllers for its children.
fn parent(vmm: Pid) -> Result<Parent, String> {
    let (own, is_root) = (own_group(), geteuid().is_root());
    if let Some(fault) = cgroups().fault(is_root) {
        return Err(fault.to_owned());
    }
    let group = match handed_over(&own) {
        Some(group) => group.to_owned(),
        None if is_root => return below(Path::new(CGROUPS)).map(Parent::OfRoot),
        None => own,
    };
    // A process of the group may start another one before the controllers are enabled, which then fails.
    for _ in 1..ATTEMPTS {
        vacate(&group, vmm)?;
        if enable(&group).is_ok() {
            return Ok(Parent::Delegated(group));
        }
    }
    vacate(&group, vmm)?;
    enable(&group)?;
    Ok(Parent::Delegated(group))
}

/// Returns whether a supervisor that this process starts gets a separate group. It gets none if its VM gets none.
pub fn bounds_supervisor() -> bool {
    !geteuid().is_root() || handed_over(&own_group()).is_some()
}

/// Returns the group that the service manager has delegated: `own`, or its parent if `own` is the group of a supervisor or of
/// systemd's control processes.
fn handed_over(own: &Path) -> Option<&Path> {
    let is_ours = |name: &OsStr| {
        name == CONTROL || name.as_encoded_bytes().starts_with(SUPERVISOR.as_bytes())
    };
    let above = own.parent().filter(|_| own.file_name().is_some_and(is_ours));
    [Some(own), above].into_iter().flatten().find(|group| is_marked(group))
}

/// Moves the processes of a group to its child [`SUPERVISOR`]: a group that enables controllers for its children must
/// have no processes itself (cgroups(7), "no internal processes").
fn vacate(group: &Path, vmm: Pid) -> Result<(), String> {
    let below = group.join(SUPERVISOR);
    make(&below)?;
    // A delegated group may contain other processes of the same service, for example one that waits for `run --detach`.
    // So all of them are moved.
    let processes = match fs::read_to_string(group.join("cgroup.procs")) {
        Ok(all) if is_marked(group) => all,
        _ => format!("0\n{vmm}"),
    };
    processes.lines().try_for_each(|process| moved(&below, process))
}

/// Moves a process to a group. It is a no-op if the process has ended.
fn moved(group: &Path, process: &str) -> Result<(), String> {
    match enter(group, process) {
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(()),
        moved => moved.map_err(|error| failed("move to another control group", &error)),
    }
}

fn enter(group: &Path, process: &str) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), process)
}

/// Returns whether the service manager has delegated a group
/// ([systemd.resource-control(5)](https://man7.org/linux/man-pages/man5/systemd.resource-control.5.html), `Delegate=`).
/// The result depends on the manager's extended attribute and not on write access, because root can write to every
/// group.
fn is_marked(group: &Path) -> bool {
    let marked = |name| {
        let mut value = [0; 8];
        getxattr(group, name, &mut value).is_ok_and(|length| &value[..length] == b"1")
    };
    marked("user.delegate") || marked("trusted.delegate")
}

/// Makes [`PARENT`] in the host's root group `root`, and enables the controllers in both groups.
fn below(root: &Path) -> Result<PathBuf, String> {
    let parent = root.join(PARENT);
    enable(root)?;
    make(&parent)?;
    enable(&parent)?;
    Ok(parent)
}

fn make(group: &Path) -> Result<(), String> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(failed("make a control group", &error))
        }
        _ => Ok(()),
    }
}

/// Enables the controllers for the children of a group.
fn enable(group: &Path) -> Result<(), String> {
    let file = group.join("cgroup.subtree_control");
    let there = fs::read_to_string(&file).unwrap_or_default();
    let lacking = CONTROLLERS.iter().filter(|it| !there.split_whitespace().any(|has| has == **it));
    let text: Vec<String> = lacking.map(|it| format!("+{it}")).collect();
    if text.is_empty() {
        return Ok(());
    }
    fs::write(&file, text.join(" "))
        .map_err(|error| failed("use the controllers of control groups", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_says_how_much_there_is() {
        let document = include_str!("../../../../docs/security.md");
        let text = format!("the machine's memory and {} MiB, {THREADS} threads", OWN_MEMORY >> 20);
        assert!(document.contains(&text), "{text}");
        let text = format!("{} MiB and {SUPERVISOR_THREADS} threads", SUPERVISOR_MEMORY >> 20);
        assert!(document.contains(&text), "{text}");
    }

    /// The test uses a directory of ordinary files instead of a group, so that the written values can be read.
    #[test]
    fn a_supervisor_has_a_group_with_limits_and_leaves_it() {
        let group = tempfile::tempdir().unwrap();
        make(&group.path().join(SUPERVISOR)).unwrap();
        let name = OsStr::new("boxlaunch-0123");
        let bounded = Bounded::enter(group.path(), name, Some(Pid::from_raw(7))).unwrap();
        let path = group.path().join("supervisor-boxlaunch-0123");
        assert_eq!(bounded.path, path);
        let text = |file: &str| fs::read_to_string(path.join(file)).unwrap();
        assert_eq!(text("memory.max"), SUPERVISOR_MEMORY.to_string());
        assert_eq!([text("memory.swap.max"), text("pids.max")], ["0", "256"]);
        assert_eq!(text("cgroup.procs"), "7", "this process, and then that one");
        drop(bounded);
        let back = fs::read_to_string(group.path().join("supervisor/cgroup.procs")).unwrap();
        assert_eq!(back, "7");
    }
}
