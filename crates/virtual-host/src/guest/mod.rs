//! The machine's init: `boxlaunch` as process 1 of the virtual host.
//!
//! It prepares the machine, runs the commands of the plan as root in `/root`, leaves their results
//! on the first disk, and powers the machine off.

mod commands;
mod machine;
mod result;

use std::fs;
use std::path::Path;

use rustix::system::{RebootCommand, reboot};

use crate::plan::{PLAN, Plan};
use crate::{HostError, Result};

/// Returns whether this process is the init of a virtual host.
pub fn is_init() -> bool {
    std::process::id() == 1 && Path::new(PLAN).exists()
}

/// Does all that the machine is for. Afterwards [`power_off`] ends it.
///
/// # Errors
/// A step of the preparation failed, or the results do not fit their disk. The host sees the
/// console, so whoever calls this prints the error there.
pub fn run() -> Result<()> {
    machine::mount_system()?;
    machine::load_modules()?;
    machine::share_kvm()?;
    let text = fs::read(PLAN).map_err(HostError::guest("read its plan"))?;
    let plan: Plan = serde_json::from_slice(&text)
        .map_err(|error| HostError::malformed("the plan of the virtual host", error))?;
    let disk = machine::mount_disks(&plan.disks)?;
    machine::enter_root()?;
    machine::schedule_as_batch()?;
    let ended = commands::run_all(&plan)?;
    result::leave(&disk, &ended)
}

/// Powers the machine off.
///
/// # Errors
/// The kernel refuses: the process has not the right to.
pub fn power_off() -> Result<()> {
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).map_err(HostError::guest("power off"))
}
