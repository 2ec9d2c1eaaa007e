//! The commands `completions` and `man` of both programs.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use host_fs::FileError;

use super::Manual;
use crate::complete;

/// Prints the script that completes commands, options and names in a shell.
///
/// The script asks the program in PATH at each completion, so that it offers the boxes that exist.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell to complete commands in
    shell: Shell,
}

impl CompletionsArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  \
             {program} completions bash > /etc/bash_completion.d/{program}\n  \
             {program} completions zsh > ~/.zfunc/_{program}\n  \
             {program} completions fish > ~/.config/fish/completions/{program}.fish"
        )
    }

    /// Returns the script that makes the shell ask a program for completions.
    pub fn text(&self, program: &str) -> String {
        complete::script(self.shell, program)
    }
}

/// Prints the manual page of the program or of a command, or writes the pages of all commands into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write one page for each command into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Print the page of this command instead
    #[arg(value_name = "COMMAND", conflicts_with = "output")]
    command: Vec<String>,
}

impl ManArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  {program} man | man -l -\n  {program} man verify | man -l -\n  {program} man --output /usr/local/share/man/man1"
        )
    }

    /// Returns the page of a program, in roff. With `--output`, writes all pages into that
    /// directory and returns `None`.
    ///
    /// # Errors
    /// [`FileError`] if the pages cannot be written.
    pub fn page(&self, manual: &Manual, program: Command) -> Result<Option<String>, FileError> {
        let Some(directory) = &self.output else {
            let what = match self.command.is_empty() {
                true => "the manual".to_owned(),
                false => format!("the page of {}", self.command.join(" ")),
            };
            let page = manual.page(program, &self.command).map_err(FileError::of("make", what))?;
            return Ok(Some(String::from_utf8_lossy(&page).into_owned()));
        };
        let written = manual.write_pages(program, directory);
        written.map(|()| None).map_err(FileError::of("write to", directory))
    }
}
