//! Measures the resources of this host that a box uses.

use std::fs;
use std::time::Duration;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde::Serialize;

/// The resources that a VMM process uses, including its VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MachineUsage {
    /// The resident memory in bytes. It includes the memory that the guest has touched so far.
    pub memory_bytes: u64,
    /// The process's CPU time since it began, in microseconds.
    pub cpu_us: u64,
}

/// Measures the VMM process with this process id. Returns `None` if the process has ended.
pub fn of_machine(vmm: u32) -> Option<MachineUsage> {
    let pid = Pid::from_raw(i32::try_from(vmm).ok()?);
    let time = clock_getcpuclockid(pid).and_then(clock_gettime).ok()?;
    let cpu_us = u64::try_from(Duration::from(time).as_micros()).ok()?;
    let memory_bytes = resident(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?;
    Some(MachineUsage { memory_bytes, cpu_us })
}

/// Measures a VMM process if `supervisor` is its parent. The process id in a record of another user may be of any process.
pub fn of_child(supervisor: u32, vmm: u32) -> Option<MachineUsage> {
    let status = fs::read_to_string(format!("/proc/{vmm}/status")).ok()?;
    (parent(&status)? == supervisor).then(|| of_machine(vmm))?
}

/// Parses the parent's process id in a `/proc/PID/status`.
fn parent(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Parses the resident memory in a `/proc/PID/status`
/// ([proc_pid_status(5)](https://man7.org/linux/man-pages/man5/proc_pid_status.5.html)), in bytes.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_takes_something_and_an_ended_one_nothing() {
        let own = of_machine(std::process::id()).unwrap();
        assert!(own.memory_bytes > 1 << 16 && own.cpu_us > 0, "{own:?}");
        let (this, parent) = (std::process::id(), std::os::unix::process::parent_id());
        assert!(of_child(parent, this).is_some() && of_child(this, this).is_none());
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(of_machine(child.id()), None);
    }

    #[test]
    fn resident_memory_is_in_kibibytes() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t     12 kB\n"), Some(12_288));
        assert_eq!(resident("VmSize:\t12 kB\n"), None);
    }
}
