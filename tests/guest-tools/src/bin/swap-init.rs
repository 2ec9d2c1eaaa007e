//! Runs box-init with the config in the rootfs, instead of the config that the launcher has checked.
//!
//! The launcher refuses an invalid config before it starts a VM. With this program, a test passes such a config to init, as a
//! faulty launcher would.
#![forbid(unsafe_code)]

use std::fs;
use std::process::ExitCode;

use box_contract::plan::NEW_ROOT;
use box_init::boot::{self, Given};
use box_init::error::InitError;
use box_init::time::Clock;
use nix::mount::umount;

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::run_as_init(|channel| box_init::run(clock, channel, swapped))
}

/// Returns the launcher's values with the config replaced by the rootfs's `/config`.
fn swapped() -> Result<Given, InitError> {
    let given = Given::read()?;
    boot::mount_rootfs()?;
    let config = fs::read(format!("{NEW_ROOT}/config"));
    let config = config.map_err(|error| InitError::new("swap the config", error))?;
    umount(NEW_ROOT).map_err(|error| InitError::new("unmount the rootfs", error))?;
    Ok(Given { config, ..given })
}
