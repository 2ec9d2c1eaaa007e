//! The end of the machine.

use std::convert::Infallible;

use nix::sys::reboot::{RebootMode, reboot};

use crate::console;

/// Writes out what is unwritten and ends the virtual machine.
///
/// Under libkrun a *reboot* ends the VMM (the kernel resets through the keyboard controller,
/// `reboot=k`); powering off would only halt the virtual CPU.
pub fn power_off() -> ! {
    nix::unistd::sync();
    let error: nix::Result<Infallible> = reboot(RebootMode::RB_AUTOBOOT);
    console::say(&format!("power off: {error:?}"));
    // Only without CAP_SYS_BOOT, so never as PID 1. Its end makes the kernel panic, and the
    // kernel's command line makes a panic reboot at once.
    std::process::abort()
}
