//! `boxlaunch run --detach` and `exec --detach`: start the run or the command as another process, which outlives its caller.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::parent_id;
use std::process::{self, Child, ChildStdout, Command, Stdio};

use box_contract::exit;
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, setsid};
use vmm::signals::StopSignals;

use super::error::{Failure, signal_code};
use super::launch_error::LaunchError;
use super::notify;
use super::paths::SELF;
use super::screen::Screen;
use super::terminal::print;

/// The last byte that the supervisor writes to its caller before it detaches.
const DETACHED: u8 = 0;

/// Starts the same command line as a detached process, and waits until that process has detached or ended. Then prints its
/// standard output. `is_update` is whether a `boxlaunch update` has started this process, and `words` are the words of the command
/// line.
pub(super) fn run(is_update: bool, words: Vec<OsString>) -> Result<u8, Failure> {
    let signals = StopSignals::block()?;
    let mut supervisor = Command::new(SELF);
    supervisor.args(words).arg("--as-supervisor");
    let caller = if is_update { parent_id() } else { process::id() };
    if !notify::is_command_of_service(caller) {
        supervisor.env_remove(notify::SOCKET);
    }
    let (mut received, code) = follow(&mut supervisor, &signals)?;
    let is_detached = received.pop_if(|last| *last == DETACHED).is_some();
    print(&String::from_utf8_lossy(&received))?;
    Ok(if is_detached { exit::DONE } else { code() })
}

/// Starts the same `boxlaunch exec` as a detached process, and waits until that process has detached or ended.
pub(super) fn exec() -> Result<u8, Failure> {
    let signals = StopSignals::block()?;
    let mut words: Vec<_> = env::args_os().skip(1).collect();
    // Behind the name of the box, the option would belong to the command.
    let place = words.iter().position(|it| it == "exec").map_or(0, |at| at + 1);
    words.insert(place, "--as-detached".into());
    let mut client = Command::new(SELF);
    client.args(words);
    let (mut received, code) = follow(&mut client, &signals)?;
    let is_detached = received.pop_if(|last| *last == DETACHED).is_some();
    Ok(if is_detached { exit::DONE } else { code() })
}

/// Starts a process without input, and waits until it has closed its standard output. Signals are forwarded to it. Returns
/// the output, and the closure that waits for the process and returns its exit code.
pub(super) fn follow(
    command: &mut Command,
    signals: &StopSignals,
) -> Result<(Vec<u8>, impl FnOnce() -> u8), LaunchError> {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.map_err(OsError::system("start the supervisor"))?;
    let mut received = Vec::new();
    if let Some(mut output) = child.stdout.take() {
        while receive(&mut output, &mut received, &child, signals)? {}
    }
    let code = move || {
        let code = child.wait().ok().and_then(|status| status.code());
        let code = code.and_then(|code| u8::try_from(code).ok());
        code.unwrap_or_else(|| signal_code(Signal::SIGKILL as i32))
    };
    Ok((received, code))
}

/// Waits for output of the supervisor, which is added to `received`, or for a signal, which is forwarded to the supervisor.
/// Returns `false` at the end of the output.
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
        // An error is ignored: if the process has ended, its output ends, too.
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

/// Leaves the caller's session and terminal after all output is written. Returns the exit code of the output.
pub(super) fn leave(screen: &Screen) -> Result<u8, OsError> {
    screen.print(&char::from(DETACHED).to_string());
    // `close` also closes the screen's copies of the caller's files, so that the caller reads the end of the output.
    let code = screen.close(exit::DONE);
    leave_session().map_err(OsError::system("leave the terminal"))?;
    Ok(code)
}

/// Moves this process into a new session without a terminal ([setsid(2)](https://man7.org/linux/man-pages/man2/setsid.2.html)).
fn leave_session() -> io::Result<()> {
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    setsid()?;
    chdir("/")?;
    Ok(())
}
