//! Second tries: a test that failed is run once more, alone. If it passes then, it depends on chance or on its neighbours;
//! the run succeeds, and says so.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use testkit::{KitError, Result, Workspace};

use super::programs::TestProgram;
use super::ran::Ran;
use super::split::Piece;

/// How many tests of a run are tried again. If more fail, chance is not the reason.
const MOST: usize = 10;

/// Tests of a program that failed in one process.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) program: Arc<TestProgram>,
    /// The tests to run again; none is named where all of the program are.
    pub(super) tests: Vec<String>,
    /// Everything that the process wrote.
    pub(super) written: Vec<u8>,
    /// The command line that repeats them.
    pub(super) repeat: String,
}

/// Tests that failed at first and then passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaky {
    pub(super) name: String,
    /// The directory with both outputs.
    pub(super) outputs: PathBuf,
}

impl Failure {
    /// Describes what failed of a piece, and how that is repeated.
    pub(super) fn of(piece: &Piece, ran: &Ran, repeat: String) -> Self {
        let program = Arc::clone(&piece.program);
        let mut tests = ran.to_repeat();
        // Of a process that died, nobody knows what was left to run.
        if !ran.has_result() || tests.is_empty() {
            tests.clone_from(&piece.tests);
        }
        Self { program, tests, written: ran.written(), repeat }
    }

    /// Returns its name, for people.
    pub(super) fn name(&self) -> String {
        match &self.tests[..] {
            [] => self.program.name.clone(),
            tests => format!("{} {}", self.program.name, tests.join(" ")),
        }
    }

    /// Keeps both outputs, and returns what is said of tests that have passed now.
    ///
    /// # Errors
    /// The outputs cannot be written.
    pub(super) fn flaky(&self, workspace: &Workspace, ran: &Ran) -> Result<Flaky> {
        let outputs = workspace.target("flaky").join(file_name(&self.name()));
        fs::create_dir_all(&outputs).map_err(KitError::file("make", &outputs))?;
        for (name, text) in [("failed.txt", &self.written), ("passed.txt", &ran.written())] {
            let path = outputs.join(name);
            fs::write(&path, text).map_err(KitError::file("write", &path))?;
        }
        Ok(Flaky { name: self.name(), outputs })
    }
}

/// Returns whether failures are few enough to be chance.
pub(super) fn may_be_chance(failures: &[Failure]) -> bool {
    failures.iter().map(|it| it.tests.len().max(1)).sum::<usize>() <= MOST
}

/// Returns a name for a directory: letters, digits and `-`, at most 100.
fn file_name(name: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    name.chars().map(plain).take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn failure(script: &str, tests: &[&str]) -> Failure {
        let program = Arc::new(TestProgram::named("a --lib"));
        let tests = tests.iter().map(|&it| it.to_owned()).collect();
        let piece = Piece { program, tests, expected: 1.0, part: (1, 1) };
        let ran = Ran::of(Command::new("sh").args(["-c", script])).unwrap();
        Failure::of(&piece, &ran, "cargo test".to_owned())
    }

    #[test]
    fn only_what_failed_is_run_again() {
        let script = "printf 'test b ... FAILED\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored\n'";
        assert_eq!(failure(script, &["a", "b"]).tests, ["b"]);
        assert_eq!(failure(script, &["a", "b"]).name(), "a --lib b");
    }

    #[test]
    fn all_of_a_process_that_died_is_run_again() {
        assert_eq!(failure("echo 'test a ... '; kill -9 $$", &["a", "b"]).tests, ["a", "b"]);
        assert_eq!(failure("kill -9 $$", &[]).name(), "a --lib");
    }

    #[test]
    fn many_failures_are_no_chance() {
        let of = |count| vec!["a"; count];
        assert!(may_be_chance(&[failure("kill -9 $$", &of(9)), failure("kill -9 $$", &[])]));
        assert!(!may_be_chance(&[failure("kill -9 $$", &of(10)), failure("kill -9 $$", &[])]));
    }

    #[test]
    fn the_name_of_the_outputs_is_that_of_a_file() {
        assert_eq!(file_name("a --test b c::d_e"), "a---test-b-c--d_e");
    }
}
