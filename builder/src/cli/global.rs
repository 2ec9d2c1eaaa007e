//! The options of every command: where to work, and how much to print.

use std::env;
use std::path::PathBuf;

use box_image::ErrorCode;
use clap::{ColorChoice, ValueEnum as _};

use super::failure::Failure;
use super::terminal::{self, Loudness};

/// The options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Change to DIR before anything else, so that relative paths start there
    #[arg(short = 'C', value_name = "DIR", global = true)]
    working_directory: Option<PathBuf>,
    /// Print errors and results only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print also what was found where, retries, and how long each stage took
    #[arg(short, long, global = true)]
    verbose: bool,
    /// Colour messages: auto, always or never. auto follows NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        default_value = "auto",
        hide_possible_values = true
    )]
    color: ColorChoice,
}

impl GlobalOptions {
    /// Applies the options to this process.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        let loudness = match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (_, true) => Loudness::Verbose,
            _ => Loudness::Normal,
        };
        terminal::configure(loudness, has_colour(self.color));
        let Some(directory) = &self.working_directory else { return Ok(()) };
        env::set_current_dir(directory).map_err(|error| {
            let message = format!("cannot change to {}: {error}", directory.display());
            Failure::new(ErrorCode::Io, message)
        })
    }
}

/// Returns when a command line wants colours, for the help and the errors that are printed before it
/// is read as a whole.
pub(crate) fn color_of(args: impl IntoIterator<Item = String>) -> ColorChoice {
    let mut args = args.into_iter().take_while(|arg| arg != "--");
    let named = args.by_ref().find_map(|arg| match arg.strip_prefix("--color") {
        Some("") => Some(None),
        Some(rest) => rest.strip_prefix('=').map(|value| Some(value.to_owned())),
        None => None,
    });
    let value = named.and_then(|value| value.or_else(|| args.next()));
    value.and_then(|value| ColorChoice::from_str(&value, false).ok()).unwrap_or_default()
}

/// Returns whether messages on standard error have colours. The variables mean what they mean to
/// cargo: <https://no-color.org>, <https://bixense.com/clicolors>.
fn has_colour(choice: ColorChoice) -> bool {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto => forced || (terminal::is_watched() && !dumb),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// clap would take one for the other, without a word.
    #[test]
    fn no_command_has_an_argument_with_the_name_of_a_global_one() {
        let cli = crate::cli::Cli::command();
        let global: Vec<_> = cli.get_arguments().map(|it| it.get_id().clone()).collect();
        assert!(global.iter().any(|id| id == "working_directory"));
        for command in cli.get_subcommands() {
            let same = command.get_arguments().find(|it| global.contains(it.get_id()));
            assert_eq!(same.map(clap::Arg::get_id), None, "{}", command.get_name());
        }
    }

    #[test]
    fn the_colour_is_found_before_the_command_line_is_read() {
        let of = |line: &str| color_of(line.split(' ').map(str::to_owned));
        assert_eq!(of("boxbuild --color never --help"), ColorChoice::Never);
        assert_eq!(of("boxbuild check --color=always"), ColorChoice::Always);
        for auto in
            ["boxbuild", "boxbuild --color", "boxbuild --color=x", "boxbuild -- --color=always"]
        {
            assert_eq!(of(auto), ColorChoice::Auto, "{auto}");
        }
    }
}
