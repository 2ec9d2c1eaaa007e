//! Which layers of the jail this host gives: by putting one up around a process that then ends.

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

/// The hidden subcommand as which that process is started.
pub const SUBCOMMAND: &str = "jail-trial";
/// How long it may take. It needs some milliseconds.
const LIMIT: Duration = Duration::from_secs(10);
/// The size of the machine that is never started.
const SIZE: Size = Size { cpus: 1, memory_mib: 64 };

/// Puts up the jail around a process of `program`, which is boxlaunch, with a run's directory in `base`.
///
/// # Errors
/// The reason why there was none, for people.
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

/// Reads the terms of a jail, puts it up around this process, and reports it.
///
/// # Errors
/// When the process is left in a state in which no machine could start.
pub fn enter(terms: impl Read) -> Result<(), VmmError> {
    let mut input = terms;
    let terms: Terms = vmm::configuration(&mut input)?;
    vmm::close_all_but(&[])?;
    vmm::confine()?;
    let jail = Jail::enter(terms, Files::default())?;
    jail.close(vmm::report_stream()?)?;
    Ok(vmm::await_go(&mut input)?)
}
