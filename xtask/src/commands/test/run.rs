//! Runs test programs, two at a time: while the last tests of one program leave a processor idle, the other program uses it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use testbed::boots::{self, Run};
use testbed::{Artefacts, Cache, KitError, Result, Workspace, promises};
use tool_output::say;

use super::again::{Failure, Flaky, may_be_chance};
use super::longest;
use super::parts::Selected;
use super::programs::TestProgram;
use super::ran::Ran;

/// The beginnings of the names of environment variables that can make wrong snapshots pass, or reduce the number of inputs or of kills.
const WEAKENING: [&str; 3] = ["INSTA_", "PROPTEST_", "BOXBUILD_"];
/// The number of programs that run in parallel.
const LANES: usize = 2;
/// The tests to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tests<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) boots: &'a Selected,
    /// The directory for temporary files.
    pub(super) scratch: &'a Path,
    /// Whether tests with `#[ignore]` run too, except those that boot, which `boots` selects.
    pub(super) all: bool,
    /// Whether no result of a boot is taken from the cache.
    pub(super) fresh: bool,
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
    /// Runs all tests, retries the failed ones, and returns the summary's lines. `commit` selects the results of boots that are
    /// repeated.
    ///
    /// # Errors
    /// [`KitError::Failed`], with the commands with which the user can repeat the tests that failed twice.
    pub(super) fn run(self, programs: Vec<TestProgram>, commit: &str) -> Result<Vec<String>> {
        let state = State { waiting: programs.into(), ..State::default() };
        let state = Mutex::new(state);
        let cache = Cache::of_user(self.workspace);
        let chooses = (!self.fresh).then_some(commit);
        let first = Run::begin(&self.workspace.target("boots"), &cache, chooses)?;
        thread::scope(|scope| {
            for _ in 0..LANES {
                scope.spawn(|| while self.next(&state, &first).is_some() {});
            }
        });
        let mut state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        // A test that fails is repeated with boots of its own.
        let second = Run::begin(&self.workspace.target("boots-again"), &cache, None)?;
        self.try_again(&mut state, (&first, &second));
        let mut lines = longest::lines(&first);
        match first.end() {
            Ok(None) => {}
            Ok(Some(key)) => {
                state.failed.push(format!("the start {key}, whose repetition had another result"));
            }
            Err(error) => state.failed.push(error.to_string()),
        }
        cache.prune();
        let summary =
            state.summary(self.boots).inspect_err(|_| lines.iter().for_each(|it| say::note(it)));
        lines.extend(summary?);
        Ok(lines)
    }

    /// Runs the next waiting program. Returns `None` if no program is waiting.
    fn next(self, state: &Mutex<State>, run: &Run) -> Option<()> {
        let program = lock(state).waiting.pop_front()?;
        say::doing(&program.name);
        let ran = match self.command(&program, &[], run).and_then(|mut it| Ran::of(&mut it)) {
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
    fn try_again(self, state: &mut State, runs: (&Run, &Run)) {
        let failures = std::mem::take(&mut state.failures);
        let is_chance = may_be_chance(&failures);
        for failure in failures {
            let passes = is_chance
                && self.again(&failure, state, runs).unwrap_or_else(|error| {
                    say::error(&error);
                    false
                });
            if !passes {
                state.failed.push(failure.program.repeats(&failure.tests));
            }
        }
    }

    /// Retries failed tests. `runs` are the run in which they failed, and the run of the retry.
    fn again(
        self,
        failure: &Failure,
        state: &mut State,
        (first, second): (&Run, &Run),
    ) -> Result<bool> {
        let ran = Ran::of(&mut self.command(&failure.program, &failure.tests, second)?)?;
        say::ended(&format!("again: {}", failure.name()), &ran.verdict(), ran.taken);
        if !failure.is_over(&ran) {
            say::relay(&ran.written());
            return Ok(false);
        }
        if failure.has_kept_result(first) {
            first.forget_all();
            say::note(
                "a new start passes where the kept result failed: all kept results are removed",
            );
            return Ok(false);
        }
        state.passed += ran.heard.passed;
        state.flaky.push(failure.flaky(self.workspace, &ran)?);
        Ok(true)
    }

    /// Returns the command that runs the named tests of a program, or all selected tests if `tests` is empty. The program that boots
    /// reads its tests from the directory of the run.
    fn command(self, program: &TestProgram, tests: &[String], run: &Run) -> Result<Command> {
        let mut command = program.command();
        for variable in weakening(std::env::vars_os().map(|(name, _)| name)) {
            command.env_remove(variable);
        }
        command.env(Artefacts::BUILT, "1").env("INSTA_UPDATE", "no");
        command.env("TMPDIR", self.scratch);
        command.env(promises::MEASURED, self.workspace.target(promises::MEASURED_FILE));
        if program.boots() {
            run.choose(if tests.is_empty() { &self.boots.tests } else { tests })?;
            command.env(boots::RUN, run.folder());
            return Ok(command);
        }
        if self.all {
            command.arg("--include-ignored");
        }
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        Ok(command)
    }
}

impl State {
    /// Returns the summary's lines.
    ///
    /// # Errors
    /// A test has failed twice.
    fn summary(self, boots: &Selected) -> Result<Vec<String>> {
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
        lines.push(match ignored + boots.left_out {
            0 => format!("{passed} tests passed"),
            left => format!(
                "{passed} tests passed; left out: {left}, which `cargo xtask test --all` runs"
            ),
        });
        Ok(lines)
    }
}

/// Returns the names of the variables that can weaken tests.
fn weakening(names: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let is_weakening = |name: &OsString| {
        WEAKENING.iter().any(|it| name.as_encoded_bytes().starts_with(it.as_bytes()))
    };
    names.filter(is_weakening)
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(left_out: usize) -> Selected {
        Selected { tests: vec!["hello::a".to_owned(), "jail::b".to_owned()], left_out }
    }

    #[test]
    fn no_variable_weakens_a_test_and_boots_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("cache"));
        let run = Run::begin(&directory.path().join("run"), &cache, None).unwrap();
        let (workspace, boots) = (&Workspace::find(), &selected(1));
        let scratch = directory.path();
        let tests = Tests { workspace, boots, scratch, all: false, fresh: false };
        let command = tests.command(&TestProgram::named("a --lib"), &[], &run).unwrap();
        let set = |name: &str| command.get_envs().any(|it| it.0 == name && it.1.is_some());
        assert!(set("INSTA_UPDATE") && set("TMPDIR"));
        let names =
            ["INSTA_FORCE_UPDATE", "PROPTEST_CASES", "BOXBUILD_KILLS", "HOME", "XBOXBUILD_"];
        let weak: Vec<_> = weakening(names.map(OsString::from).into_iter()).collect();
        assert_eq!(weak, names[..3]);
        assert_eq!(command.get_args().count(), 0);
        tests.command(&TestProgram::named("boxbuild-tests --test boot"), &[], &run).unwrap();
        assert_eq!(run.chosen().unwrap().into_iter().collect::<Vec<_>>(), boots.tests);
    }

    #[test]
    fn a_run_without_failure_has_the_numbers_of_tests() {
        let state = State { passed: 7, ..State::default() };
        assert_eq!(state.summary(&selected(0)).unwrap(), ["7 tests passed"]);
        let flaky = vec![Flaky { name: "a --lib b".into(), outputs: "target/flaky/b".into() }];
        let state = State { passed: 7, ignored: 2, flaky, ..State::default() };
        let lines = state.summary(&selected(3)).unwrap();
        let last = "7 tests passed; left out: 5, which `cargo xtask test --all` runs";
        assert_eq!(lines[1..], ["    a --lib b (target/flaky/b)", last]);
    }

    #[test]
    fn what_failed_twice_is_repeated_by_a_command() {
        let state = State { failed: vec!["cargo test -p a --lib".into()], ..State::default() };
        let error = state.summary(&selected(0)).unwrap_err().to_string();
        assert_eq!(error, "the tests failed (twice):\ncargo test -p a --lib");
    }
}
