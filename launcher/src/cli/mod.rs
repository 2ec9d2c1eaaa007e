//! The command line: one file per subcommand, and one for what errors become.

mod error;
mod inspect;
mod paths;
mod run;
mod screen;
mod verify;

use std::env;
use std::io::{self, Write};
use std::panic::{UnwindSafe, catch_unwind};
use std::process::ExitCode;

use box_image::text::shown_json;
use boxlaunch::clock::process_start;
use boxlaunch::vmm;
use clap::{Parser, Subcommand};

use error::CommandError;

/// Runs boxes: bootable images for AI agents, built by boxbuild.
#[derive(Debug, Parser)]
#[command(name = "boxlaunch", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 the box or its start failed; 2 usage; 4 the startup budget is exceeded;
5 verification found a difference; 70 a bug in boxlaunch. `run` passes on the status of the program
that it ran: the command's, or the agent's; it is 128 + N where signal N stopped it. Where the
program's output cannot be passed on, that ends it, and 0 becomes 1, or 141 where nobody reads it
any more.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Verify(verify::VerifyArgs),
    Inspect(inspect::InspectArgs),
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    guarded(dispatch).unwrap_or_else(CommandError::report)
}

/// Makes an error of a panic: it is a bug, with an exit code of its own. The panic itself has
/// printed where it happened.
fn guarded<T>(
    body: impl FnOnce() -> Result<T, CommandError> + UnwindSafe,
) -> Result<T, CommandError> {
    catch_unwind(body).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(CommandError::bug(format!("boxlaunch panicked: {}", text.unwrap_or("no reason given"))))
    })
}

fn dispatch() -> Result<ExitCode, CommandError> {
    // The VMM process skips all that is not its business: it counts for the startup time.
    if env::args_os().nth(1).is_some_and(|first| first == vmm::SUBCOMMAND) {
        // Returns only where it fails; the supervisor puts what is printed here to its own error.
        notice(&format!("boxlaunch: {}\n", vmm::enter(io::stdin().lock())));
        return Ok(ExitCode::FAILURE);
    }
    let started = process_start();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return error::usage(&usage),
    };
    match cli.command {
        Command::Run(args) => run::run(&args, started?),
        Command::Verify(args) => verify::verify(&args),
        Command::Inspect(args) => inspect::inspect(&args),
    }
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
            Err(CommandError::stdout(&error))
        }
        _ => Ok(()),
    }
}

/// Returns a result as one JSON object, on one line.
fn json_line(value: &impl serde::Serialize) -> Result<String, CommandError> {
    let json = serde_json::to_string(value).map_err(CommandError::bug)?;
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
    fn a_panic_is_a_bug_to_report() {
        let written: fn() -> Result<(), CommandError> = || panic!("at once");
        let made: fn() -> Result<(), CommandError> = || panic!("in {:?}", std::env::args().next());
        let name = format!("in {:?}", std::env::args().next());
        for (body, text) in [(written, "at once"), (made, &name)] {
            let error = guarded(body).unwrap_err();
            assert_eq!(error.code, 70);
            assert_eq!(
                error.text(),
                format!(
                    "error: boxlaunch panicked: {text}\n  = help: this is a bug in boxlaunch; please \
                     report it, with the command that you ran and all that was printed\n"
                )
            );
        }
    }

    #[test]
    fn only_a_reader_that_goes_away_may_miss_the_result() {
        assert!(printed(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert_eq!(printed(Err(io::ErrorKind::StorageFull.into())).unwrap_err().code, 1);
    }
}
