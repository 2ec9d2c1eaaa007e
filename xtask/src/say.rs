//! Everything that is printed for people. Progress goes to standard error, results to standard
//! output.
#![allow(clippy::print_stdout, clippy::print_stderr)] // this module is what prints

use std::time::Duration;

use testkit::KitError;

/// Says what is going on.
pub(crate) fn note(line: &str) {
    eprintln!("{line}");
}

/// Prints a result.
pub(crate) fn result(text: &str) {
    println!("{text}");
}

/// Says that a step has ended and how long it took.
pub(crate) fn step(name: &str, verdict: &str, taken: Duration) {
    eprintln!("{name:<48} {verdict:>7} {:>7.1} s", taken.as_secs_f64());
}

/// Says why the task has failed.
pub(crate) fn error(error: &KitError) {
    eprintln!("error: {error}");
}
