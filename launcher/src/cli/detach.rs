//! `boxlaunch run --detach`: the same run in a process of its own, which keeps running when its caller has seen the start.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, Stdio};

use box_contract::exit;
use boxlaunch::boxes::Entry;
use boxlaunch::supervisor::{Started, Terms};
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use vmm::signals::StopSignals;

use super::error::{CommandError, of_run, signal_code};
use super::launch_error::LaunchError;
use super::paths::SELF;
use super::screen::Screen;
use super::terminal::print;

/// The last byte that the supervisor writes to its caller, once it keeps running by itself.
const DETACHED: u8 = 0;

/// Starts this command line as a process that keeps running, and passes on what it prints until the agent is ready.
pub(super) fn run() -> Result<u8, CommandError> {
    let signals = StopSignals::block()?;
    let mut child = Command::new(SELF)
        .args(env::args_os().skip(1))
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(OsError::system("start the supervisor"))?;
    let Some(mut output) = child.stdout.take() else { return Ok(exit::BUG) };
    let mut received = Vec::new();
    while receive(&mut output, &mut received, &child, &signals)? {}
    let is_detached = received.pop_if(|last| *last == DETACHED).is_some();
    print(&String::from_utf8_lossy(&received))?;
    if is_detached {
        return Ok(exit::DONE);
    }
    let status = child.wait().map_err(OsError::system("wait for the supervisor"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or_else(|| signal_code(Signal::SIGKILL as i32)))
}

/// Reads what the supervisor has printed; returns `false` at its end. Signals are passed on.
fn receive(
    output: &mut ChildStdout,
    received: &mut Vec<u8>,
    child: &Child,
    signals: &StopSignals,
) -> Result<bool, LaunchError> {
    let mut fds = [output.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut fds, PollTimeout::NONE) {
        Err(nix::Error::EINTR) => return Ok(true),
        polled => polled.map_err(OsError::system("wait for the supervisor"))?,
    };
    let [has_output, has_signal] = fds.map(|fd| fd.any().unwrap_or(true));
    if has_signal && let Some(signal) = signals.next()? {
        let pid = i32::try_from(child.id()).map(Pid::from_raw);
        // One that is gone says so by the end of its output.
        let _ = pid.map(|pid| kill(pid, Signal::try_from(signal).ok()));
    }
    if !has_output {
        return Ok(true);
    }
    let mut chunk = [0; 4096];
    let read = output.read(&mut chunk);
    let length = read.map_err(OsError::system("hear from the supervisor"))?;
    received.extend_from_slice(&chunk[..length]);
    Ok(length > 0)
}

/// Leaves the caller's session and terminal once everything is printed, and serves the box until it ends.
pub(super) fn keep_running(
    started: Started,
    entry: Entry,
    terms: Terms,
    signals: &StopSignals,
    screen: &Screen,
) -> Result<u8, CommandError> {
    screen.print(&char::from(DETACHED).to_string());
    // With this the outlets let go of the caller's files, so that it sees their end.
    let code = screen.close(exit::DONE);
    leave().map_err(OsError::system("leave the terminal"))?;
    started.serve_here(entry, terms, signals).map_err(|it| of_run(it, None))?;
    Ok(code)
}

/// Makes this process one without a terminal, in a session of its own.
fn leave() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    setsid()?;
    chdir("/")?;
    Ok(())
}
