//! Finds and runs other programs.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output, Stdio};

pub use virtual_host::programs::shown;
use virtual_host::programs::{SHOWN, tail};

use crate::{KitError, Result};

/// Returns the path of the first file called `name` in the directories of `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// The program is missing, does not start, or fails. The error of a failure contains the end of its output.
pub fn run(command: &mut Command) -> Result<Vec<u8>> {
    let output = finish(command)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let mut text = output.stderr;
    text.extend_from_slice(&output.stdout);
    Err(failed(command, output.status, &text))
}

/// Returns the error for a failed program, with the end of its output.
pub fn failed(command: &Command, status: ExitStatus, output: &[u8]) -> KitError {
    let (status, output) = (status.to_string(), tail(output, SHOWN));
    KitError::Failed { command: shown(command), status, output }
}

/// Runs a command to its end and returns its output, even if it has failed.
///
/// # Errors
/// The program is missing or does not start.
pub fn finish(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|source| not_started(command, source))
}

/// Returns the error for a program that could not be started.
pub fn not_started(command: &Command, source: std::io::Error) -> KitError {
    let program = command.get_program().to_string_lossy().into_owned();
    if source.kind() == std::io::ErrorKind::NotFound {
        return KitError::Missing { program, remedy: "install it: cargo xtask setup".to_owned() };
    }
    KitError::Start { program, source }
}

/// Returns the peak memory of a process, in KiB
/// ([proc_pid_status(5)](https://man7.org/linux/man-pages/man5/proc_pid_status.5.html)), or 0 if it has ended, or has not begun: until it
/// runs its own program, its memory is that of this process.
pub fn peak_of(process: u32) -> u64 {
    let program = |of: &str| std::fs::read_link(format!("/proc/{of}/exe")).ok();
    if program(&process.to_string()) == program("self") {
        return 0;
    }
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_ran_and_what_it_said() {
        let error = run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("sh -c") && message.contains("no luck"), "{message}");
        assert!(message.contains('3'), "{message}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let message = run(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(message.contains("no-such-program is missing"), "{message}");
        assert_eq!(find("no-such-program"), None);
        assert!(find("sh").is_some());
    }
}
