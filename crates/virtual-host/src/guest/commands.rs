//! Runs the commands of a plan.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::plan::{HOME, Plan, STREAMS, Status, stream_name};
use crate::{HostError, Result};

/// The serial ports that forward standard output and standard error.
const SERIAL: [&str; 2] = ["/dev/ttyS1", "/dev/ttyS2"];
/// The search path of commands.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The exit status of a command that cannot be started, as in a shell.
const NOT_STARTED: i32 = 127;
/// The delay before the virtual host powers off if output is forwarded, so that all output arrives.
const LINGER: Duration = Duration::from_secs(1);

/// Runs the commands one after the other, until one fails, and returns the status of each.
pub(super) fn run_all(plan: &Plan) -> Result<Vec<Status>> {
    let mut ended = Vec::new();
    for (number, words) in plan.commands.iter().enumerate() {
        ended.push(run(number, words, plan.live)?);
        if ended.iter().any(|it| it.status != 0) {
            break;
        }
    }
    if plan.live {
        thread::sleep(LINGER);
    }
    Ok(ended)
}

/// Returns the path of the file, in memory, that collects one of the [`STREAMS`] of a command.
pub(super) fn collected(number: usize, stream: &str) -> PathBuf {
    Path::new(HOME).join(stream_name(number, stream))
}

fn run(number: usize, words: &[String], live: bool) -> Result<Status> {
    let mut files = Vec::new();
    for stream in STREAMS {
        let path = collected(number, stream);
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .map_err(HostError::guest("make a folder"))?;
        files.push(File::create(&path).map_err(HostError::guest("collect output"))?);
    }
    let [out, err] = <[File; 2]>::try_from(files).expect("there are two streams");
    let started = Instant::now();
    let status = if live { watched(words, out, err)? } else { collect(words, out, err)? };
    let taken_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    Ok(Status { status, taken_ns })
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.get(1..).unwrap_or_default());
    command.env_clear().env("PATH", PATH).env("HOME", "/root").env("TERM", "linux");
    command.current_dir("/root").stdin(Stdio::null());
    command
}

/// Runs a command whose output is written to `out` and `err`.
fn collect(words: &[String], out: File, mut err: File) -> Result<i32> {
    let streams = err.try_clone().map_err(HostError::guest("collect output"))?;
    match command(words).stdout(out).stderr(streams).spawn() {
        Ok(child) => wait(child),
        Err(error) => Ok(report(words, &error, &mut err)),
    }
}

/// Runs a command whose output is written to `out` and `err`, and also forwarded to the serial ports.
fn watched(words: &[String], out: File, err: File) -> Result<i32> {
    let [to_out, to_err] = [serial(SERIAL[0])?, serial(SERIAL[1])?];
    let piped = command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = match piped {
        Ok(child) => child,
        Err(error) => return Ok(report(words, &error, &mut Both(err, to_err))),
    };
    let (from_out, from_err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| from_out.map(|mut from| io::copy(&mut from, &mut Both(out, to_out))));
        scope.spawn(|| from_err.map(|mut from| io::copy(&mut from, &mut Both(err, to_err))));
        wait(child)
    })
}

/// Reports why a command could not be started, and returns the status for it.
fn report(words: &[String], error: &io::Error, to: &mut dyn Write) -> i32 {
    // If the report cannot be written, the status still shows the failure.
    drop(writeln!(to, "{}: {error}", words.first().map_or("", String::as_str)));
    NOT_STARTED
}

fn wait(mut child: Child) -> Result<i32> {
    child.wait().map(status).map_err(HostError::guest("wait for a command"))
}

/// Returns the exit status as a shell does: 128 plus the signal's number if a signal ended the command.
fn status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Opens a serial port in raw mode.
fn serial(path: &str) -> Result<File> {
    let open = || {
        let port = File::options().write(true).read(true).open(path)?;
        let mut modes = tcgetattr(&port)?;
        modes.make_raw();
        tcsetattr(&port, OptionalActions::Now, &modes)?;
        Ok::<_, io::Error>(port)
    };
    open().map_err(HostError::guest(format!("open {path}")))
}

/// A writer to two files.
struct Both(File, File);

impl Write for Both {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(bytes)?;
        self.1.write_all(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn an_exit_status_is_that_of_a_shell() {
        let of = |script: &str| status(Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!((of("exit 7"), of("kill -9 $$")), (7, 137));
    }

    #[test]
    fn a_command_that_cannot_be_started_has_a_status_and_a_message() {
        let mut output = Vec::new();
        let error = io::Error::from(io::ErrorKind::NotFound);
        assert_eq!(report(&words(&["nope", "-x"]), &error, &mut output), 127);
        assert_eq!(output, b"nope: entity not found\n");
    }
}
