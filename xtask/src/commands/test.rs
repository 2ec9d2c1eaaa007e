//! `cargo xtask test`: every check, one after the other; the first failure ends it.

use std::process::{Command, ExitCode};
use std::time::Instant;

use testkit::{Artefacts, KitError, Result, Workspace, program};

use super::{Outcome, setup};
use crate::say;

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    let started = Instant::now();
    let outcome = check_all(&workspace);
    let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
    say::step("all checks", verdict, started.elapsed());
    outcome.map(|()| ExitCode::SUCCESS)
}

fn check_all(workspace: &Workspace) -> Result<()> {
    step("cargo fmt --check", || cargo(workspace, &["fmt", "--all", "--check"]))?;
    let lint = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    step("cargo clippy", || cargo(workspace, &lint))?;
    step("cargo doc", || document(workspace))?;
    step("prerequisites", || setup::for_tests(workspace))?;
    step("programs for the host and the guest", || Artefacts::build(workspace).map(drop))?;
    step("cargo test", || run_tests(workspace))
}

/// Runs a step and says how it ended.
fn step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let started = Instant::now();
    let outcome = work();
    say::step(name, if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
    outcome
}

fn cargo(workspace: &Workspace, words: &[&str]) -> Result<()> {
    finish(cargo_command(workspace).args(words))
}

fn document(workspace: &Workspace) -> Result<()> {
    let mut cargo = cargo_command(workspace);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    finish(cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]))
}

/// Runs the tests and shows what they say while they run.
fn run_tests(workspace: &Workspace) -> Result<()> {
    let mut cargo = cargo_command(workspace);
    cargo.args(["test", "--workspace"]);
    let status = cargo.status().map_err(|source| program::not_started(&cargo, source))?;
    if status.success() {
        return Ok(());
    }
    Err(KitError::Failed {
        command: program::shown(&cargo),
        status: status.to_string(),
        output: "the failed tests are named above".to_owned(),
    })
}

fn cargo_command(workspace: &Workspace) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(workspace.path("")).env("CARGO_TARGET_DIR", workspace.target(""));
    cargo
}

/// Runs a command; where it fails, the error holds all that it said.
fn finish(command: &mut Command) -> Result<()> {
    let output = program::finish(command)?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(KitError::Failed {
        command: program::shown(command),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&said).into_owned(),
    })
}
