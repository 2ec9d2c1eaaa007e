//! Runs the test programs side by side, one for each processor.
//!
//! Each runs its tests one by one: a few tests take a minute each, and a program that waits for the last
//! of them would leave the other processors idle.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use testkit::{KitError, Result, program};

use super::programs::TestProgram;
use crate::say;

/// Runs all programs. Prints a line for each as it ends, and everything that a failed one wrote.
///
/// # Errors
/// [`KitError::Failed`] with the names of those that failed or could not be started.
pub(super) fn run(programs: Vec<TestProgram>) -> Result<()> {
    let count = programs.len();
    let (queue, failed) = (Mutex::new(programs.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let lane = || {
        while let Some(program) = next() {
            if !passes(&program) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.name);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(lane);
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() {
        return Ok(());
    }
    let status = format!("{} of {count} test programs", failed.len());
    let output = format!("{}\ntheir output is above", failed.join("\n"));
    Err(KitError::Failed { command: "cargo test".to_owned(), status, output })
}

/// Runs one program; returns whether its tests pass.
fn passes(program: &TestProgram) -> bool {
    let started = Instant::now();
    let (summary, written) = match program::finish(&mut program.command()) {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let summary = summary(&text).filter(|_| output.status.success());
            (summary, [&output.stdout[..], &output.stderr].concat())
        }
        Err(error) => (None, format!("{error}\n").into_bytes()),
    };
    if summary.is_none() {
        say::relay(&written);
    }
    let verdict = summary.as_deref().unwrap_or("FAILED");
    say::ended(&format!("    {}", program.name), verdict, started.elapsed());
    summary.is_some()
}

/// Returns what libtest says of all tests of a program that passed: `12 passed`, and how many were ignored,
/// if any.
fn summary(output: &str) -> Option<String> {
    let last = output.lines().rev().find_map(|line| line.strip_prefix("test result: ok. "))?;
    let is_zero = |count: &str| count.starts_with("0 ");
    let mut counts = last.split("; ");
    let passed = counts.next()?.to_owned();
    let ignored = counts.find(|count| count.ends_with(" ignored") && !is_zero(count));
    Some(ignored.map_or(passed.clone(), |ignored| format!("{passed}, {ignored}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_result_is_its_last_line() {
        let line = "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(summary(&format!("\nrunning 12 tests\n\n{line}\n")).unwrap(), "12 passed");
        assert_eq!(
            summary(&line.replace("0 ignored", "3 ignored")).unwrap(),
            "12 passed, 3 ignored"
        );
        assert_eq!(summary(&line.replace("ok. ", "FAILED. ")), None);
        assert_eq!(summary(""), None);
    }
}
