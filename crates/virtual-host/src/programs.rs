//! Runs other programs.

use std::process::{Command, Stdio};

use crate::{EMULATOR, HostError, Result};

/// The number of bytes of a failed program's output in an error.
pub const SHOWN: usize = 4000;
/// The programs that this crate starts, with their Debian packages.
const PACKAGES: [(&str, &str); 4] =
    [(EMULATOR, "qemu-system-x86"), ("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg")];

/// Returns the names of the programs that fetch and unpack the virtual host's kernel.
pub fn fetchers() -> impl Iterator<Item = &'static str> {
    PACKAGES.iter().map(|(name, _)| *name).filter(|name| *name != EMULATOR)
}

/// Runs a command in the locale `C` and returns its standard output.
pub(crate) fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|source| not_started(command, source))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let written = [output.stderr, output.stdout].concat();
    Err(HostError::Failed {
        command: shown(command),
        status: output.status.to_string(),
        output: tail(&written, SHOWN),
    })
}

/// Runs a command like [`run`] that finds or downloads a package. Its failure is [`HostError::NotFetched`].
pub(crate) fn run_apt(command: &mut Command) -> Result<Vec<u8>> {
    run(command).map_err(|error| match error {
        HostError::Failed { command, status, output } => {
            HostError::NotFetched { command, status, output }
        }
        error => error,
    })
}

/// Returns the error for a program that could not be started.
pub(crate) fn not_started(command: &Command, source: std::io::Error) -> HostError {
    let program = command.get_program().to_string_lossy().into_owned();
    let package = PACKAGES.iter().find(|(name, _)| *name == program);
    match package {
        Some((_, package)) if source.kind() == std::io::ErrorKind::NotFound => {
            HostError::Missing { program, package }
        }
        _ => HostError::Start { program, source },
    }
}

/// Returns the command line, for messages.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Returns the last `limit` bytes of a text, starting at the beginning of a line.
///
/// # Examples
/// ```
/// use virtual_host::programs::tail;
///
/// assert_eq!(tail(b"first\nsecond\n", 9), "second\n");
/// ```
pub fn tail(bytes: &[u8], limit: usize) -> String {
    let start = bytes.len().saturating_sub(limit);
    let text = String::from_utf8_lossy(&bytes[start..]).replace('\r', "");
    match text.split_once('\n') {
        Some((_, whole)) if start > 0 => whole.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_and_its_output() {
        let error = run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("sh -c") && message.contains("no luck"), "{message}");
    }

    #[test]
    fn a_missing_program_comes_with_its_package() {
        let command = Command::new("qemu-system-x86_64");
        let missing = not_started(&command, std::io::ErrorKind::NotFound.into());
        assert!(
            matches!(missing, HostError::Missing { package: "qemu-system-x86", .. }),
            "{missing}"
        );
        let message = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(message.starts_with("cannot start no-such-program"), "{message}");
    }

    #[test]
    fn a_tail_starts_with_a_whole_line() {
        assert_eq!(tail(b"first\nsecond\r\nthird", 12), "third");
        assert_eq!(tail(b"short", 14), "short");
    }
}
