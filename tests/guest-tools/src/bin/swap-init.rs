//! box-init, which finds another rootfs than the launcher has checked: the image in it.
//!
//! The launcher reads the plan in a rootfs before it starts anything. Only so a plan comes to init that the launcher
//! refuses, as it would from a launcher with a fault.
#![forbid(unsafe_code)]

use std::process::{Command, ExitCode};

use box_image::plan::NEW_ROOT;
use box_init::boot;
use box_init::error::InitError;
use box_init::time::Clock;

fn main() -> ExitCode {
    let clock = Clock::start();
    if std::process::id() == 1
        && let Err(error) = swap()
    {
        return box_init::run_as_init(|_| Err(error));
    }
    box_init::main(clock)
}

/// Puts the image into the place of the disk.
fn swap() -> Result<(), InitError> {
    boot::mount_devices()?;
    boot::mount_rootfs()?;
    let image = format!("{NEW_ROOT}/rootfs");
    busybox(&["losetup", "-r", "-f", &image])?;
    busybox(&["mount", "-o", "bind", "/dev/loop0", boot::ROOT_DEVICE])
}

fn busybox(arguments: &[&str]) -> Result<(), InitError> {
    let failed = |why: String| Err(InitError::new(format!("swap the rootfs: {arguments:?}"), why));
    match Command::new(format!("{NEW_ROOT}/busybox")).args(arguments).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => failed(status.to_string()),
        Err(error) => failed(error.to_string()),
    }
}
