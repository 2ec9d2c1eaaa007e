//! The command line: one file per subcommand, and one for what errors become.

mod error;
mod generate;
mod inspect;
mod paths;
mod run;
mod screen;
mod verify;

use std::env;
use std::io::{self, Write};
use std::panic::{UnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use box_image::text::shown_json;
use box_image::{ErrorCode, exit};
use boxlaunch::clock::process_start;
use boxlaunch::vmm;
use clap::{Parser, Subcommand};
use cli_manual::{CompletionsArgs, ManArgs};
use error_report::Problem;

use error::CommandError;

/// Runs boxes: bootable images for AI agents, built by boxbuild.
#[derive(Debug, Parser)]
#[command(name = "boxlaunch", version, after_help = exit::help() + "\n\n\
    Errors and their codes in --json: docs/errors.md.\n\
    `run` passes on the status of the program that it ran: the command's, or the agent's; it is\n\
    128 + N if signal N stopped it. If the program's output cannot be written, it is stopped, and a\n\
    status of 0 becomes 1, or 141 if the reader closed the pipe.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Verify(verify::VerifyArgs),
    Inspect(inspect::InspectArgs),
    #[command(after_help = CompletionsArgs::examples("boxlaunch"))]
    Completions(CompletionsArgs),
    #[command(after_help = ManArgs::examples("boxlaunch"))]
    Man(ManArgs),
}

impl Command {
    /// Runs the command. Returns its exit code, and whether it reports as JSON.
    fn run(&self, started: Instant) -> (Result<u8, CommandError>, bool) {
        match self {
            Self::Run(args) => (run::run(args, started), args.json),
            Self::Verify(args) => (verify::verify(args), args.json),
            Self::Inspect(args) => (inspect::inspect(args), args.json),
            Self::Completions(args) => (generate::completions(args), false),
            Self::Man(args) => (generate::man(args), false),
        }
    }
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    ExitCode::from(guarded(dispatch))
}

/// Runs the body and makes an exit code of a panic, which has printed where it happened.
fn guarded(body: impl FnOnce() -> u8 + UnwindSafe) -> u8 {
    catch_unwind(body).unwrap_or_else(|_| {
        notice(&(Problem::panicked("boxlaunch").text() + "\n"));
        exit::BUG
    })
}

fn dispatch() -> u8 {
    // The VMM process skips what it does not need: that would be part of the startup time.
    if env::args_os().nth(1).is_some_and(|first| first == vmm::SUBCOMMAND) {
        // Returns only where it fails; the supervisor puts what is printed here to its own error.
        notice(&format!("boxlaunch: {}\n", vmm::enter(io::stdin().lock())));
        return exit::FAILED;
    }
    let (result, as_json) = match (process_start(), Cli::try_parse()) {
        (_, Err(error)) => (error::usage(&error), false),
        (Err(error), Ok(_)) => (Err(error.into()), false),
        (Ok(started), Ok(cli)) => cli.command.run(started),
    };
    result.unwrap_or_else(|error| error.report(as_json))
}

/// Prints a result to standard output.
fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    printed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Judges the printing of a result. A reader that goes away has seen what it wanted to see.
fn printed(result: io::Result<()>) -> Result<(), CommandError> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write the result to standard output: {error}");
            Err(CommandError::new(ErrorCode::Io, message))
        }
        _ => Ok(()),
    }
}

/// Returns a result as one JSON object, on one line.
fn json_line(value: &impl serde::Serialize) -> Result<String, CommandError> {
    let json = serde_json::to_string(value)
        .map_err(|error| CommandError::new(ErrorCode::Internal, error))?;
    Ok(shown_json(&json) + "\n")
}

/// Tells the user something that is not the result. Nobody is left to tell where that fails.
fn notice(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_bug() {
        assert_eq!(guarded(|| panic!("at once")), exit::BUG);
        assert_eq!(guarded(|| 3), 3);
    }

    #[test]
    fn only_a_reader_that_goes_away_may_miss_the_result() {
        assert!(printed(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert_eq!(printed(Err(io::ErrorKind::StorageFull.into())).unwrap_err().exit, 1);
    }
}
