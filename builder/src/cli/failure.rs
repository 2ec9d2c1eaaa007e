//! What a failed command says, and its exit code. Every error ends here.

use std::error::Error;
use std::process::ExitCode;

use boxbuild::BuildError;
use boxfile_spec::Diagnostic;

use super::terminal;

/// The input is wrong, or the build failed.
const FAILED: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
}

impl Failure {
    /// Returns a failure with a message, which starts with `error: ` when it is shown.
    pub(crate) fn new(message: impl std::fmt::Display) -> Self {
        Self { message: format!("error: {message}") }
    }

    /// Returns a failure whose message is a rendered diagnostic of the Boxfile.
    pub(crate) const fn rendered(message: String) -> Self {
        Self { message }
    }

    /// Returns the failure of a build; what the Boxfile is to blame for is shown there.
    pub(crate) fn of_build(error: &BuildError, file: &str, source: &str) -> Self {
        match error.span() {
            None => Self::new(chain(error)),
            Some(span) => {
                let diagnostic = Diagnostic::new(chain(error), span, "named here");
                Self { message: diagnostic.render(file, source) }
            }
        }
    }

    /// Shows the failure and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        terminal::note(self.message.trim_end());
        ExitCode::from(FAILED)
    }
}

/// Shows what is wrong with a command line, or the help that it asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    drop(error.print());
    if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
}

/// Joins an error and its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    texts.extend(causes(error));
    texts.join(": ")
}

fn causes(error: &dyn Error) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if texts.last() != Some(&text) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts
}
