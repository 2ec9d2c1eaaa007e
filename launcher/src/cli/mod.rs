//! The command line: one file per subcommand, and one for what errors become.

mod error;
mod inspect;
mod paths;
mod run;
mod verify;
mod vmm;

use std::env;
use std::io::{self, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

use boxlaunch::clock::Instant;
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
that it ran: the command's, or the agent's.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Verify(verify::VerifyArgs),
    Inspect(inspect::InspectArgs),
}

/// Runs the program. A panic is a bug, and has an exit code of its own.
pub(crate) fn main() -> ExitCode {
    catch_unwind(dispatch).unwrap_or(ExitCode::from(error::BUG))
}

fn dispatch() -> ExitCode {
    // The VMM process skips all that is not its business: it counts for the startup time.
    if env::args_os().nth(1).is_some_and(|first| first == boxlaunch::vmm::SUBCOMMAND) {
        return vmm::main();
    }
    let started = Instant::process_start();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => return error::usage(&usage),
    };
    let done = match cli.command {
        Command::Run(args) => started.map_err(Into::into).and_then(|at| run::run(args, at)),
        Command::Verify(args) => verify::verify(&args),
        Command::Inspect(args) => inspect::inspect(&args),
    };
    done.unwrap_or_else(|failure| failure.report())
}

/// Prints a result to standard output.
fn print(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(CommandError::stdout)
}

/// Prints a result as one JSON object.
fn print_json(value: &impl serde::Serialize) -> Result<(), CommandError> {
    print(&(serde_json::to_string(value).map_err(CommandError::bug)? + "\n"))
}

/// Tells the user something that is not the result. Nobody is left to tell where that fails.
fn notice(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
