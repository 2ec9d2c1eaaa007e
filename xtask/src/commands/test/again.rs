//! Retries a failed test once, alone. If it then passes, it depends on chance or on other tests, and is flaky: the whole run
//! succeeds, and lists the test.

use std::fs;
use std::path::PathBuf;

use testbed::boots::{Run, module_of};
use testbed::{KitError, Result, Workspace};

use super::programs::TestProgram;
use super::ran::Ran;

/// The maximum number of tests that are retried in a run. If more tests fail, chance is not the reason.
const MAX_REPEATED: usize = 10;

/// Failed tests of one process.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) program: TestProgram,
    /// The names of the tests to retry. If empty, all tests of the program are retried.
    pub(super) tests: Vec<String>,
    /// The output of the process.
    pub(super) written: Vec<u8>,
    /// Whether a signal has ended the process. A crash is never treated as chance.
    crashed: bool,
}

/// Tests that failed at first and passed when they were retried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaky {
    pub(super) name: String,
    /// The directory with both outputs.
    pub(super) outputs: PathBuf,
}

impl Failure {
    /// Returns the failed tests of `ran`. If their names are unknown, all tests of the program will be retried.
    pub(super) fn of(program: TestProgram, ran: &Ran) -> Self {
        let (tests, crashed) = (ran.failed().to_vec(), ran.is_killed());
        Self { program, tests, written: ran.written(), crashed }
    }

    /// Returns whether all failed tests have passed in the retry.
    pub(super) fn is_over(&self, again: &Ran) -> bool {
        let named = self.tests.len();
        again.passes() && (named == 0 || again.heard.passed == named)
    }

    /// Returns whether a failed test has taken a kept result of a start in `run`. Chance cannot make a kept result fail.
    pub(super) fn has_kept_result(&self, run: &Run) -> bool {
        self.program.boots() && self.tests.iter().any(|it| run.has_found(module_of(it)))
    }

    /// Returns the name to display.
    pub(super) fn name(&self) -> String {
        match &self.tests[..] {
            [] => self.program.name.clone(),
            tests => format!("{} {}", self.program.name, tests.join(" ")),
        }
    }

    /// Writes the outputs of both runs to `target/flaky`, and returns their description.
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

/// Returns whether the failures may be chance: there are few, and none is a crash.
pub(super) fn may_be_chance(failures: &[Failure]) -> bool {
    let crashed = failures.iter().any(|it| it.crashed);
    !crashed && failures.iter().map(|it| it.tests.len().max(1)).sum::<usize>() <= MAX_REPEATED
}

/// Returns a directory name: at most 100 letters, digits, `_` and `-`.
fn file_name(name: &str) -> String {
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    name.chars().map(plain).take(100).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use testbed::Cache;
    use testbed::boots::Origin;

    use super::*;

    fn failure(script: &str) -> Failure {
        let ran = Ran::of(Command::new("sh").args(["-c", script])).unwrap();
        Failure::of(TestProgram::named("a --lib"), &ran)
    }

    fn failures(count: usize) -> Failure {
        failure(&format!(
            "printf '\nfailures:\n'; for it in $(seq {count}); do echo \"    b$it\"; done; \
             echo; echo 'test result: FAILED. 0 passed; {count} failed; 0 ignored'; exit 101"
        ))
    }

    #[test]
    fn only_what_failed_is_run_again() {
        assert_eq!(failures(2).tests, ["b1", "b2"]);
        assert_eq!(failures(1).name(), "a --lib b1");
    }

    #[test]
    fn all_of_a_process_that_ended_early_is_run_again() {
        assert_eq!(failure("echo 'test a ... ok'; exit 3").name(), "a --lib");
    }

    #[test]
    fn a_second_run_shows_each_test_that_failed() {
        let again = |passed: usize| {
            let result = format!("echo 'test result: ok. {passed} passed; 0 failed; 0 ignored'");
            Ran::of(Command::new("sh").args(["-c", &result])).unwrap()
        };
        assert!(failures(2).is_over(&again(2)));
        assert!(!failures(2).is_over(&again(0)), "a test that does not run has not passed");
        assert!(failure("exit 3").is_over(&again(7)));
    }

    #[test]
    fn a_kept_result_that_fails_is_no_chance() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path().join("cache"));
        let run = Run::begin(&directory.path().join("run"), &cache, Some("a")).unwrap();
        run.note(Origin::Found, Duration::ZERO, "found::a");
        run.note(Origin::Made, Duration::ZERO, "made::a");
        let failure = |program: &str, test: &str| Failure {
            program: TestProgram::named(program),
            tests: vec![test.to_owned()],
            written: Vec::new(),
            crashed: false,
        };
        let boots = "boxbuild-tests --test boot";
        assert!(failure(boots, "found::b").has_kept_result(&run));
        assert!(!failure(boots, "made::a").has_kept_result(&run));
        assert!(!failure("a --lib", "found::a").has_kept_result(&run));
    }

    #[test]
    fn many_failures_and_a_crash_are_no_chance() {
        assert!(may_be_chance(&[failures(9), failure("exit 3")]));
        assert!(!may_be_chance(&[failures(10), failure("exit 3")]));
        assert!(!may_be_chance(&[failures(1), failure("kill -SEGV $$")]));
    }

    #[test]
    fn the_name_of_the_outputs_is_that_of_a_file() {
        assert_eq!(file_name("a --test b c::d_e"), "a---test-b-c--d_e");
    }
}
