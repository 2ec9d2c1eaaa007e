//! Everything that is printed for people. Progress goes to standard error, results to standard
//! output.
#![allow(clippy::print_stdout)] // this module is what prints

use std::io::{self, IsTerminal, Stderr};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use testbed::{KitError, Result};

use crate::progress::Progress;

/// The longest silence of a running step.
const INTERVAL: Duration = Duration::from_secs(4);

static PROGRESS: LazyLock<Progress<Stderr>> =
    LazyLock::new(|| Progress::new(io::stderr(), INTERVAL));

/// Prints a line of progress.
pub fn note(line: &str) {
    PROGRESS.line(line);
}

/// Prints a result to standard output.
pub fn result(text: &str) {
    println!("{text}");
}

/// Does a part of the work: prints its name when it begins, signs of life while it is silent, and
/// how it ended and how long it took.
///
/// # Errors
/// As `work`.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    PROGRESS.begin(name);
    let started = Instant::now();
    let outcome = watch(work);
    ended(name, if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
    outcome
}

/// Does a part of the work, and prints signs of life while it is silent.
pub fn watch<T>(work: impl FnOnce() -> T) -> T {
    PROGRESS.watch(work)
}

/// Does a part of the work, and prints signs of life until it sends something for the first time.
pub fn watch_until<T: Send>(work: impl FnOnce(Sender<()>) -> T + Send) -> T {
    PROGRESS.watch_until(work)
}

/// Sets what is being done, as signs of life show it; nothing with an empty text.
pub fn doing(what: &str) {
    PROGRESS.doing(what);
}

/// Prints that a part of the work has ended and how long it took.
pub fn ended(name: &str, verdict: &str, taken: Duration) {
    PROGRESS.end(name, verdict, taken);
}

/// Returns whether people see progress on a terminal.
pub fn on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Runs a child process that shows its own progress on this terminal.
pub fn lend<T>(work: impl FnOnce() -> T) -> T {
    PROGRESS.lend(work)
}

/// Passes on what a child process wrote.
pub fn relay(bytes: &[u8]) {
    PROGRESS.relay(bytes);
}

/// Prints why something has failed.
pub fn error(error: &KitError) {
    note(&format!("error: {error}"));
}

/// Returns the exit code of a tool, and prints why the tool has failed if it has.
pub fn exit_code(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|reason| {
        error(&reason);
        ExitCode::FAILURE
    })
}
