//! The commands `completions` and `man` of both programs.

use std::path::PathBuf;

use clap::Command;
use clap_complete::Shell;
use host_fs::FileError;

use super::Manual;

/// Prints the completions for a shell.
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
             {program} completions zsh > ~/.zfunc/_{program}"
        )
    }

    /// Returns the completions for a program.
    pub fn text(&self, mut program: Command) -> String {
        let name = program.get_name().to_owned();
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut program, name, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Prints the manual page, or writes the pages of all commands into a directory.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write one page for each command into this directory
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl ManArgs {
    /// Returns the examples at the end of this command's help.
    pub fn examples(program: &str) -> String {
        format!(
            "Examples:\n  {program} man | man -l -\n  {program} man --output /usr/local/share/man/man1"
        )
    }

    /// Returns the page of a program, in roff. With `--output`, writes all pages into that
    /// directory and returns `None`.
    ///
    /// # Errors
    /// [`FileError`] if the pages cannot be written.
    pub fn page(&self, manual: &Manual, program: Command) -> Result<Option<String>, FileError> {
        let Some(directory) = &self.output else {
            let page = manual.page(program).map_err(FileError::of("write", "the manual"))?;
            return Ok(Some(String::from_utf8_lossy(&page).into_owned()));
        };
        let written = manual.write_pages(program, directory);
        written.map(|()| None).map_err(FileError::of("write to", directory))
    }
}
