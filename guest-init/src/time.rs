//! The guest's part of the startup budget.
//!
//! The kernel's time is the time stamp counter at init's first instruction. The counter starts at zero when the virtual
//! CPU is made, because the VMM writes `MSR_IA32_TSC`. Converting counts to nanoseconds requires the counter's
//! frequency. `/proc/cpuinfo` rounds it and on some CPUs shows the current clock instead, and CPUID leaf 0x15 is empty
//! on AMD. So init compares the counter with `CLOCK_MONOTONIC` over the time from its first instruction to "ready".
//! Both are read within a microsecond, so over a start of 5 ms the error is below 0.05 %.

use std::time::{Duration, SystemTime};

use box_contract::wire::{HostTime, Timing};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime, clock_settime};

use crate::{console, sys};

/// How far ahead of the host the guest's clock is set. The host stamps the files of shares, and a build takes a file from the future for
/// an error. So the guest must not be behind, and a message with the host's time takes a while.
const LEAD: Duration = Duration::from_millis(20);
/// How far ahead of the host the guest's clock may be.
const MAX_LEAD: Duration = Duration::from_millis(100);

/// The time of init's start, on the time stamp counter and on `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    counter: u64,
    at_ns: u64,
}

/// The later milestones of the agent's start, on the clock of [`now_ns`].
#[derive(Debug, Clone, Copy)]
pub struct Milestones {
    /// When the agent's program was executed.
    pub started_ns: u64,
    /// When its health check passed.
    pub ready_ns: u64,
}

impl Clock {
    /// Reads both clocks. Init calls this first.
    pub fn start() -> Self {
        Self { counter: sys::time_stamp_counter(), at_ns: now_ns() }
    }

    /// Returns the durations of the phases of the start, up to now.
    pub fn timing(&self, milestones: Milestones) -> Timing {
        let now = Self::start();
        // The counter of another processor can be lower.
        let counts = now.counter.saturating_sub(self.counter);
        Timing {
            kernel_ns: scale(self.counter, now.at_ns.saturating_sub(self.at_ns), counts),
            init_ns: milestones.started_ns.saturating_sub(self.at_ns),
            ready_ns: milestones.ready_ns.saturating_sub(milestones.started_ns),
            sent_ns: now.at_ns.saturating_sub(milestones.ready_ns),
        }
    }
}

/// Returns the time since 1970 by the guest's clock.
pub fn since_epoch() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// Returns `CLOCK_MONOTONIC` in nanoseconds. It is the same in every process of the guest.
pub fn now_ns() -> u64 {
    // Every Linux has this clock, so zero is never returned.
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Sets the wall clock if it is behind the host's or far ahead, for example because the host was suspended or its clock was set.
pub(crate) fn follow(host: HostTime) {
    let own = clock_gettime(ClockId::CLOCK_REALTIME).map(Duration::from).unwrap_or_default();
    if let Some(time) = corrected(own, Duration::from_nanos(host.now_ns))
        && let Err(error) = clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(time))
    {
        console::say(&format!("set the clock: {error}"));
    }
}

/// Returns the time to which the clock must be set. `None` if it is right.
fn corrected(own: Duration, host: Duration) -> Option<Duration> {
    let is_right = (host + LEAD / 2..=host + MAX_LEAD).contains(&own);
    (!is_right).then_some(host + LEAD)
}

/// Converts `count` to nanoseconds, given that `counts` took `ns`. For example, at 2.5 GHz 2,500 counts take 1,000 ns.
fn scale(count: u64, ns: u64, counts: u64) -> u64 {
    let product = u128::from(count) * u128::from(ns);
    product.checked_div(u128::from(counts)).map_or(0, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scale_by_the_measured_frequency() {
        assert_eq!(scale(3_000_000, 1_000, 2_500), 1_200_000, "2.5 GHz");
        assert_eq!(scale(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(scale(7, 7, 0), 0, "no time has passed");
    }

    #[test]
    fn the_clock_is_never_behind_the_host() {
        let at = Duration::from_millis;
        let host = at(1_000_000);
        for own in [0, 999_999, 1_000_000, 1_000_009, 1_000_101, 2_000_000] {
            assert_eq!(corrected(at(own), host), Some(at(1_000_020)), "{own}");
        }
        for own in [1_000_010, 1_000_100] {
            assert_eq!(corrected(at(own), host), None, "{own}");
        }
    }

    #[test]
    fn the_phases_follow_one_another() {
        let clock = Clock { counter: 10, at_ns: now_ns() - 5_000 };
        let started_ns = clock.at_ns + 1_000;
        let timing = clock.timing(Milestones { started_ns, ready_ns: started_ns + 2_000 });
        assert_eq!((timing.init_ns, timing.ready_ns), (1_000, 2_000));
        assert!(timing.sent_ns >= 2_000);
    }

    #[test]
    fn a_counter_that_goes_back_gives_no_time() {
        let clock = Clock { counter: u64::MAX, at_ns: u64::MAX };
        let timing = clock.timing(Milestones { started_ns: 1, ready_ns: 2 });
        assert_eq!((timing.kernel_ns, timing.init_ns), (0, 0));
    }
}
