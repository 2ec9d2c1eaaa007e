//! The signals that end a run, as a descriptor to wait on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::LaunchError;

/// SIGINT, SIGTERM and SIGHUP, which wait here until they are read.
#[derive(Debug)]
pub struct StopSignals {
    fd: SignalFd,
}

impl StopSignals {
    /// Blocks the signals in this thread, and so in the threads and programs that it starts later;
    /// see [`unblock`].
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn block() -> Result<Self, LaunchError> {
        let set = stop_signals();
        set.thread_block().map_err(LaunchError::system("block signals"))?;
        SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map(|fd| Self { fd })
            .map_err(LaunchError::system("wait for signals"))
    }

    /// Returns the number of the next signal, if one has arrived.
    ///
    /// # Errors
    /// When the descriptor cannot be read.
    pub fn next(&self) -> Result<Option<i32>, LaunchError> {
        let found = self.fd.read_signal().map_err(LaunchError::system("read a signal"))?;
        found.map(|info| i32::try_from(info.ssi_signo)).transpose().map_err(|_| {
            LaunchError::system("read a signal")(io::Error::other("a number out of range"))
        })
    }
}

/// Lets signals end this thread's process again, in a program that was started by one that had
/// blocked them.
///
/// # Errors
/// When the kernel refuses.
pub fn unblock() -> Result<(), LaunchError> {
    stop_signals().thread_unblock().map_err(LaunchError::system("unblock signals"))
}

fn stop_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect()
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
