//! Waits for child processes and reports how they ended.

use std::io;
use std::time::Instant;

use nix::libc;
use nix::poll::PollTimeout;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use crate::sys;

/// A child that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: Pid,
    /// Its exit status, or 128 + the signal's number. For example, 137 after SIGKILL.
    pub(crate) status: u8,
}

/// Blocks SIGCHLD in this process, and returns a descriptor that is readable if the signal is pending.
///
/// # Errors
/// The kernel's error.
pub(crate) fn child_signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Removes the pending signals. The caller must then reap all ended children, because several ends can share one
/// signal.
pub(crate) fn clear(signals: &SignalFd) {
    while let Ok(Some(_)) = signals.read_signal() {}
}

/// Reaps the next ended child. Returns `None` if there is none.
pub(crate) fn next_ended() -> Option<Ended> {
    sys::reap().map(|(pid, status)| Ended { pid, status: status_of(status) })
}

/// Returns the timeout of [poll(2)](https://man7.org/linux/man-pages/man2/poll.2.html) for a deadline, rounded up so
/// that poll never returns just before it.
pub(crate) fn timeout(deadline: Option<Instant>) -> PollTimeout {
    let Some(deadline) = deadline else { return PollTimeout::NONE };
    let left = deadline.saturating_duration_since(Instant::now());
    PollTimeout::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(PollTimeout::MAX)
}

/// Returns whether an operation on a non-blocking file can be retried.
pub(crate) fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Converts the kernel's status of an ended process to the reported status.
fn status_of(status: i32) -> u8 {
    let code = if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    };
    // Exit statuses have 8 bits, and the highest signal is 64.
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_status_and_signal_is_distinguished() {
        for code in 0..=255_u8 {
            assert_eq!(status_of(i32::from(code) << 8), code);
        }
        for signal in 1..=64_u8 {
            assert_eq!(status_of(i32::from(signal)), 128 + signal);
            assert_eq!(status_of(i32::from(signal) | 0x80), 128 + signal, "with a core dump");
        }
    }
}
