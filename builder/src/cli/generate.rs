//! `boxbuild schema`, `boxbuild completions` and `boxbuild man`: the language for editors, and the
//! command line for shells and manuals.

use std::path::PathBuf;

use box_image::ErrorCode;
use clap::CommandFactory;
use clap_complete::Shell;

use super::failure::Failure;
use super::{Cli, terminal};

/// Prints the JSON Schema of a Boxfile in TOML, for editors.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  boxbuild schema > boxfile.schema.json")]
pub(crate) struct Schema {
    /// Print the reference of the language, as Markdown, instead
    #[arg(long)]
    reference: bool,
}

/// Prints the completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild completions bash > /etc/bash_completion.d/boxbuild\n  \
    boxbuild completions zsh > ~/.zfunc/_boxbuild")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints the manual page, or writes the pages of all commands into a directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild man | man -l -\n  \
    boxbuild man --output /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Write one page for each command into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Runs `boxbuild schema`.
pub(crate) fn schema(args: &Schema) -> Result<(), Failure> {
    let text = if args.reference { boxfile_spec::reference() } else { boxfile_spec::json_schema() };
    terminal::result(text.trim_end());
    Ok(())
}

/// Runs `boxbuild completions`.
pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "boxbuild", &mut text);
    terminal::result(String::from_utf8_lossy(&text).trim_end());
    Ok(())
}

/// Runs `boxbuild man`.
pub(crate) fn man(args: &Man) -> Result<(), Failure> {
    if let Some(directory) = &args.output {
        let failed = |error| {
            Failure::new(ErrorCode::Io, format!("cannot write to {}: {error}", directory.display()))
        };
        std::fs::create_dir_all(directory).map_err(failed)?;
        return clap_mangen::generate_to(Cli::command(), directory).map_err(failed);
    }
    let mut text = Vec::new();
    let failed = |error| Failure::new(ErrorCode::Io, format!("cannot write the manual: {error}"));
    clap_mangen::Man::new(Cli::command()).render(&mut text).map_err(failed)?;
    terminal::result(String::from_utf8_lossy(&text).trim_end());
    Ok(())
}
