//! Runs a short program, for at most so long.

use std::io;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// Runs a program without input, and returns what it wrote, which has to fit into two pipes; `None`
/// where it had not ended within the limit, and was killed.
///
/// # Errors
/// When the program cannot be started.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    while child.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
    child.wait_with_output().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_comes_with_the_status() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "echo out; echo err >&2; exit 7"]);
        let output = output_within(&mut shell, Duration::from_secs(60)).unwrap().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!((&*output.stdout, &*output.stderr), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let began = Instant::now();
        let mut sleeper = Command::new("/bin/sleep");
        let limit = Duration::from_millis(20);
        assert!(output_within(sleeper.arg("600"), limit).unwrap().is_none());
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
