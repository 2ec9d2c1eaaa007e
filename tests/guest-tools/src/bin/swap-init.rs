//! box-init, which finds another config than the launcher has checked: the one in the rootfs.
//!
//! The launcher reads the config before it starts anything. Only so a config comes to init that the launcher refuses, as it
//! would from a launcher with a fault.
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

/// Puts the config in the rootfs into the place of the launcher's.
fn swapped() -> Result<Given, InitError> {
    let given = Given::read()?;
    boot::mount_rootfs()?;
    let config = fs::read(format!("{NEW_ROOT}/config"));
    let config = config.map_err(|error| InitError::new("swap the config", error))?;
    umount(NEW_ROOT).map_err(|error| InitError::new("unmount the rootfs", error))?;
    Ok(Given { config, ..given })
}
