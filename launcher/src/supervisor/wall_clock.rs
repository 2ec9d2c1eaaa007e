//! Watches the host's wall clock, which a box has to follow: after the host has slept, or was given another time.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host_fs::OsError;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

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
    pub(crate) fn new() -> Result<Self, OsError> {
        let failed = OsError::system(ACTION);
        // Not a pipe, but as readable as one.
        let watched = || Receiver::from_owned_fd_unchecked(timer()?);
        Ok(Self { timer: watched().map_err(failed)? })
    }

    /// Waits until the clock was set, or for [`INTERVAL`]; returns the time in nanoseconds since 1970. May be dropped
    /// at any time.
    pub(crate) async fn next(&self) -> u64 {
        while self.timer.readable().await.is_ok() {
            match self.timer.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A clock that was set is an error of its own, ECANCELED.
                _ => {
                    // The next time by itself is that of the clock as it is now.
                    drop(arm(&self.timer));
                    return now_ns();
                }
            }
        }
        // Without the timer the box keeps the time that it has.
        std::future::pending().await
    }
}

/// Makes a timer that is readable whenever the clock was set, and every [`INTERVAL`].
fn timer() -> io::Result<OwnedFd> {
    let timer =
        timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    arm(&timer)?;
    Ok(timer)
}

/// Sets the timer, by the clock as it is now.
fn arm(timer: impl AsFd) -> io::Result<()> {
    let seconds = |time: Duration| Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: 0 };
    let (it_interval, first) = (seconds(INTERVAL), Duration::from_nanos(now_ns()) + INTERVAL);
    let new = Itimerspec { it_interval, it_value: seconds(first) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &new)?;
    Ok(())
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
