//! The kernel: libkrun enters it as it enters Linux.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
use hostile_kernel as _;

/// Where there is an operating system, there is nothing to attack.
#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
