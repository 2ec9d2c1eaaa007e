//! The table of errors: what the guest said last, a message, what to do, and an exit code.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use box_image::exit;
use box_image::text::shown;
use boxlaunch::error::Said;
use boxlaunch::{LaunchError, RunFailure};

/// What a program dies of that writes for nobody (signal(7)).
const SIGPIPE: i32 = 13;

/// A failed command.
#[derive(Debug)]
pub(crate) struct CommandError {
    message: String,
    help: Option<&'static str>,
    said: Vec<Said>,
    /// The exit code.
    pub(crate) code: u8,
}

impl CommandError {
    /// Standard output could not be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        let message = format!("cannot write the result to standard output: {error}");
        Self { message, help: None, said: Vec::new(), code: exit::FAILED }
    }

    /// Something happened that cannot.
    pub(crate) fn bug(error: impl Display) -> Self {
        let help = Some(
            "this is a bug in boxlaunch; please report it, with the command that you ran and all \
             that was printed",
        );
        Self { message: shown(&error.to_string()), help, said: Vec::new(), code: exit::BUG }
    }

    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: String) -> Self {
        Self { message, help: None, said: Vec::new(), code: exit::USAGE }
    }

    /// Prints the error to standard error and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        super::notice(&self.text());
        ExitCode::from(self.code)
    }

    /// Returns what is to be printed; nothing where there is nobody to read it.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.message.is_empty() {
            return text;
        }
        for said in self.said.iter().filter(|said| !said.words.is_empty()) {
            text += &format!("{}:\n", said.source);
            said.words.lines().for_each(|line| text += &format!("  {line}\n"));
        }
        text += &format!("error: {}\n", self.message);
        if let Some(help) = self.help {
            text += &format!("  = help: {help}\n");
        }
        text
    }
}

impl From<LaunchError> for CommandError {
    fn from(error: LaunchError) -> Self {
        let (help, code) = (help(&error), code(&error));
        Self { message: message(&error), help, said: Vec::new(), code }
    }
}

impl From<RunFailure> for CommandError {
    fn from(failure: RunFailure) -> Self {
        let said = if is_about_the_guest(&failure.error) { failure.said } else { Vec::new() };
        Self { said, ..failure.error.into() }
    }
}

/// Returns what an error says, on one line that no terminal obeys: names, paths and documents in it
/// can be foreign. A list of declarations has its lines, each of them made safe.
fn message(error: &LaunchError) -> String {
    match error {
        error if is_reader_gone(error) => String::new(),
        LaunchError::Unsupported(_) => error.to_string(),
        error => shown(&error.to_string()),
    }
}

/// Prints what clap has to say: help and versions to standard output, with success.
///
/// # Errors
/// Standard output's, where that is the result.
pub(crate) fn usage(error: &clap::Error) -> Result<ExitCode, CommandError> {
    let printed = error.print();
    if error.use_stderr() {
        // Nobody is left to tell where that failed.
        return Ok(ExitCode::from(exit::USAGE));
    }
    super::printed(printed.and_then(|()| io::stdout().flush())).map(|()| ExitCode::SUCCESS)
}

/// Returns the exit code of a program that a signal ended, as shells count it.
pub(crate) fn signal_code(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |number| number.saturating_add(128))
}

fn code(error: &LaunchError) -> u8 {
    match error {
        LaunchError::Signal(signal) => signal_code(*signal),
        error if is_reader_gone(error) => signal_code(SIGPIPE),
        LaunchError::NoComponent(_) | LaunchError::SocketPath { .. } => exit::USAGE,
        error if error.is_difference() => exit::DIFFERENT,
        _ => exit::FAILED,
    }
}

/// Tells whether whoever read the programs' output has had enough of it, as `head` has. That ends
/// them, and is nobody's mistake.
fn is_reader_gone(error: &LaunchError) -> bool {
    matches!(error, LaunchError::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
}

/// Tells whether the machine's last words help to understand an error.
const fn is_about_the_guest(error: &LaunchError) -> bool {
    matches!(
        error,
        LaunchError::Guest { .. }
            | LaunchError::Protocol(_)
            | LaunchError::VmmEnded { .. }
            | LaunchError::KvmInternal
            | LaunchError::AgentEnded(_)
            | LaunchError::Timeout(_)
    )
}

/// Returns what to do about an error.
fn help(error: &LaunchError) -> Option<&'static str> {
    Some(match error {
        LaunchError::Kvm(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            "add your user to the group of /dev/kvm (`sudo usermod -aG kvm $USER`), and log in again"
        }
        LaunchError::Kvm(_) => {
            "a box needs hardware virtualization: switch it on in the firmware, load the module \
             (`sudo modprobe kvm-intel` or `kvm-amd`), or, in a virtual machine or a container, \
             pass /dev/kvm through"
        }
        LaunchError::KvmInternal => {
            "run the box on a machine whose KVM uses the processor's own virtualization; a KVM that \
             emulates it in software cannot run every kernel"
        }
        LaunchError::Open(error) => return error.help(),
        LaunchError::Writable(_) => {
            "what boots must belong to you or to root, and only its owner may write to it: copy the \
             box, or `chmod go-w` and `chown` its blobs"
        }
        LaunchError::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
            "remove the file, or name another"
        }
        LaunchError::SocketPath { .. } => {
            "set XDG_RUNTIME_DIR to a directory with a shorter path, or shorten --agent-socket"
        }
        LaunchError::OtherProtocol(_) => "use the boxlaunch of the boxbuild that built the box",
        LaunchError::Unsupported(_) => {
            "remove these declarations from the Boxfile and build the box again, or use a newer \
             boxlaunch"
        }
        LaunchError::Timeout(_) => {
            "look at the agent's output and its health check; --startup-timeout gives it more time"
        }
        LaunchError::AgentEnded(_) => {
            "look at the agent's output above, and at its program in the Boxfile"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use box_layout::OpenError;

    use super::*;

    #[test]
    fn each_kind_of_error_has_its_code() {
        let size = OpenError::size(PathBuf::new(), 1, 2);
        assert_eq!(code(&size.into()), exit::DIFFERENT);
        assert_eq!(code(&LaunchError::Signal(2)), 130);
        assert_eq!(code(&LaunchError::Signal(15)), 143);
        assert_eq!(code(&LaunchError::KvmInternal), exit::FAILED);
        assert_eq!(CommandError::bug("x").code, exit::BUG);
    }

    #[test]
    fn a_failing_kvm_comes_with_advice() {
        let denied = LaunchError::Kvm(io::ErrorKind::PermissionDenied.into());
        assert!(help(&denied).unwrap().contains("usermod -aG kvm"));
        let missing = LaunchError::Kvm(io::ErrorKind::NotFound.into());
        assert!(help(&missing).unwrap().contains("modprobe"));
    }

    #[test]
    fn last_words_are_shown_where_the_guest_is_to_blame() {
        let said = vec![Said { source: "console", words: "panic".to_owned() }];
        let failed = |error| CommandError::from(RunFailure { error, said: said.clone() }).said;
        assert_eq!(failed(LaunchError::Timeout(60)), said);
        assert_eq!(failed(LaunchError::Signal(2)), []);
    }
}
