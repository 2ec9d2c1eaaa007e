//! `cargo xtask test`: runs the tests that take no minutes, and a boot for each line of docs/status.md. With `--landing`, runs every check
//! but some boots, and with `--all` every check. If a check fails, the others still run.

mod again;
mod longest;
mod parts;
mod processor;
mod programs;
mod ran;
mod run;
mod scratch;
mod status;

use std::panic::resume_unwind;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Instant, SystemTime};

use testbed::{Artefacts, KitError, Profile, Result, Workspace, program};
use tool_output::{cargo, say};

use self::parts::{Extent, Listed, Selected};
use self::processor::Processor;
use self::programs::{Compiler, TestProgram};
use self::run::Tests;
use self::scratch::Scratch;
use super::{Outcome, dependencies, fuzz, setup};

const HELP: &str = "\
Without an option: cargo fmt, and `cargo test --workspace`, and the boots that are `SHORT` in tests/boot/main.rs. A box there has the
lean kernel if it was compiled, else libkrunfw's.

With --landing, which .ci/run uses: everything but some of the boots. These are in four parts: a landing makes the one whose
number is in tests/boot/part, and those whose paths it changes. --next writes the number of the next part, and is for the change itself:
it is run once, and the file is committed.

With --all: all boots, too, and each fuzz target for 30 seconds. The benchmarks, `kernel --check`, the soak test and the demo have commands of their own.

The result of a boot is kept in ~/.cache/boxbuild-checks. A boot with the same inputs, to the byte, is then not made again, except one
in ten, which must have the same result. The boots of attacks, jail, policy, isolation, secrets and trust are always made.

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
    /// Check everything but the longer boots of parts that are not this landing's.
    #[arg(long, conflicts_with = "all")]
    landing: bool,
    /// Go on to the next part of the longer boots; implies --landing.
    #[arg(long, conflicts_with = "all")]
    next: bool,
    /// Make each boot, even if its result is kept.
    #[arg(long)]
    fresh: bool,
}

impl Options {
    const fn extent(&self) -> Extent {
        match (self.all, self.landing || self.next) {
            (true, _) => Extent::All,
            (_, true) => Extent::Landing,
            _ => Extent::Short,
        }
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let started = Instant::now();
    let workspace = Workspace::find();
    if options.next {
        say::note(&format!("tests/boot/part: {}", parts::advance(&workspace)?));
    }
    let extent = options.extent();
    let outcome = check(&workspace, extent, options.fresh);
    say::ended(
        if extent == Extent::Short { "tests" } else { "all checks" },
        if outcome.is_ok() { "ok" } else { "FAILED" },
        started.elapsed(),
    );
    outcome?.iter().for_each(|line| say::note(line));
    Ok(ExitCode::SUCCESS)
}

/// Runs all checks, and returns the summary's lines.
fn check(workspace: &Workspace, extent: Extent, fresh: bool) -> Result<Vec<String>> {
    let all = extent != Extent::Short;
    let scratch = Scratch::begin()?;
    let mut checks = Checks::of(workspace);
    setup::for_lints()?;
    checks.cargo("cargo fmt --check", workspace.cargo().args(["fmt", "--all", "--check"]));
    if all {
        checks.done("dependencies", || dependencies::check(workspace));
    }
    checks.step("prerequisites", || {
        if all { setup::for_all_tests(workspace) } else { setup::for_tests(workspace) }
    })?;
    let compiler = if all { Compiler::Clippy } else { Compiler::Rustc };
    let (programs, lints) = compile(&mut checks, compiler)?;
    if all {
        checks.done("clippy", || lints);
    }
    let listed = Listed::all(&programs)?;
    checks.done("boots of docs/status.md", || status::check(workspace, &listed));
    let boots = Selected::of(workspace, listed, extent)?;
    let tests = Tests { workspace, boots: &boots, scratch: scratch.path(), all, fresh };
    let summary = checks.step("tests", || tests.run(programs, &commit(workspace)));
    say::doing("");
    let summary = summary.inspect_err(|error| checks.failed.push(error.to_string()));
    let mut documentation = workspace.cargo();
    compiler.select(documentation.args(["test", "--workspace", "--doc"]));
    checks.cargo("tests in documentation", &mut documentation);
    if all {
        let mut documents = workspace.cargo();
        documents.args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
        checks.cargo("cargo doc", documents.env("RUSTDOCFLAGS", "-D warnings"));
    }
    if extent == Extent::All {
        checks.done("fuzz targets", || fuzz::check(workspace));
    }
    say::note(&checks.processor.line());
    checks.verdict()?;
    summary
}

/// Returns the current commit, or else the time, so that each run repeats other starts.
fn commit(workspace: &Workspace) -> String {
    let mut git = Command::new("git");
    let text = program::run(git.args(["rev-parse", "HEAD"]).current_dir(workspace.path(".")));
    let text = text.map(|it| String::from_utf8_lossy(&it).into_owned());
    text.unwrap_or_else(|_| format!("{:?}", SystemTime::now()))
}

/// Compiles the programs that tests start, and the tests. Both have directories of their own, so that cargo compiles them at the same
/// time: at the end of each program, only one processor has work.
fn compile(checks: &mut Checks<'_>, compiler: Compiler) -> Result<(Vec<TestProgram>, Result<()>)> {
    let workspace = checks.workspace;
    checks.step("compiling the tests and the programs that they start", || {
        thread::scope(|scope| {
            let emulated = scope.spawn(|| {
                Artefacts::emulated_builds(workspace).iter_mut().try_for_each(cargo::captured)
            });
            let mut builder = Artefacts::builder_build(workspace, Profile::Dev);
            cargo::captured(compiler.select(&mut builder))?;
            let programs = programs::compile(workspace, compiler);
            emulated.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            programs
        })
    })
}

/// Checks that run even if an earlier check has failed.
struct Checks<'a> {
    workspace: &'a Workspace,
    /// The names of the failed checks.
    failed: Vec<String>,
    processor: Processor,
}

impl<'a> Checks<'a> {
    fn of(workspace: &'a Workspace) -> Self {
        Self { workspace, failed: Vec::new(), processor: Processor::default() }
    }

    /// Runs a step without which the others make no sense.
    fn step<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.processor.step(name, || say::step(name, work))
    }

    fn cargo(&mut self, name: &str, command: &mut Command) {
        self.done(name, || cargo::captured(command));
    }

    fn done(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        if let Err(error) = self.step(name, work) {
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
        let error = Checks { failed, ..Checks::of(&workspace) }.verdict().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cargo xtask test failed (2 checks):\ncargo clippy\n\
             cargo test -p a -- --exact b::c\nthe output of each is above"
        );
    }
}
