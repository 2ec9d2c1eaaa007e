//! The control group of a machine: how much memory, how many processes and how much CPU time it may take at most
//! (cgroups(7), version 2).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use box_image::Vm;
use nix::errno::Errno;
use nix::unistd::{Pid, geteuid};
use rustix::fs::getxattr;

use crate::host::isolation::{CGROUPS, cgroups, own_group};

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
/// How often a group is emptied whose processes start others meanwhile.
const ATTEMPTS: usize = 20;
/// The period of the limit on CPU time, in microseconds (the kernel's default).
const PERIOD_US: u64 = 100_000;

/// A group, which is removed when this is dropped, after the processes in it have ended.
#[derive(Debug)]
pub(crate) struct ControlGroup {
    path: PathBuf,
}

impl ControlGroup {
    /// Makes the group of a machine that has a size, with the name of the run's own directory, for a process `vmm`.
    ///
    /// # Errors
    /// The reason, for people.
    pub(crate) fn create(runtime: &Path, size: Vm, vmm: Pid) -> Result<Self, String> {
        let name = runtime.file_name().ok_or("the run has no directory")?;
        let parent = parent(vmm)?;
        let made = Self { path: parent.join(name) };
        fs::create_dir(&made.path).map_err(|error| failed("make a control group", &error))?;
        let memory = (u64::from(size.memory_mib) << 20) + OWN_MEMORY;
        let cpus = u64::from(size.cpus);
        for (file, text) in [
            ("memory.max", memory.to_string()),
            ("memory.swap.max", "0".to_owned()),
            ("pids.max", (cpus + THREADS).to_string()),
            ("cpu.max", format!("{} {PERIOD_US}", cpus * PERIOD_US)),
        ] {
            match fs::write(made.path.join(file), text) {
                Err(error)
                    if file == "memory.swap.max" && error.kind() == io::ErrorKind::NotFound => {}
                written => written.map_err(|error| failed(file, &error))?,
            }
        }
        Ok(made)
    }

    /// Puts a process into the group.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(crate) fn take(&self, process: Pid) -> Result<(), String> {
        enter(&self.path, &process.to_string())
            .map_err(|error| failed("enter the control group", &error))
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
pub(crate) fn remove_left(runtime: &Path) {
    if let Some(name) = runtime.file_name() {
        drop(fs::remove_dir(Path::new(CGROUPS).join(PARENT).join(name)));
    }
}

fn failed(what: &str, error: &io::Error) -> String {
    format!("cannot {what}: {error}")
}

/// Returns the group in which the machines' groups are made, with all controllers for them.
fn parent(vmm: Pid) -> Result<PathBuf, String> {
    let (own, is_root) = (own_group(), geteuid().is_root());
    if let Some(fault) = cgroups().fault(is_root) {
        return Err(fault.to_owned());
    }
    let group = match handed_over(&own) {
        Some(group) => group.to_owned(),
        None if is_root => return below(Path::new(CGROUPS)),
        None => own,
    };
    // Its processes may be about to start others.
    for _ in 1..ATTEMPTS {
        vacate(&group, vmm)?;
        if enable(&group).is_ok() {
            return Ok(group);
        }
    }
    vacate(&group, vmm)?;
    enable(&group)?;
    Ok(group)
}

/// Returns the group that the service manager has handed over to what runs in `own`, or in the one above, of which `own`
/// is made for supervisors.
fn handed_over(own: &Path) -> Option<&Path> {
    let above = own.parent().filter(|_| own.ends_with(SUPERVISOR));
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
    for process in processes.lines() {
        match enter(&below, process) {
            // It has ended.
            Err(error) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {}
            moved => moved.map_err(|error| failed("move to another control group", &error))?,
        }
    }
    Ok(())
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
        let document = include_str!("../../../docs/security.md");
        let text = format!("the machine's memory and {} MiB, {THREADS} threads", OWN_MEMORY >> 20);
        assert!(document.contains(&text), "{text}");
    }
}
