//! The control group of a machine: how much memory, how many processes and how much CPU time it may take at most
//! (cgroups(7), version 2).

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::Vm;
use nix::errno::Errno;
use nix::unistd::{Pid, geteuid};
use rustix::fs::getxattr;

use crate::jail::isolation::{CGROUPS, cgroups, own_group};

/// The group of root's machines, below the host's own.
const PARENT: &str = "boxlaunch";
/// The group of the supervisor itself, beside those of machines, in a group that was handed over.
const SUPERVISOR: &str = "supervisor";
/// The controllers that a machine's group needs.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];
/// The memory that the VMM process may have beside the guest's, in bytes. It takes a tenth of it; the host's kernel counts
/// its cache of the box's files as well.
const OWN_MEMORY: u64 = 256 << 20;
/// The threads that libkrun starts beside those of the virtual CPUs, with as many to spare.
const THREADS: u64 = 32;
/// The memory that a supervisor may have, with passt, in bytes: several times what its own bounds add up to, and the output that
/// `--json` keeps.
const SUPERVISOR_MEMORY: u64 = 1 << 30;
/// The threads that a supervisor may have, with passt. It starts some thirty.
const SUPERVISOR_THREADS: u64 = 256;
/// How often a group is emptied whose processes start others meanwhile.
const ATTEMPTS: usize = 20;
/// The period of the limit on CPU time, in microseconds (the kernel's default).
const PERIOD_US: u64 = 100_000;

/// A group, which is removed when this is dropped, after the processes in it have ended.
#[derive(Debug)]
pub struct ControlGroup {
    path: PathBuf,
    /// The supervisor's own, where the groups are in one that was handed over.
    supervisor: Option<Bounded>,
}

/// The group of a supervisor, beside that of its machine. It is left, and removed, when this is dropped.
#[derive(Debug)]
struct Bounded {
    path: PathBuf,
    /// The group that it was in before.
    back: PathBuf,
}

impl ControlGroup {
    /// Makes the group of a machine that has a size, with the name of the run's own directory, for a process `vmm`. In a group
    /// that was handed over, this process gets one, too, with those that serve it: a flood of the guest's ends the box, and not
    /// what else the host runs.
    ///
    /// # Errors
    /// The reason, for people.
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
        if let Parent::HandedOver(group) = &parent {
            made.supervisor = Some(Bounded::enter(group, name, serving)?);
        }
        Ok(made)
    }

    /// Puts a process into the group.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn take(&self, process: Pid) -> Result<(), String> {
        enter(&self.path, &process.to_string())
            .map_err(|error| failed("enter the control group", &error))
    }
}

impl Bounded {
    /// Makes the group of this process in one that was handed over, with a name of the same run, and moves it there, with the
    /// process that serves it.
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
        // Of one that stays, the next command finds the group below root's, by the name of the run's directory; one in a
        // group that was handed over stays until that goes.
        drop(fs::remove_dir(&self.path));
    }
}

/// Removes the group of a run that was killed.
pub fn remove_left(runtime: &Path) {
    if let Some(name) = runtime.file_name() {
        drop(fs::remove_dir(Path::new(CGROUPS).join(PARENT).join(name)));
    }
}

fn failed(what: &str, error: &io::Error) -> String {
    format!("cannot {what}: {error}")
}

/// The group in which the machines' groups are made.
#[derive(Debug)]
enum Parent {
    /// One that was handed over to this user, where everything is this user's.
    HandedOver(PathBuf),
    /// Root's, beside all others of the host: a supervisor stays in the one of its service.
    Roots(PathBuf),
}

impl Parent {
    fn path(&self) -> &Path {
        let (Self::HandedOver(path) | Self::Roots(path)) = self;
        path
    }
}

/// Limits the memory of a group, without swap, and its threads.
fn limit(group: &Path, memory: u64, threads: u64) -> Result<(), String> {
    set(group, "memory.max", &memory.to_string())?;
    set(group, "memory.swap.max", "0")?;
    set(group, "pids.max", &threads.to_string())
}

/// Sets a limit of a group. A kernel may know no swap.
fn set(group: &Path, file: &str, text: &str) -> Result<(), String> {
    match fs::write(group.join(file), text) {
        Err(error) if file == "memory.swap.max" && error.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        written => written.map_err(|error| failed(file, &error)),
    }
}

/// Returns that group, with all controllers for those in it.
fn parent(vmm: Pid) -> Result<Parent, String> {
    let (own, is_root) = (own_group(), geteuid().is_root());
    if let Some(fault) = cgroups().fault(is_root) {
        return Err(fault.to_owned());
    }
    let group = match handed_over(&own) {
        Some(group) => group.to_owned(),
        None if is_root => return below(Path::new(CGROUPS)).map(Parent::Roots),
        None => own,
    };
    // Its processes may be about to start others.
    for _ in 1..ATTEMPTS {
        vacate(&group, vmm)?;
        if enable(&group).is_ok() {
            return Ok(Parent::HandedOver(group));
        }
    }
    vacate(&group, vmm)?;
    enable(&group)?;
    Ok(Parent::HandedOver(group))
}

/// Returns whether a supervisor that is started here has a group of its own, if its machine has one.
pub fn bounds_supervisor() -> bool {
    !geteuid().is_root() || handed_over(&own_group()).is_some()
}

/// Returns the group that the service manager has handed over to what runs in `own`, or in the one above, of which `own`
/// is made for supervisors.
fn handed_over(own: &Path) -> Option<&Path> {
    let is_ours = |name: &OsStr| name.as_encoded_bytes().starts_with(SUPERVISOR.as_bytes());
    let above = own.parent().filter(|_| own.file_name().is_some_and(is_ours));
    [Some(own), above].into_iter().flatten().find(|group| is_marked(group))
}

/// Moves the processes of a group to one below it: a group whose members are limited by controllers has none itself
/// (cgroups(7), "no internal processes").
fn vacate(group: &Path, vmm: Pid) -> Result<(), String> {
    let below = group.join(SUPERVISOR);
    make(&below)?;
    // In a group that is all its own, others than these two may be of the same service, such as the one that waits for
    // `run --detach`.
    let processes = match fs::read_to_string(group.join("cgroup.procs")) {
        Ok(all) if is_marked(group) => all,
        _ => format!("0\n{vmm}"),
    };
    processes.lines().try_for_each(|process| moved(&below, process))
}

/// Moves a process to a group, unless it has ended.
fn moved(group: &Path, process: &str) -> Result<(), String> {
    match enter(group, process) {
        Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => Ok(()),
        moved => moved.map_err(|error| failed("move to another control group", &error)),
    }
}

fn enter(group: &Path, process: &str) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), process)
}

/// Returns whether the service manager has handed a group over (systemd.resource-control(5), `Delegate=`). Root may write
/// to every group, but not all are its to change.
fn is_marked(group: &Path) -> bool {
    let marked = |name| {
        let mut value = [0; 8];
        getxattr(group, name, &mut value).is_ok_and(|length| &value[..length] == b"1")
    };
    marked("user.delegate") || marked("trusted.delegate")
}

/// Makes the group of root's machines below the host's first group.
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

/// Gives the groups below a group the controllers.
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

    /// In a directory of files, which a group is not, what is written shows.
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
