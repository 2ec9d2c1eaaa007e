//! The init of the virtual host: `boxlaunch` as process 1.
//!
//! It prepares the virtual host, runs the commands of the plan as root in `/root`, writes their results to the first
//! disk, and powers off.

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

/// Prepares the virtual host, runs the commands and writes the results. The caller must then call [`power_off`].
///
/// # Errors
/// A step of the preparation failed, or the results do not fit their disk. The caller must print the error to the
/// console, which the real host reads.
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

/// Powers the virtual host off.
///
/// # Errors
/// The process lacks the privilege.
pub fn power_off() -> Result<()> {
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).map_err(HostError::guest("power off"))
}
