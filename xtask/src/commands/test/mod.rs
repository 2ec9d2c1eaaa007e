//! `cargo xtask test`: every check, one after the other; the first failure ends it. The test programs run
//! side by side, and all of them run even if one fails.

mod lanes;
mod programs;

use std::process::ExitCode;
use std::time::Instant;

use testkit::{Result, Workspace};

use super::{Outcome, cycles, setup, words};
use crate::{cargo, say};

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    let started = Instant::now();
    let outcome = check_all(&workspace);
    say::ended("all checks", if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
    outcome.map(|()| ExitCode::SUCCESS)
}

fn check_all(workspace: &Workspace) -> Result<()> {
    setup::for_lints()?;
    cargo_step(workspace, "cargo fmt --check", &["fmt", "--all", "--check"])?;
    say::step("circles of modules", || cycles::check(workspace))?;
    say::step("words of comments", || words::check(workspace))?;
    let lint = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    cargo_step(workspace, "cargo clippy", &lint)?;
    say::step("cargo doc", || document(workspace))?;
    say::step("prerequisites", || setup::for_tests(workspace))?;
    cargo::build_programs(workspace)?;
    let programs = say::step("compiling the tests", || programs::compile(workspace))?;
    say::step("tests", || lanes::run(programs))?;
    cargo_step(workspace, "tests in documentation", &["test", "--workspace", "--doc"])
}

fn cargo_step(workspace: &Workspace, name: &str, arguments: &[&str]) -> Result<()> {
    say::step(name, || cargo::run(workspace.cargo().args(arguments)))
}

fn document(workspace: &Workspace) -> Result<()> {
    let mut cargo = workspace.cargo();
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    cargo::run(cargo.args(["doc", "--workspace", "--no-deps", "--document-private-items"]))
}
