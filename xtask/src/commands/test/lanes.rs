//! The lanes, one for each processor: each takes a job from the queue, does it, and takes the next.

use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use testkit::{Artefacts, KitError, Result, Workspace};
use tool_output::{cargo, say};

use super::again::{Failure, Flaky, may_be_chance};
use super::programs::{self, TestProgram, check_table};
use super::queue::{Job, Next, Queue};
use super::ran::Ran;
use super::scope::{Checked, LeftOut, Scope};
use super::split::{NEEDING_PROGRAMS, Piece, SHARING, needs_programs, split};
use super::tally::{Sum, Tally};
use super::temporary::{MAKING_FILES, Temporary};
use super::times::Times;

/// The tables whose lines are names of programs.
const TABLES: [(&str, &[&str]); 3] = [
    ("MAKING_FILES", &MAKING_FILES),
    ("NEEDING_PROGRAMS", &NEEDING_PROGRAMS),
    ("SHARING", &SHARING),
];

struct Lanes<'a> {
    workspace: &'a Workspace,
    scope: Scope,
    count: usize,
    temporary: Temporary,
    state: Mutex<State>,
    /// Notified whenever a job has ended.
    ended: Condvar,
}

struct State {
    queue: Queue,
    times: Times,
    tally: Tally,
    left_out: LeftOut,
    /// The tests with `#[ignore]` that did not run, each with its program.
    ignored: Vec<String>,
    /// Tests that failed, and are tried once more.
    failures: Vec<Failure>,
    /// Tests that failed at first and then passed.
    flaky: Vec<Flaky>,
    /// For each job that failed its name, or the command that repeats what failed.
    failed: Vec<String>,
}

/// Compiles everything and runs all tests and the other jobs that take long. All run even if one fails.
/// Prints a line for each test program and job as it ends, and everything that a failed one wrote.
///
/// # Errors
/// [`KitError::Failed`] with the names of those that failed or could not be started.
pub(super) fn run(workspace: &Workspace, scope: Scope) -> Result<Checked> {
    let state = State {
        queue: Queue::new(scope.jobs().iter().cloned()),
        times: Times::read(workspace),
        tally: Tally::default(),
        left_out: LeftOut::default(),
        ignored: Vec::new(),
        failures: Vec::new(),
        flaky: Vec::new(),
        failed: Vec::new(),
    };
    let count = thread::available_parallelism().map_or(1, usize::from);
    let (temporary, state, ended) = (Temporary::new(), Mutex::new(state), Condvar::new());
    let lanes = Lanes { workspace, scope, count, temporary, state, ended };
    say::watch(|| {
        thread::scope(|scope| {
            for _ in 0..count {
                scope.spawn(|| lanes.run());
            }
        });
        lanes.try_again();
    });
    let state = lanes.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.times.write(workspace)?;
    state.checked()
}

impl Lanes<'_> {
    /// Does one job after the other, until no job is left.
    fn run(&self) {
        while let Some(job) = self.next() {
            let succeeded = match &job {
                Job::Piece(piece) => self.test(piece),
                step => self.step(step),
            };
            let mut state = self.lock();
            state.queue.finish(&job, succeeded);
            say::doing(&state.queue.running().join(", "));
            self.ended.notify_all();
        }
    }

    /// Returns the next job, as soon as there is one that can be done.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            match state.queue.next() {
                Next::Job(job) => {
                    say::doing(&state.queue.running().join(", "));
                    return Some(job);
                }
                Next::End => return None,
                Next::Wait => {
                    state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Does a job that runs cargo; returns whether it succeeded.
    fn step(&self, job: &Job) -> bool {
        let started = Instant::now();
        let outcome = match job {
            Job::Tests => self.compile_tests(),
            _ => job.cargo(self.workspace).iter_mut().try_for_each(cargo::captured),
        };
        let name = job.name();
        if let Err(error) = &outcome {
            say::error(error);
            self.lock().failed.push(name.clone());
        }
        say::ended(&name, if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
        outcome.is_ok()
    }

    /// Compiles the test programs, and adds their tests to the queue.
    fn compile_tests(&self) -> Result<()> {
        let programs = programs::compile(self.workspace)?;
        TABLES.iter().try_for_each(|(table, names)| check_table(&programs, table, names))?;
        let listed = programs.into_iter().map(|it| it.tests().map(|tests| (Arc::new(it), tests)));
        let (selected, left_out) = self.scope.select(listed.collect::<Result<_>>()?)?;
        let mut state = self.lock();
        let pieces = split(&selected, &state.times, self.count);
        state.queue.add(pieces);
        state.left_out = left_out;
        Ok(())
    }

    /// Runs what failed once more, one program after the other and with nothing beside it.
    fn try_again(&self) {
        let failures = std::mem::take(&mut self.lock().failures);
        let is_chance = may_be_chance(&failures);
        for failure in failures {
            say::doing(&failure.name());
            if !(is_chance && self.passes_now(&failure)) {
                self.lock().failed.push(failure.repeat);
            }
        }
    }

    /// Returns whether tests pass that failed before; says why if they cannot run.
    fn passes_now(&self, failure: &Failure) -> bool {
        self.again(failure).unwrap_or_else(|error| {
            say::error(&error);
            false
        })
    }

    fn again(&self, failure: &Failure) -> Result<bool> {
        let ran = Ran::of(&mut self.command(&failure.program, &failure.tests))?;
        say::ended(&format!("again: {}", failure.name()), ran.verdict(), ran.taken);
        if !ran.passes() {
            say::relay(&ran.written());
            return Ok(false);
        }
        let flaky = failure.flaky(self.workspace, &ran)?;
        let mut state = self.lock();
        state.tally.passed += ran.heard.passed;
        state.flaky.push(flaky);
        Ok(true)
    }

    /// Returns the command that runs tests of a program; all, if none is named.
    fn command(&self, program: &TestProgram, tests: &[String]) -> Command {
        let mut command = program.command();
        self.temporary.pass_to(&mut command, &program.name);
        if needs_programs(program) {
            command.env(Artefacts::BUILT, "1");
        }
        if self.scope == Scope::All {
            command.arg("--include-ignored");
        }
        if !tests.is_empty() {
            command.arg("--exact").args(tests);
        }
        command
    }

    /// Runs some tests of a program; returns whether they pass.
    fn test(&self, piece: &Piece) -> bool {
        let result = match Ran::of(&mut self.command(&piece.program, &piece.tests)) {
            Ok(ran) => self.note(piece, &ran),
            Err(error) => {
                say::error(&error);
                let repeat = piece.program.repeats(&piece.tests);
                self.lock().failed.push(self.temporary.repeat(&piece.program.name, repeat));
                Sum::not_started()
            }
        };
        let sum = self.lock().tally.add(piece, &result);
        if let Some(sum) = sum {
            say::ended(&format!("    {}", piece.program.name), &sum.verdict(), sum.taken);
        }
        !result.failed
    }

    /// Notes the times of tests that ran, and shows those that failed.
    fn note(&self, piece: &Piece, ran: &Ran) -> Sum {
        let mut state = self.lock();
        for (test, taken) in &ran.heard.times {
            state.times.note(&piece.program.name, test, *taken);
        }
        let named = |test: &String| format!("{} {test}", piece.program.name);
        state.ignored.extend(ran.heard.ignored.iter().map(named));
        if !ran.passes() {
            let repeat = self.temporary.repeat(&piece.program.name, ran.repeat(piece));
            say::relay(&ran.written());
            say::note(&format!(
                "{} has failed ({}); repeat it with\n    {repeat}",
                piece.name(),
                ran.status
            ));
            state.failures.push(Failure::of(piece, ran, repeat));
        }
        Sum::of(ran)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn checked(self) -> Result<Checked> {
        let left = self.queue.left();
        if self.failed.is_empty() && left.is_empty() {
            let (passed, ignored) = (self.tally.passed, self.ignored);
            let (left_out, flaky) = (self.left_out, self.flaky);
            return Ok(Checked { passed, ignored, left_out, flaky });
        }
        let not_run = left.iter().map(|name| format!("not run: {name}"));
        let lines: Vec<String> = self.failed.iter().cloned().chain(not_run).collect();
        let plural = if self.failed.len() == 1 { "check" } else { "checks" };
        let status = format!("{} {plural}", self.failed.len());
        let output = format!("{}\nthe output of each is above", lines.join("\n"));
        Err(KitError::Failed { command: "cargo xtask test".to_owned(), status, output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(queue: Queue, failed: &[&str]) -> State {
        State {
            queue,
            times: Times::default(),
            tally: Tally::default(),
            left_out: LeftOut::default(),
            ignored: Vec::new(),
            failures: Vec::new(),
            flaky: Vec::new(),
            failed: failed.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    #[test]
    fn the_last_error_repeats_every_failure_and_what_could_not_run() {
        let failed = ["cargo clippy", "cargo test -p a --lib -- --exact b::c"];
        let error = state(Queue::new([Job::DocTests]), &failed).checked().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cargo xtask test failed (2 checks):\n\
             cargo clippy\n\
             cargo test -p a --lib -- --exact b::c\n\
             not run: tests in documentation\n\
             the output of each is above"
        );
    }

    #[test]
    fn a_run_without_failure_has_the_number_of_tests() {
        let mut state = state(Queue::new([]), &[]);
        state.tally.passed = 7;
        assert_eq!(state.checked().unwrap().passed, 7);
    }
}
