//! Runs cargo with visible progress.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use testbed::{Artefacts, KitError, Profile, Result, Workspace, program};

use crate::say;

/// The variable that makes cargo print only diagnostics
/// ([`term.quiet`](https://doc.rust-lang.org/cargo/reference/config.html#termquiet)).
const QUIET: &str = "CARGO_TERM_QUIET";
/// The text of an error whose messages were printed already.
const SHOWN: &str = "its messages are above";

/// Runs a cargo command to its end. On a terminal, cargo shows its progress there.
///
/// # Errors
/// cargo does not start, or fails. The error contains cargo's complete output, unless cargo printed it to the terminal.
pub fn run(cargo: &mut Command) -> Result<()> {
    if say::on_terminal() {
        cargo.stdin(Stdio::null()).env_remove(QUIET);
        let status = say::lend(|| cargo.status());
        let status = status.map_err(|source| program::not_started(cargo, source))?;
        return succeeded(cargo, status.success(), &status.to_string(), SHOWN);
    }
    captured(cargo)
}

/// Runs a cargo command to its end without printing, because other commands run at the same time.
///
/// # Errors
/// cargo does not start, or fails. The error contains cargo's complete output.
pub fn captured(cargo: &mut Command) -> Result<()> {
    let output = program::finish(cargo.env(QUIET, "true"))?;
    let written = [output.stdout, output.stderr].concat();
    let status = output.status;
    let written = String::from_utf8_lossy(&written);
    succeeded(cargo, status.success(), &status.to_string(), &written)
}

/// Builds the project's programs in the release profile.
///
/// # Errors
/// A program does not compile.
pub fn build_programs(workspace: &Workspace) -> Result<Artefacts> {
    let build = || Artefacts::release_builds(workspace).iter_mut().try_for_each(run);
    say::step("compiling the programs", build)?;
    Ok(Artefacts::locate(workspace, Profile::Release))
}

/// Builds `boxlaunch`, the virtual host's init, and returns its path.
///
/// # Errors
/// `boxlaunch` does not compile.
pub fn build_boxlaunch(workspace: &Workspace) -> Result<PathBuf> {
    run(&mut Artefacts::launcher_build(workspace))?;
    Ok(Artefacts::locate(workspace, Profile::Release).boxlaunch)
}

fn succeeded(cargo: &Command, success: bool, status: &str, output: &str) -> Result<()> {
    if success {
        return Ok(());
    }
    Err(KitError::Failed {
        command: program::shown(cargo),
        status: status.to_owned(),
        output: output.to_owned(),
    })
}
