//! `cargo xtask test`: runs every test that needs no boot, and the shorter boots. With `--all`, runs every check. If a check
//! fails, the others still run.

mod again;
mod longest;
mod programs;
mod ran;
mod run;
mod tree;

use std::process::{Command, ExitCode};
use std::time::Instant;

use testbed::{Artefacts, KitError, Result, Workspace};
use tool_output::{cargo, say};

use self::programs::TestProgram;
use self::run::Tests;
use super::{Outcome, dependencies, setup};

const HELP: &str = "\
Without an option: cargo fmt, and `cargo test --workspace` with the shorter half of the boots: the tests of tests/boot without
#[ignore]. A box there has the lean kernel if it was compiled, else libkrunfw's.

With --all: the lean kernel is compiled, and everything is checked: clippy, the documentation, the dependencies, all tests
with #[ignore], and all boots. What a run without --all has passed on the same commit with the lean kernel is not
run again, if nothing was changed since.

A test that fails is run once more, alone. If it passes then, the run ends well and names it as flaky; both outputs are
below target/flaky.

Examples:
  cargo xtask test
  cargo test -p boxfile-spec
  cargo test -p boxbuild-tests --test boot hello::";

/// The extent of the checks.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Check everything.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let started = Instant::now();
    let outcome = check(&Workspace::find(), options.all);
    say::ended(
        if options.all { "all checks" } else { "tests" },
        if outcome.is_ok() { "ok" } else { "FAILED" },
        started.elapsed(),
    );
    outcome?.iter().for_each(|line| say::note(line));
    Ok(ExitCode::SUCCESS)
}

/// Runs all checks, and returns the summary's lines.
fn check(workspace: &Workspace, all: bool) -> Result<Vec<String>> {
    let mut checks = Checks { workspace, failed: Vec::new() };
    let run = (!all).then(|| tree::Run::begin(workspace));
    setup::for_lints()?;
    checks.cargo("cargo fmt --check", &[], &["fmt", "--all", "--check"]);
    if all {
        checks.done("dependencies", || dependencies::check(workspace));
    }
    say::step("prerequisites", || {
        if all { setup::for_all_tests(workspace) } else { setup::for_tests(workspace) }
    })?;
    let programs = compile(workspace)?;
    let passed_before = all && tree::is_passed(workspace);
    let tests = Tests { workspace, all, passed_before };
    let summary = say::watch(|| tests.run(programs));
    say::doing("");
    let summary = summary.inspect_err(|error| checks.failed.push(error.to_string()));
    if !passed_before {
        checks.cargo("tests in documentation", &[], &["test", "--workspace", "--doc"]);
    }
    if all {
        checks.all();
    }
    checks.verdict()?;
    run.map_or(Ok(()), tree::Run::passed)?;
    summary
}

/// Compiles the programs that tests start, and the tests.
fn compile(workspace: &Workspace) -> Result<Vec<TestProgram>> {
    say::step("compiling the programs that tests start", || {
        Artefacts::test_builds(workspace).iter_mut().try_for_each(cargo::captured)
    })?;
    say::step("compiling the tests", || programs::compile(workspace))
}

/// Checks that run even if an earlier check has failed.
struct Checks<'a> {
    workspace: &'a Workspace,
    /// The names of the failed checks.
    failed: Vec<String>,
}

impl Checks<'_> {
    /// Runs the checks that only `--all` runs after the tests.
    fn all(&mut self) {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        self.cargo("cargo clippy", &[], &clippy);
        let doc = ["doc", "--workspace", "--no-deps", "--document-private-items"];
        self.cargo("cargo doc", &[("RUSTDOCFLAGS", "-D warnings")], &doc);
    }

    fn cargo(&mut self, name: &str, variables: &[(&str, &str)], arguments: &[&str]) {
        let mut command: Command = self.workspace.cargo();
        command.args(arguments).envs(variables.iter().copied());
        self.done(name, || cargo::captured(&mut command));
    }

    fn done(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        if let Err(error) = say::step(name, work) {
            say::error(&error);
            self.failed.push(name.to_owned());
        }
    }

    /// Fails with the names of all failed checks, whose output has been printed.
    fn verdict(self) -> Result<()> {
        if self.failed.is_empty() {
            return Ok(());
        }
        let plural = if self.failed.len() == 1 { "check" } else { "checks" };
        Err(KitError::Failed {
            command: "cargo xtask test".to_owned(),
            status: format!("{} {plural}", self.failed.len()),
            output: format!("{}\nthe output of each is above", self.failed.join("\n")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_repeats_every_failure() {
        let workspace = Workspace::find();
        let failed = vec!["cargo clippy".to_owned(), "cargo test -p a -- --exact b::c".to_owned()];
        let error = Checks { workspace: &workspace, failed }.verdict().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cargo xtask test failed (2 checks):\ncargo clippy\n\
             cargo test -p a -- --exact b::c\nthe output of each is above"
        );
    }
}
