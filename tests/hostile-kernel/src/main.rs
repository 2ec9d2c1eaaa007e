//! The kernel image. libkrun enters it as it enters Linux.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

#[cfg(target_os = "none")]
use hostile_kernel as _;

/// Fails: a build for an operating system is not a guest kernel.
#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(2)
}
