//! The command line, with one file for each subcommand. Only this module reads the environment, and
//! only [`terminal`] prints.

mod attest;
mod budget;
mod build;
mod cat;
mod check;
mod complete;
mod conflicts;
mod deltas;
mod diff;
mod export;
mod failure;
mod fetch;
mod fmt;
mod generate;
mod global;
mod init;
mod inspect;
mod installed;
mod keygen;
mod loaded;
mod locate;
mod lock;
mod locking;
mod ls;
mod options;
mod plan;
mod preview;
mod rebuild;
mod registries;
mod report;
mod search;
mod setup;
mod sign;
mod signing;
mod stages;
mod stored;
mod terminal;
mod transfer;
mod usage;
mod verify;
mod warnings;
mod why;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use box_contract::exit;
use clap::{Parser, Subcommand};
use cli_common::Problem;
use cli_common::manual::{CompletionsArgs, ManArgs};
use cli_common::store::{LoadArgs, PruneArgs};

/// Bakes microVM images for AI agents from a checked-in Boxfile.
#[derive(Debug, Parser)]
#[command(name = "boxbuild", version, arg_required_else_help = true)]
#[command(after_help = exit::help(&usage::EXIT_CODES) + "\n\n\
    Errors and their codes in --json: docs/errors.md. Pages docs/... are in share/doc/boxbuild.\n\
    The language: docs/boxfile.md, or `boxbuild schema --reference`.")]
struct Cli {
    #[command(flatten)]
    global: global::GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(init::Args),
    Check(check::Args),
    Build(Box<build::Args>),
    Plan(plan::Args),
    Lock(lock::LockArgs),
    Update(lock::UpdateArgs),
    Fetch(fetch::Args),
    Push(transfer::PushArgs),
    #[command(after_help = cli_registry::PullArgs::examples("boxbuild"))]
    Pull(transfer::PullArgs),
    #[command(after_help = PruneArgs::examples("boxbuild gc"))]
    Gc(stored::GcArgs),
    #[command(after_help = stored::save_examples())]
    Save(stored::SaveSinceArgs),
    #[command(after_help = LoadArgs::examples("boxbuild"))]
    Load(LoadArgs),
    Sign(sign::Args),
    Attest(attest::Args),
    #[command(alias = "generate-key-pair")]
    Keygen(keygen::Args),
    Budget(budget::Args),
    Export(export::Args),
    Ls(ls::Args),
    Cat(cat::Args),
    Diff(diff::Args),
    Why(why::Args),
    Inspect(inspect::Args),
    Report(report::Args),
    Verify(verify::Args),
    Fmt(fmt::Args),
    Setup(setup::Args),
    Schema(generate::Schema),
    #[command(after_help = CompletionsArgs::examples("boxbuild"))]
    Completions(CompletionsArgs),
    #[command(after_help = ManArgs::examples("boxbuild"))]
    Man(ManArgs),
}

impl Cli {
    /// Applies the global options and runs the command. Returns the same as [`Command::run`].
    fn run(&self) -> (Result<(), failure::Failure>, bool) {
        match self.global.apply() {
            Ok(()) => self.command.run(),
            Err(failure) => (Err(failure), env::args_os().any(|arg| arg == "--json")),
        }
    }
}

impl Command {
    /// Runs the command. Returns its result, and whether it reports as JSON.
    fn run(&self) -> (Result<(), failure::Failure>, bool) {
        match self {
            Self::Init(args) => (init::run(args), args.json),
            Self::Check(args) => (check::run(args), args.project.json),
            Self::Build(args) => (build::run(args), args.project.json),
            Self::Plan(args) => (plan::run(args), args.project.json),
            Self::Lock(args) => (lock::lock(args), args.project.json),
            Self::Update(args) => (lock::update(args), args.project.json),
            Self::Fetch(args) => (fetch::run(args), args.project.json),
            Self::Push(args) => (transfer::push(args), args.json),
            Self::Pull(args) => (transfer::pull(args), args.pull.json),
            Self::Gc(args) => (stored::gc(args), args.prune.json),
            Self::Save(args) => (stored::save(args), args.save.json),
            Self::Load(args) => (stored::load(args), args.json),
            Self::Sign(args) => (sign::run(args), args.json),
            Self::Attest(args) => (attest::run(args), args.project.json),
            Self::Keygen(args) => (keygen::run(args), args.json),
            Self::Budget(args) => (budget::run(args), args.json),
            Self::Export(args) => (export::run(args), args.json),
            Self::Ls(args) => (ls::run(args), args.json),
            Self::Cat(args) => (cat::run(args), false),
            Self::Diff(args) => (diff::run(args), args.json),
            Self::Why(args) => (why::run(args), args.project.json),
            Self::Inspect(args) => (inspect::run(args), args.json),
            Self::Report(args) => (report::run(args), args.json),
            Self::Verify(args) => (verify::run(args), args.project.json),
            Self::Fmt(args) => (fmt::run(args), args.json),
            Self::Setup(args) => (setup::run(args), args.json),
            Self::Schema(args) => (generate::schema(args), false),
            Self::Completions(args) => (generate::completions(args), false),
            Self::Man(args) => (generate::man(args), false),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    if complete::asked() {
        return ExitCode::SUCCESS;
    }
    let cli = match usage::parse() {
        Ok(cli) => cli,
        Err(error) => return usage::report(error),
    };
    match catch_unwind(AssertUnwindSafe(|| cli.run())) {
        Ok((Ok(()), _)) if terminal::lost() => ExitCode::FAILURE,
        Ok((Ok(()), _)) => ExitCode::SUCCESS,
        Ok((Err(failure), as_json)) => failure::report(&failure, as_json),
        // The panic has already printed its message.
        Err(_) => {
            terminal::error(&Problem::panicked("boxbuild").text());
            ExitCode::from(exit::BUG)
        }
    }
}
