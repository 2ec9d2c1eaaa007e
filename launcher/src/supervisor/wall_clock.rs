//! Watches the host's wall clock, which a box must follow after the host was suspended or its clock was set.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host_fs::OsError;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// How often the time is sent to a box if no such event occurs, because the clocks of the box and the host drift apart.
const INTERVAL: Duration = Duration::from_secs(600);
const ACTION: &str = "watch the clock";

/// Triggers the messages that set the clock of a box.
#[derive(Debug)]
pub(crate) struct WallClock {
    timer: Receiver,
}

impl WallClock {
    /// Watches the clock in the current runtime.
    pub(crate) fn new() -> Result<Self, OsError> {
        let failed = OsError::system(ACTION);
        // Unchecked, because a timerfd is no pipe. It is polled for readability like a pipe.
        let watched = || Receiver::from_owned_fd_unchecked(timer()?);
        Ok(Self { timer: watched().map_err(failed)? })
    }

    /// Waits until the host's clock is set, or for [`INTERVAL`]. Returns the time in nanoseconds since 1970.
    /// Cancel-safe.
    pub(crate) async fn next(&self) -> u64 {
        while self.timer.readable().await.is_ok() {
            match self.timer.try_read(&mut [0; 8]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Handle ECANCELED, which reports a changed clock, like the end of an interval: see
                // [timerfd_create(2)](https://man7.org/linux/man-pages/man2/timerfd_create.2.html).
                _ => {
                    // Start the next interval by the new clock.
                    drop(arm(&self.timer));
                    return now_ns();
                }
            }
        }
        // If the timer fails, the box's clock is no longer set.
        std::future::pending().await
    }
}

/// Creates a timer that becomes readable every [`INTERVAL`] and whenever the clock is set.
fn timer() -> io::Result<OwnedFd> {
    let timer =
        timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    arm(&timer)?;
    Ok(timer)
}

/// Starts the timer's intervals at the current time.
fn arm(timer: impl AsFd) -> io::Result<()> {
    let seconds = |time: Duration| Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: 0 };
    let (it_interval, first) = (seconds(INTERVAL), Duration::from_nanos(now_ns()) + INTERVAL);
    let new = Itimerspec { it_interval, it_value: seconds(first) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &new)?;
    Ok(())
}

pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
