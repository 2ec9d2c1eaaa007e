//! All output of the tools: progress on standard error, and results on standard output.
#![allow(clippy::print_stdout)] // this module does the printing

use std::io::{self, IsTerminal, Stderr};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use testbed::{KitError, Result};

use crate::progress::Progress;

/// The longest silence during a step, on a terminal and in a log.
const INTERVAL: Duration = Duration::from_secs(4);
const INTERVAL_IN_LOG: Duration = Duration::from_mins(1);

static PROGRESS: LazyLock<Progress<Stderr>> = LazyLock::new(|| {
    Progress::new(io::stderr(), if on_terminal() { INTERVAL } else { INTERVAL_IN_LOG })
});

/// Prints a line of progress.
pub fn note(line: &str) {
    PROGRESS.line(line);
}

/// Prints a result to standard output.
pub fn result(text: &str) {
    println!("{text}");
}

/// Runs a step: prints its name at the beginning, signs of life during silence, and its result and duration at the end.
///
/// # Errors
/// The errors of `work`.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    PROGRESS.begin(name);
    let started = Instant::now();
    let outcome = watch(work);
    ended(name, if outcome.is_ok() { "ok" } else { "FAILED" }, started.elapsed());
    outcome
}

/// Runs `work`, and prints signs of life during silence.
pub fn watch<T>(work: impl FnOnce() -> T) -> T {
    PROGRESS.watch(work)
}

/// Runs `work`, and prints signs of life until `work` sends its first message.
pub fn watch_until<T: Send>(work: impl FnOnce(Sender<()>) -> T + Send) -> T {
    PROGRESS.watch_until(work)
}

/// Sets the description for signs of life. An empty text removes it.
pub fn doing(what: &str) {
    PROGRESS.doing(what);
}

/// Prints the result and the duration of a step.
pub fn ended(name: &str, verdict: &str, taken: Duration) {
    PROGRESS.end(name, verdict, taken);
}

/// Returns whether standard error is a terminal.
pub fn on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Runs a child process that shows its progress on this terminal.
pub fn lend<T>(work: impl FnOnce() -> T) -> T {
    PROGRESS.lend(work)
}

/// Forwards the output of a child process.
pub fn relay(bytes: &[u8]) {
    PROGRESS.relay(bytes);
}

/// Prints an error.
pub fn error(error: &KitError) {
    note(&format!("error: {error}"));
}

/// Returns the exit code of a tool. Prints the error if the tool has failed.
///
/// # Examples
/// ```
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     tool_output::say::exit_code(run())
/// }
///
/// fn run() -> testbed::Result<ExitCode> {
///     tool_output::say::result("all is well");
///     Ok(ExitCode::SUCCESS)
/// }
/// ```
pub fn exit_code(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|reason| {
        error(&reason);
        ExitCode::FAILURE
    })
}
