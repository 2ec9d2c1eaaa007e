//! `box`: one name for the commands of boxbuild and boxlaunch. It starts the program that has a command, and does nothing else.
#![forbid(unsafe_code)]

mod complete;
mod help;
mod program;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use program::Program;

/// The exit code for a command line without a meaning, as in both programs.
const USAGE: u8 = 2;
/// The exit code for a program that cannot be started.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let words: Vec<OsString> = env::args_os().skip(1).collect();
    let done = match words.first().and_then(|it| it.to_str()) {
        _ if complete::is_asked() => complete::answer(&words),
        None | Some("-h" | "--help") => help::text(),
        Some("help") if words.len() == 1 => help::text(),
        Some("-V" | "--version") => Ok(format!("box {}\n", env!("CARGO_PKG_VERSION"))),
        Some("man") if words.len() == 1 => Ok(include_str!("../box.1").to_owned()),
        Some("completions") if words.len() == 2 => complete::script(&words),
        _ => match Program::of(&words) {
            Ok(program) => Err(program.start(&words)),
            Err(message) => return failed(&message, USAGE),
        },
    };
    let written = done.and_then(|text| match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(()),
        Err(error) => Err(format!("the output cannot be written: {error}")),
    });
    written.map_or_else(|message| failed(&message, FAILED), |()| ExitCode::SUCCESS)
}

/// Prints an error, and returns the exit code.
fn failed(message: &str, code: u8) -> ExitCode {
    // There is no place for an error of standard error.
    drop(writeln!(io::stderr(), "error: {message}"));
    code.into()
}
