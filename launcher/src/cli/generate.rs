//! `boxlaunch completions` and `boxlaunch man`: the command line for shells and manuals.

use std::path::PathBuf;

use box_image::ErrorCode;
use clap::CommandFactory;
use clap_complete::Shell;
use cli_manual::Manual;
use cli_manual::color::VARIABLES;

use super::Cli;
use super::error::CommandError;
use super::terminal::print;

/// Prints the completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxlaunch completions bash > /etc/bash_completion.d/boxlaunch\n  \
    boxlaunch completions zsh > ~/.zfunc/_boxlaunch")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page, or writes the pages of all commands into a directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxlaunch man | man -l -\n  \
    boxlaunch man --output /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write one page for each command into this directory.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The parts of the manual that the command line does not say.
const MANUAL: Manual = Manual {
    environment: &[
        ("BOXLAUNCH_STATE", "The directory that remembers which files were hashed."),
        ("XDG_STATE_HOME, HOME", "Where that directory is, unless BOXLAUNCH_STATE is set."),
        ("XDG_RUNTIME_DIR", "Where sockets are made while a box runs."),
        VARIABLES,
    ],
    files: &[
        ("/dev/kvm", "Hardware virtualization, which a box needs."),
        ("NAME.box", "A box: the directory that boxbuild wrote."),
        ("~/.local/state/boxbuild", "Receipts of files that were hashed. It can be removed."),
    ],
    see_also: &["boxbuild(1)"],
};

/// Runs `boxlaunch completions`.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, CommandError> {
    print(&cli_manual::completions(args.shell, Cli::command()))?;
    Ok(0)
}

/// Runs `boxlaunch man`.
pub(crate) fn man(args: &ManArgs) -> Result<u8, CommandError> {
    if let Some(directory) = &args.output {
        MANUAL.write_pages(Cli::command(), directory).map_err(|error| {
            let message = format!("cannot write to {}: {error}", directory.display());
            CommandError::new(ErrorCode::Io, message)
        })?;
        return Ok(0);
    }
    let failed =
        |error| CommandError::new(ErrorCode::Io, format!("cannot write the manual: {error}"));
    let page = MANUAL.page(Cli::command()).map_err(failed)?;
    print(&String::from_utf8_lossy(&page))?;
    Ok(0)
}
