//! The one place that prints: results go to standard output, everything else to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{self, Write};

/// Prints a result. A reader that has gone away is no error.
pub(crate) fn result(text: &str) {
    let mut out = io::stdout().lock();
    drop(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Prints something for the person who watches.
pub(crate) fn note(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}
