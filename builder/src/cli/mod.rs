//! The command line. One file per subcommand; this is the only part that reads the environment,
//! and [`terminal`] the only one that prints.

mod build;
mod cat;
mod check;
mod conflicts;
mod diff;
mod entry;
mod export;
mod failure;
mod fmt;
mod generate;
mod init;
mod inspect;
mod installed;
mod loaded;
mod locate;
mod lock;
mod locking;
mod ls;
mod options;
mod plan;
mod progress;
mod registries;
mod setup;
mod terminal;
mod warnings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use box_image::exit;
use clap::{Parser, Subcommand};
use error_report::Problem;

/// Bakes microVM images for AI agents from a checked-in Boxfile.
#[derive(Debug, Parser)]
#[command(name = "boxbuild", version, arg_required_else_help = true)]
#[command(after_help = exit::help() + "\n\n\
    Errors and their codes in --json: docs/errors.md.\n\
    The language: docs/boxfile.md, or `boxbuild schema --reference`.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Check(check::Args),
    Build(build::Args),
    Plan(plan::Args),
    Lock(lock::LockArgs),
    Update(lock::UpdateArgs),
    Export(export::Args),
    Ls(ls::Args),
    Cat(cat::Args),
    Diff(diff::Args),
    Inspect(inspect::Args),
    Fmt(fmt::Args),
    Setup(setup::Args),
    Schema(generate::Schema),
    Completions(generate::Completions),
    Man(generate::Man),
}

impl Command {
    /// Runs the command. Returns how it ended, and whether it reports as JSON.
    fn run(&self) -> (Result<(), failure::Failure>, bool) {
        match self {
            Self::Init(args) => (init::run(args), args.json),
            Self::Check(args) => (check::run(args), args.project.json),
            Self::Build(args) => (build::run(args), args.project.json),
            Self::Plan(args) => (plan::run(args), args.project.json),
            Self::Lock(args) => (lock::lock(args), args.project.json),
            Self::Update(args) => (lock::update(args), args.project.json),
            Self::Export(args) => (export::run(args), args.json),
            Self::Ls(args) => (ls::run(args), args.json),
            Self::Cat(args) => (cat::run(args), false),
            Self::Diff(args) => (diff::run(args), args.json),
            Self::Inspect(args) => (inspect::run(args), args.json),
            Self::Fmt(args) => (fmt::run(args), args.json),
            Self::Setup(args) => (setup::run(args), args.json),
            Self::Schema(args) => (generate::schema(args), false),
            Self::Completions(args) => (generate::completions(args), false),
            Self::Man(args) => (generate::man(args), false),
        }
    }
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return failure::usage(&error),
    };
    match catch_unwind(AssertUnwindSafe(|| cli.command.run())) {
        Ok((Ok(()), _)) if terminal::lost() => ExitCode::FAILURE,
        Ok((Ok(()), _)) => ExitCode::SUCCESS,
        Ok((Err(failure), as_json)) => failure.report(as_json),
        // The panic's own message is printed already.
        Err(_) => {
            terminal::note(&Problem::panicked("boxbuild").text());
            ExitCode::from(exit::BUG)
        }
    }
}
