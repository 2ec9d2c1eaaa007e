//! Runs test programs, two at a time: while the last tests of one program leave a processor idle, the other program uses it.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use testbed::{Artefacts, KitError, Result, Workspace};
use tool_output::say;

use super::again::{Failure, Flaky, may_be_chance};
use super::longest;
use super::programs::TestProgram;
use super::ran::Ran;

/// Environment variables that make wrong snapshots pass, or reduce the number of inputs of a property test.
const WEAKENING: [&str; 2] = ["INSTA_FORCE_PASS", "PROPTEST_CASES"];
/// The number of programs that run in parallel.
const LANES: usize = 2;
/// The number of threads of the program that boots. Most threads wait for a start that several tests share, or for a processor.
const BOOTING: &str = "48";

/// The tests to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tests<'a> {
    pub(super) workspace: &'a Workspace,
    /// Whether tests with `#[ignore]` run too.
    pub(super) all: bool,
    /// Whether all tests without `#[ignore]` have passed before, so that only those with `#[ignore]` run.
    pub(super) passed_before: bool,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<TestProgram>,
    passed: usize,
    ignored: usize,
    failures: Vec<Failure>,
    flaky: Vec<Flaky>,
    /// The commands with which the user can repeat the tests that failed twice.
    failed: Vec<String>,
}

impl Tests<'_> {
    /// Runs all tests, retries the failed ones, and returns the summary's lines.
    ///
    /// # Errors
    /// [`KitError::Failed`], with the commands with which the user can repeat the tests that failed twice.
    pub(super) fn run(self, programs: Vec<TestProgram>) -> Result<Vec<String>> {
        let state = State { waiting: programs.into(), ..State::default() };
        let state = Mutex::new(state);
        longest::clear(self.workspace);
        thread::scope(|scope| {
            for _ in 0..LANES {
                scope.spawn(|| while self.next(&state).is_some() {});
            }
        });
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.try_again(&mut state);
        let mut lines = longest::lines(self.workspace);
        lines.extend(state.summary(self.passed_before)?);
        Ok(lines)
    }

    /// Runs the next waiting program. Returns `None` if no program is waiting.
    fn next(self, state: &Mutex<State>) -> Option<()> {
        let program = lock(state).waiting.pop_front()?;
        say::doing(&program.name);
        let ran = match Ran::of(&mut self.command(&program, &[])) {
            Ok(ran) => ran,
            Err(error) => {
                say::error(&error);
                lock(state).failed.push(program.repeats(&[]));
                return Some(());
            }
        };
        say::ended(&format!("    {}", program.name), &ran.verdict(), ran.taken);
        let mut state = lock(state);
        state.passed += ran.heard.passed;
        state.ignored += ran.heard.ignored;
        if !ran.passes() {
            say::relay(&ran.written());
            state.failures.push(Failure::of(program, &ran));
        }
        Some(())
    }

    /// Retries the failed tests, one program after the other, if the failures may be chance.
    fn try_again(self, state: &mut State) {
        let failures = std::mem::take(&mut state.failures);
        let is_chance = may_be_chance(&failures);
        for failure in failures {
            let passes = is_chance
                && self.again(&failure, state).unwrap_or_else(|error| {
                    say::error(&error);
                    false
                });
            if !passes {
                state.failed.push(failure.program.repeats(&failure.tests));
            }
        }
    }

    fn again(self, failure: &Failure, state: &mut State) -> Result<bool> {
        let ran = Ran::of(&mut self.command(&failure.program, &failure.tests))?;
        say::ended(&format!("again: {}", failure.name()), &ran.verdict(), ran.taken);
        if !failure.is_over(&ran) {
            say::relay(&ran.written());
            return Ok(false);
        }
        state.passed += ran.heard.passed;
        state.flaky.push(failure.flaky(self.workspace, &ran)?);
        Ok(true)
    }

    /// Returns the command that runs the named tests of a program, or all selected tests if `tests` is empty.
    fn command(self, program: &TestProgram, tests: &[String]) -> Command {
        let mut command = program.command();
        command.env(Artefacts::BUILT, "1").env("INSTA_UPDATE", "no");
        for variable in WEAKENING {
            command.env_remove(variable);
        }
        if program.boots() {
            command.env("RUST_TEST_THREADS", BOOTING);
            command.env(Artefacts::BOOT_TIMES, longest::file(self.workspace));
        }
        if self.all {
            let only = self.passed_before && tests.is_empty();
            command.arg(if only { "--ignored" } else { "--include-ignored" });
        }
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command
    }
}

impl State {
    /// Returns the summary's lines.
    ///
    /// # Errors
    /// A test has failed twice.
    fn summary(self, passed_before: bool) -> Result<Vec<String>> {
        if !self.failed.is_empty() {
            let (command, status) = ("the tests".to_owned(), "twice".to_owned());
            return Err(KitError::Failed { command, status, output: self.failed.join("\n") });
        }
        let mut lines = Vec::new();
        if !self.flaky.is_empty() {
            let reason =
                "flaky, because they passed only when they were run again; both outputs are kept:";
            lines.push(reason.to_owned());
            let named = |it: &Flaky| format!("    {} ({})", it.name, it.outputs.display());
            lines.extend(self.flaky.iter().map(named));
        }
        let Self { passed, ignored, .. } = self;
        if passed_before {
            lines.push("the others passed before, on this commit".to_owned());
        }
        lines.push(match ignored {
            0 => format!("{passed} tests passed"),
            _ => format!(
                "{passed} tests passed; left out: {ignored}, which `cargo xtask test --all` runs"
            ),
        });
        Ok(lines)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_weakens_a_test() {
        let tests = Tests { workspace: &Workspace::find(), all: false, passed_before: false };
        let command = tests.command(&TestProgram::named("a --lib"), &[]);
        let removed = |name: &&str| command.get_envs().any(|it| it == (name.as_ref(), None));
        assert!(WEAKENING.iter().all(removed));
    }

    #[test]
    fn a_run_without_failure_has_the_numbers_of_tests() {
        let state = State { passed: 7, ..State::default() };
        assert_eq!(state.summary(false).unwrap(), ["7 tests passed"]);
        let flaky = vec![Flaky { name: "a --lib b".into(), outputs: "target/flaky/b".into() }];
        let lines =
            State { passed: 7, ignored: 2, flaky, ..State::default() }.summary(false).unwrap();
        let last = "7 tests passed; left out: 2, which `cargo xtask test --all` runs";
        assert_eq!(lines[1..], ["    a --lib b (target/flaky/b)", last]);
    }

    #[test]
    fn what_failed_twice_is_repeated_by_a_command() {
        let state = State { failed: vec!["cargo test -p a --lib".into()], ..State::default() };
        let error = state.summary(false).unwrap_err().to_string();
        assert_eq!(error, "the tests failed (twice):\ncargo test -p a --lib");
    }
}
