//! The order of the work: which job a free lane takes next. It runs nothing itself.

use std::collections::VecDeque;
use std::process::Command;

use testkit::{Artefacts, Profile, Workspace};

use super::split::Piece;

/// A part of the work that one lane does.
#[derive(Debug, Clone)]
pub(super) enum Job {
    /// Compiles the project's static programs.
    Programs,
    /// Compiles boxbuild.
    Builder,
    /// Compiles the test programs, and yields their pieces.
    Tests,
    /// Runs clippy.
    Lints,
    /// Writes the code's documentation.
    Documents,
    /// Runs the tests in the documentation.
    DocTests,
    /// Runs tests.
    Piece(Piece),
}

/// The answer to a free lane.
#[derive(Debug)]
pub(super) enum Next {
    Job(Job),
    /// Nothing can be done until another lane has finished its job.
    Wait,
    /// Nothing is left that can be done.
    End,
}

/// The jobs that wait, and what is known of those that run.
#[derive(Debug)]
pub(super) struct Queue {
    /// In the order in which they start, as far as they are ready.
    waiting: VecDeque<Job>,
    /// The names of those that run.
    running: Vec<String>,
    /// Whether a job runs during which cargo locks the directory of development builds.
    is_locked: bool,
    /// How many of the two jobs are still to succeed that compile the programs that tests start.
    programs_missing: u8,
}

impl Job {
    /// Returns its name, for people.
    pub(super) fn name(&self) -> String {
        let name = match self {
            Self::Programs => "compiling the static programs",
            Self::Builder => "compiling boxbuild",
            Self::Tests => "compiling the tests",
            Self::Lints => "cargo clippy",
            Self::Documents => "cargo doc",
            Self::DocTests => "tests in documentation",
            Self::Piece(piece) => return piece.name(),
        };
        name.to_owned()
    }

    /// Returns the cargo commands of a job that only runs some.
    pub(super) fn cargo(&self, workspace: &Workspace) -> Vec<Command> {
        let mut cargo = workspace.cargo();
        match self {
            Self::Programs => return Artefacts::test_builds(workspace),
            Self::Builder => cargo = Artefacts::builder_build(workspace, Profile::Dev),
            Self::Lints => {
                cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
            }
            Self::Documents => {
                cargo.env("RUSTDOCFLAGS", "-D warnings");
                cargo.args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
            }
            Self::DocTests => {
                cargo.args(["test", "--workspace", "--doc"]);
            }
            Self::Tests | Self::Piece(_) => return Vec::new(),
        }
        vec![cargo]
    }

    /// Returns whether cargo locks the directory of development builds while it runs. Two such jobs at a
    /// time would leave a lane waiting. Static programs have a directory and a lock of their own.
    fn locks(&self) -> bool {
        !matches!(self, Self::Programs | Self::Piece(_))
    }

    /// Returns whether it would compile the project's programs if they were not there.
    fn needs_programs(&self) -> bool {
        matches!(self, Self::Piece(piece) if piece.needs_programs())
    }
}

impl Queue {
    /// Creates a queue of jobs, in the order in which they should start.
    pub(super) fn new(jobs: impl IntoIterator<Item = Job>) -> Self {
        let waiting = jobs.into_iter().collect();
        Self { waiting, running: Vec::new(), is_locked: false, programs_missing: 2 }
    }

    /// Gives the next job to a lane, which calls [`Queue::finish`] when it has ended.
    pub(super) fn next(&mut self) -> Next {
        let is_ready = |job: &Job| {
            !(job.locks() && self.is_locked || job.needs_programs() && self.programs_missing > 0)
        };
        let found = self.waiting.iter().position(is_ready);
        match found.and_then(|place| self.waiting.remove(place)) {
            Some(job) => {
                self.is_locked |= job.locks();
                self.running.push(job.name());
                Next::Job(job)
            }
            None if self.running.is_empty() => Next::End,
            None => Next::Wait,
        }
    }

    /// Notes that a job has ended.
    pub(super) fn finish(&mut self, job: &Job, succeeded: bool) {
        self.is_locked &= !job.locks();
        if succeeded && matches!(job, Job::Programs | Job::Builder) {
            self.programs_missing = self.programs_missing.saturating_sub(1);
        }
        let name = job.name();
        if let Some(place) = self.running.iter().position(|it| *it == name) {
            self.running.remove(place);
        }
    }

    /// Adds the pieces of test programs, which are in the order in which they should start.
    pub(super) fn add(&mut self, pieces: impl IntoIterator<Item = Piece>) {
        self.waiting.extend(pieces.into_iter().map(Job::Piece));
    }

    /// Returns the names of the jobs that run.
    pub(super) fn running(&self) -> &[String] {
        &self.running
    }

    /// Returns the names of the jobs that no lane has taken.
    pub(super) fn left(&self) -> Vec<String> {
        self.waiting.iter().map(Job::name).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::programs::TestProgram;
    use super::*;

    fn piece(program: &str) -> Piece {
        let program = Arc::new(TestProgram::named(program));
        Piece { program, tests: Vec::new(), expected: 1.0, part: (1, 1) }
    }

    fn steps() -> Queue {
        Queue::new([Job::Programs, Job::Tests, Job::Builder, Job::Lints])
    }

    fn taken(queue: &mut Queue) -> Job {
        match queue.next() {
            Next::Job(job) => job,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn two_compile_at_a_time_but_never_two_in_one_directory() {
        let mut queue = steps();
        let (programs, tests) = (taken(&mut queue), taken(&mut queue));
        assert_eq!(queue.running(), ["compiling the static programs", "compiling the tests"]);
        assert!(matches!(queue.next(), Next::Wait), "boxbuild would wait for cargo's lock");
        queue.finish(&programs, true);
        assert!(matches!(queue.next(), Next::Wait));
        queue.add([piece("a --lib")]);
        queue.finish(&tests, true);
        let builder = taken(&mut queue);
        assert_eq!(
            (builder.name(), taken(&mut queue).name()),
            ("compiling boxbuild".into(), "a --lib".into())
        );
        queue.finish(&builder, false);
        assert_eq!(taken(&mut queue).name(), "cargo clippy");
    }

    #[test]
    fn tests_that_need_the_programs_wait_for_them_and_others_do_not() {
        let mut queue = Queue::new([Job::Programs, Job::Builder]);
        queue.add([piece("boxbuild-tests --test build"), piece("a --lib")]);
        let (programs, builder) = (taken(&mut queue), taken(&mut queue));
        let unit = taken(&mut queue);
        assert_eq!(unit.name(), "a --lib");
        queue.finish(&programs, true);
        assert!(matches!(queue.next(), Next::Wait), "boxbuild is not there yet");
        queue.finish(&builder, true);
        let build = taken(&mut queue);
        queue.finish(&unit, true);
        assert!(matches!(queue.next(), Next::Wait), "it may yield more");
        queue.finish(&build, false);
        assert!(matches!(queue.next(), Next::End));
        assert!(queue.left().is_empty());
    }

    #[test]
    fn without_the_programs_the_tests_that_need_them_are_left() {
        let mut queue = Queue::new([Job::Programs, Job::Builder]);
        queue.add([piece("boxbuild-tests --test build")]);
        let (programs, builder) = (taken(&mut queue), taken(&mut queue));
        queue.finish(&programs, true);
        queue.finish(&builder, false);
        assert!(matches!(queue.next(), Next::End));
        assert_eq!(queue.left(), ["boxbuild-tests --test build"]);
    }
}
