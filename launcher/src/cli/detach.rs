//! `boxlaunch run --detach`: the same run in a process of its own, which goes on when its caller has seen the start.

use std::env;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, Stdio};

use boxlaunch::LaunchError;
use boxlaunch::boxes::Entry;
use boxlaunch::signals::StopSignals;
use boxlaunch::supervisor::{Started, Terms};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};

use super::error::{CommandError, signal_code};
use super::paths::SELF;
use super::screen::Screen;
use super::terminal::print;

/// Starts this command line as a process that goes on, and passes on what it prints until the agent is ready.
pub(super) fn run() -> Result<u8, CommandError> {
    let signals = StopSignals::block()?;
    let mut child = Command::new(SELF)
        .args(env::args_os().skip(1))
        .arg("--detached")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(system("start the supervisor"))?;
    let Some(mut output) = child.stdout.take() else { return Ok(box_image::exit::BUG) };
    let mut said = Vec::new();
    while receive(&mut output, &mut said, &child, &signals)? {}
    print(&String::from_utf8_lossy(&said))?;
    if !said.is_empty() && child.try_wait().map_err(system("wait for the supervisor"))?.is_none() {
        return Ok(box_image::exit::DONE);
    }
    let status = child.wait().map_err(system("wait for the supervisor"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or_else(|| signal_code(Signal::SIGKILL as i32)))
}

/// Reads what the supervisor has printed; returns `false` at its end. A terminal's Ctrl-C reaches both processes; another
/// request to end is passed on.
fn receive(
    output: &mut ChildStdout,
    said: &mut Vec<u8>,
    child: &Child,
    signals: &StopSignals,
) -> Result<bool, LaunchError> {
    let mut fds = [output.as_fd(), signals.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    match poll(&mut fds, PollTimeout::NONE) {
        Err(nix::Error::EINTR) => return Ok(true),
        polled => polled.map_err(|error| system("wait for the supervisor")(error.into()))?,
    };
    let [has_output, has_signal] = fds.map(|fd| fd.any().unwrap_or(true));
    if has_signal && signals.next()? == Some(Signal::SIGTERM as i32) {
        let pid = i32::try_from(child.id()).map(Pid::from_raw);
        // One that is gone says so by the end of its output.
        let _ = pid.map(|pid| kill(pid, Signal::SIGTERM));
    }
    if !has_output {
        return Ok(true);
    }
    let mut chunk = [0; 4096];
    let length = output.read(&mut chunk).map_err(system("hear from the supervisor"))?;
    said.extend_from_slice(&chunk[..length]);
    Ok(length > 0)
}

/// Leaves the caller's session and terminal once everything is printed, and serves the box until it ends.
pub(super) fn go_on(
    started: Started,
    entry: Entry,
    terms: Terms,
    signals: &StopSignals,
    screen: &Screen,
) -> Result<u8, CommandError> {
    // With this the outlets let go of the caller's files, so that it sees their end.
    let code = screen.close(box_image::exit::DONE);
    leave().map_err(system("leave the terminal"))?;
    started.serve_here(entry, terms, signals)?;
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

fn system(action: &'static str) -> impl FnOnce(io::Error) -> LaunchError {
    move |source| LaunchError::System { action, source }
}
