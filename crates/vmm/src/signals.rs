//! The signals that end a run, as a descriptor that can be polled.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use host_fs::OsError;

/// The size of a `signalfd_siginfo`, which begins with the signal's number
/// ([signalfd(2)](https://man7.org/linux/man-pages/man2/signalfd.2.html)).
pub const SIGNAL_SIZE: usize = 128;

/// A signal asked for the end of the run. Holds its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped by {}", name(*.0))]
pub struct Stopped(pub i32);

/// Returns the name of a signal, such as `SIGTERM`.
fn name(number: i32) -> String {
    let named = u8::try_from(number).ok().and_then(box_contract::signals::name);
    named.unwrap_or_else(|| format!("signal {number}"))
}

/// A descriptor from which SIGINT, SIGTERM and SIGHUP are read. They are blocked, so a signal is pending until it is
/// read.
#[derive(Debug)]
pub struct StopSignals {
    fd: SignalFd,
    taken: Cell<bool>,
}

impl StopSignals {
    /// Blocks the signals in this thread, and so in the threads and programs that it starts later. A program calls
    /// [`unblock`] to receive them again. SIGWINCH is blocked as well, so that none of these threads handles it.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn block() -> Result<Self, OsError> {
        let set = stop_signals();
        let blocked: SigSet = set.iter().chain([Signal::SIGWINCH]).collect();
        blocked.thread_block().map_err(OsError::system("block signals"))?;
        SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map(|fd| Self { fd, taken: Cell::new(false) })
            .map_err(OsError::system("wait for signals"))
    }

    /// Returns the number of the next signal, if one has arrived.
    ///
    /// # Errors
    /// If the descriptor cannot be read.
    pub fn next(&self) -> Result<Option<i32>, OsError> {
        let found = self.fd.read_signal().map_err(OsError::system("read a signal"))?;
        self.taken.set(self.taken.get() || found.is_some());
        Ok(found.map(|info| info.ssi_signo.cast_signed()))
    }

    /// Records a signal whose `signalfd_siginfo` the caller has read from the descriptor. Returns the signal's number.
    pub fn take(&self, information: [u8; SIGNAL_SIZE]) -> i32 {
        self.taken.set(true);
        let [a, b, c, d, ..] = information;
        i32::from_ne_bytes([a, b, c, d])
    }

    /// Resets [`Self::any_taken`]: the caller has forwarded the signal to another process, and this process continues.
    pub fn forget(&self) {
        self.taken.set(false);
    }

    /// Returns whether a signal has been read and not forgotten.
    pub const fn any_taken(&self) -> bool {
        self.taken.get()
    }
}

/// Returns a descriptor that is readable after the size of this program's terminal has changed. SIGWINCH must be
/// blocked; see [`StopSignals::block`].
///
/// # Errors
/// If the kernel refuses.
pub fn resizes() -> nix::Result<SignalFd> {
    let changed: SigSet = [Signal::SIGWINCH].into_iter().collect();
    SignalFd::with_flags(&changed, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// Unblocks the signals that the program which started this one had blocked with [`StopSignals::block`].
///
/// # Errors
/// If the kernel refuses.
pub fn unblock() -> Result<(), OsError> {
    let blocked: SigSet = stop_signals().iter().chain([Signal::SIGWINCH]).collect();
    blocked.thread_unblock().map_err(OsError::system("unblock signals"))
}

/// Returns SIGINT, SIGTERM and SIGHUP, except the ones that this process inherited as ignored. For example, nohup(1)
/// ignores SIGHUP, and a shell ignores SIGINT for a program in the background.
fn stop_signals() -> SigSet {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = ignored(&status);
    let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
    all.into_iter().filter(|signal| ignored & 1 << (*signal as u32 - 1) == 0).collect()
}

/// Reads the set of ignored signals from the text of `/proc/PID/status`
/// ([proc(5)](https://man7.org/linux/man-pages/man5/proc.5.html), `SigIgn`).
fn ignored(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\n";
        assert_eq!(ignored(status), 1, "SIGHUP under nohup");
        assert_eq!(ignored("Name:\tx\n"), 0);
    }
}
