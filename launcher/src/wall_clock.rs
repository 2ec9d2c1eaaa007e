//! Watches the host's wall clock, which a box has to follow: after the host has slept, or was given another time.

use std::io::{self, ErrorKind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;

use crate::LaunchError;

/// How often a box gets the time without such an event: clocks drift apart.
const INTERVAL: Duration = Duration::from_secs(600);
const ACTION: &str = "watch the clock";

/// Tells when a box should be told the time.
#[derive(Debug)]
pub(crate) struct WallClock {
    timer: Receiver,
}

impl WallClock {
    /// Watches the clock in the current runtime.
    pub(crate) fn new() -> Result<Self, LaunchError> {
        let failed = LaunchError::system(ACTION);
        // Not a pipe, but as readable as one.
        let watched = || Receiver::from_owned_fd_unchecked(timer()?);
        Ok(Self { timer: watched().map_err(failed)? })
    }

    /// Waits until the clock was set, or for [`INTERVAL`]; returns the time in nanoseconds since 1970. May be dropped
    /// at any time.
    pub(crate) async fn next(&self) -> u64 {
        loop {
            let is_ready = self.timer.readable().await.is_ok();
            match self.timer.try_read(&mut [0; 8]) {
                Err(error) if is_ready && error.kind() == ErrorKind::WouldBlock => {}
                // A clock that was set is an error of its own, ECANCELED.
                _ if is_ready => return now_ns(),
                // Without the timer the box has the time of its start.
                _ => std::future::pending().await,
            }
        }
    }
}

/// Makes a timer that is readable whenever the clock was set, and every [`INTERVAL`].
fn timer() -> io::Result<OwnedFd> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let timer = TimerFd::new(ClockId::CLOCK_REALTIME, flags)?;
    let first = Duration::from_nanos(now_ns()) + INTERVAL;
    let expiration = Expiration::IntervalDelayed(
        TimeSpec::from_duration(first),
        TimeSpec::from_duration(INTERVAL),
    );
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
    timer.set(expiration, flags)?;
    Ok(OwnedFd::from(timer))
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
