//! Finds the layers of the jail that this host supports, by confining a process that then ends.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use box_contract::Vm as Size;

use super::kvm;
use crate::streams::control::Listener;
use vmm::jail::{Files, Jail, Policy, Report, Terms};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;
use vmm::{CONTROL_SOCKET, Vmm, VmmError, confine};

/// The hidden subcommand that confines the process in which it runs.
pub const SUBCOMMAND: &str = "jail-trial";
/// The time limit of the confined process, which needs some milliseconds.
const LIMIT: Duration = Duration::from_secs(10);
/// The size of the VM for which the process is confined. The VM is never started.
const SIZE: Size = Size { cpus: 1, memory_mib: 64 };

/// Starts `program`, which is boxlaunch, with [`SUBCOMMAND`], and returns which layers confine it. The trial's private
/// directory is created in `base`.
///
/// # Errors
/// The reason why there is no jail, as a message to the user.
pub fn try_jail(program: &Path, device: &Path, base: &Path) -> Result<Report, String> {
    kvm::open(device).map_err(|error| error.to_string())?;
    let report = report(program, device, base).map_err(|error| error.to_string())?;
    report.ok_or_else(|| "the process that tried it ended early".to_owned())
}

fn report(program: &Path, device: &Path, base: &Path) -> Result<Option<Report>, VmmError> {
    let signals = StopSignals::block()?;
    let runtime = RuntimeDir::create(base)?;
    let _socket = Listener::bind(runtime.vmm_socket(CONTROL_SOCKET)?)?;
    let mut process = Vmm::spawn_as(program, SUBCOMMAND, &[])?;
    let policy = Policy::BestEffort;
    let blobs: [&File; 0] = [];
    let terms = confine::terms(blobs, &[], device, &runtime, policy, Vec::new(), &mut process)?;
    process.configure(&terms)?;
    let deadline = Instant::now() + LIMIT;
    let until = (deadline, &signals);
    confine::finish(SIZE, &runtime, policy, &mut process, None, until)
}

/// Reads the terms of a jail, confines this process accordingly, and reports the result.
///
/// # Errors
/// If this process cannot be confined in a way in which a VM could run in it.
pub fn enter(terms: impl Read) -> Result<(), VmmError> {
    let mut input = terms;
    let terms: Terms = vmm::configuration(&mut input)?;
    vmm::close_all_but(&[])?;
    vmm::confine()?;
    let jail = Jail::enter(terms, Files::default())?;
    jail.close(vmm::report_stream()?)?;
    Ok(vmm::await_go(&mut input)?)
}
