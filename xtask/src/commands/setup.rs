//! `cargo xtask setup`: installs and downloads the prerequisites of the other subcommands.

use std::path::PathBuf;
use std::process::ExitCode;

use testbed::{HostKernel, Result, Workspace, prerequisites};
use tool_output::say;

use super::Outcome;

pub(crate) fn run() -> Outcome {
    for_tests(&Workspace::find())?;
    say::note("everything that the demo and the tests need is here");
    Ok(ExitCode::SUCCESS)
}

/// Installs the standard library for static programs.
pub(super) fn for_static_programs() -> Result<()> {
    say::watch(|| prerequisites::musl_target(&mut say::note))
}

/// Installs the prerequisites of the demo, during a step, and returns the guest's kernel.
pub(super) fn for_demo(workspace: &Workspace) -> Result<PathBuf> {
    prerequisites::for_demo(workspace, &mut say::note)
}

/// Installs the prerequisites of the virtual host, and returns its kernel.
pub(super) fn for_virtual_host(workspace: &Workspace) -> Result<HostKernel> {
    say::watch(|| prerequisites::for_virtual_host(workspace, &mut say::note))
}

/// Installs the prerequisites of `cargo xtask test` without an option.
pub(super) fn for_tests(workspace: &Workspace) -> Result<()> {
    say::watch(|| prerequisites::for_tests(workspace, &mut say::note))
}

/// Installs the prerequisites of all tests.
pub(super) fn for_all_tests(workspace: &Workspace) -> Result<()> {
    say::watch(|| prerequisites::for_all_tests(workspace, &mut say::note))
}

/// Installs rustfmt and clippy.
pub(super) fn for_lints() -> Result<()> {
    say::watch(|| prerequisites::rust_components(&mut say::note))
}
