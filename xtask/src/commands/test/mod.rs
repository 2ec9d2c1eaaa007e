//! `cargo xtask test`: every check. What is wrong at once is checked first; what takes long is done side by
//! side in lanes, and all of it is done even if a part fails.

mod again;
mod lanes;
mod programs;
mod queue;
mod ran;
mod scope;
mod split;
mod tally;
mod temporary;
mod times;

use std::process::ExitCode;
use std::time::Instant;

use testkit::{Result, Workspace};
use tool_output::{cargo, say};

use self::scope::{Checked, Scope};
use super::{Outcome, dependencies, fuzz, setup};

const HELP: &str = "\
Without an option every check is done: cargo fmt, dependencies, cargo clippy, cargo doc, and all tests but those that are
ignored. On two processors that takes about twenty minutes, and from a clean clone an hour. The last lines say which tests were left out.

A test program is split where that ends the run sooner. The time of each test is kept in
target/test-times.json, so that the next run starts with those that take longest. Where there is enough memory
and TMPDIR is not set, tests that make many files have them in /dev/shm.

Examples:
  cargo xtask test --quick
  cargo test -p boxfile-spec";

/// How long each target of the fuzzer is tried with all checks, in seconds.
const FUZZED: u32 = 30;

/// How much is checked.
#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Options {
    /// Leave out what takes long, to check in less than two minutes: cargo clippy, cargo doc, tests in
    /// documentation, all that needs QEMU or Debian images, and tests with very many inputs.
    #[arg(long)]
    quick: bool,
    /// Also run the tests that are ignored otherwise, because each takes minutes, and the fuzzer's targets, half a minute each.
    #[arg(long, conflicts_with = "quick")]
    all: bool,
}

impl Options {
    fn scope(&self) -> Scope {
        match (self.quick, self.all) {
            (true, _) => Scope::Quick,
            (_, true) => Scope::All,
            _ => Scope::Usual,
        }
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let (workspace, scope) = (Workspace::find(), options.scope());
    let started = Instant::now();
    let outcome = check(&workspace, scope);
    let name = if scope == Scope::Quick { "quick checks" } else { "all checks" };
    say::ended(name, if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
    let checked = outcome?;
    scope.summary(&checked).iter().for_each(|line| say::note(line));
    Ok(ExitCode::SUCCESS)
}

fn check(workspace: &Workspace, scope: Scope) -> Result<Checked> {
    setup::for_lints()?;
    let mut format = workspace.cargo();
    format.args(["fmt", "--all", "--check"]);
    say::step("cargo fmt --check", || cargo::run(&mut format))?;
    say::step("dependencies", || dependencies::check(workspace))?;
    say::step("prerequisites", || match scope {
        Scope::Quick => setup::for_quick_tests(workspace),
        Scope::Usual | Scope::All => setup::for_tests(workspace),
    })?;
    let checked = lanes::run(workspace, scope)?;
    if scope == Scope::All {
        fuzz::each(FUZZED)?;
    }
    Ok(checked)
}
