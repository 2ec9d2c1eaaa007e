//! The options of every command: the working directory, and how much to print.

use std::env;
use std::path::PathBuf;

use clap::ValueEnum;
use cli_common::color::ColorOption;

use super::failure::{Explain as _, Failure};
use super::terminal::{self, Loudness};

/// The variable that is `true` in a workflow of GitHub Actions:
/// <https://docs.github.com/en/actions/reference/workflows-and-actions/variables>.
pub(crate) const IS_WORKFLOW: &str = "GITHUB_ACTIONS";
/// The variable for the repository's root in a workflow of GitHub Actions.
pub(crate) const WORKFLOW_ROOT: &str = "GITHUB_WORKSPACE";

/// The options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Change to DIR first, so that relative paths start there
    #[arg(short = 'C', value_name = "DIR", global = true)]
    working_directory: Option<PathBuf>,
    /// Print only errors and results
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Also print which files are used, each retry, and the time that each stage took
    #[arg(short, long, global = true)]
    verbose: bool,
    #[command(flatten)]
    color: ColorOption,
    /// Also print errors and warnings as annotations, on standard error: as workflow commands of GitHub Actions
    #[arg(long, value_name = "SYSTEM", value_enum, global = true)]
    annotations: Option<System>,
}

/// A system that shows annotations.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum System {
    /// GitHub Actions
    Github,
}

impl GlobalOptions {
    /// Applies the options to this process.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        let loudness = match (self.quiet, self.verbose) {
            (true, _) => Loudness::Quiet,
            (_, true) => Loudness::Verbose,
            _ => Loudness::Normal,
        };
        let colour = self.color.has_colour(terminal::is_watched(), |name| env::var_os(name));
        terminal::configure(loudness, colour);
        let root = env::var_os(WORKFLOW_ROOT);
        let root = self.annotations.map(|System::Github| PathBuf::from(root.unwrap_or_default()));
        if is_workflow() || root.is_some() {
            terminal::configure_workflow(root);
        }
        let Some(directory) = &self.working_directory else { return Ok(()) };
        env::set_current_dir(directory).map_err(|error| {
            let message = format!("cannot change to {}: {error}", directory.display());
            Failure::new(error.explain(), message)
        })
    }
}

/// Returns whether a workflow of GitHub Actions reads the messages.
pub(crate) fn is_workflow() -> bool {
    env::var_os(IS_WORKFLOW).is_some_and(|it| it == "true")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// clap would silently confuse two options of the same name.
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
}
