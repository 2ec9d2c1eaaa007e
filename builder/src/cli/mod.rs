//! The command line. One file per subcommand; this is the only part that reads the environment,
//! and [`terminal`] the only one that prints.

mod build;
mod failure;
mod locate;
mod terminal;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Bakes microVM images for AI agents from a checked-in Boxfile.
#[derive(Debug, Parser)]
#[command(name = "boxbuild", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(build::Args),
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    let result = match &cli.command {
        Command::Build(args) => build::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
