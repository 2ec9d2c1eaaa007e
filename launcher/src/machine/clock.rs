//! Measures a start: when the program began, and how long each phase took.

use std::time::{Duration, Instant};

use box_contract::Phases;
use box_contract::wire::Timing;
use host_fs::OsError;
use nix::time::{ClockId, clock_gettime};

/// Estimates when this process began: the current time minus the processor time that the process has used
/// ([clock_gettime(2)](https://man7.org/linux/man-pages/man2/clock_gettime.2.html)). If this is the first call in
/// `main`, the result includes the time of the kernel and the dynamic linker before it.
///
/// # Errors
/// If the kernel has no clock for processor time.
pub fn process_start() -> Result<Instant, OsError> {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let used = used.map_err(OsError::system("read the clock"))?;
    let now = Instant::now();
    Ok(now.checked_sub(used.into()).unwrap_or(now))
}

/// Splits the time from the start to the arrival of the "ready" message into phases.
///
/// The host has measured `total` and `jail`, and the guest the other phases. In the order `jail`, `kernel`, `init`,
/// `ready`, a phase that exceeds the rest of the total is reduced to that rest. `vmm` is the remainder, so the phases
/// always add up to the total.
pub fn phases(total: Duration, jail: Duration, guest: &Timing) -> Phases {
    let total_ns = nanoseconds(total);
    let mut left = total_ns;
    let mut take = |wanted: u64| {
        let taken = wanted.min(left);
        left -= taken;
        to_ms(taken)
    };
    let jail = take(nanoseconds(jail));
    let (kernel, init, ready) = (take(guest.kernel_ns), take(guest.init_ns), take(guest.ready_ns));
    Phases { vmm: to_ms(left), jail, kernel, init, ready, total: to_ms(total_ns) }
}

/// Returns the phases of a start that ended before the agent was ready: only the total, because the guest reports the
/// other phases when the agent is ready.
pub fn unready(total: Duration) -> Phases {
    Phases { total: milliseconds(total), ..Phases::default() }
}

/// Converts a duration to milliseconds, for JSON. A product with 1000 in place of this quotient has digits that mean nothing, such as
/// 2.4072899999999997.
pub fn milliseconds(duration: Duration) -> f64 {
    to_ms(nanoseconds(duration))
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Converts nanoseconds to milliseconds. The result is exact to the nanosecond below 2^53 ns, which are 104 days.
#[allow(clippy::cast_precision_loss)]
fn to_ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    const JAIL: Duration = Duration::from_millis(2);

    fn timing(kernel_ns: u64, init_ns: u64, ready_ns: u64) -> Timing {
        Timing { kernel_ns, init_ns, ready_ns, sent_ns: 7 }
    }

    #[test]
    fn the_remaining_time_is_the_vmm_phase() {
        let taken =
            phases(Duration::from_millis(100), JAIL, &timing(30_000_000, 20_000_000, 500_000));
        let expected =
            Phases { vmm: 47.5, jail: 2.0, kernel: 30.0, init: 20.0, ready: 0.5, total: 100.0 };
        assert_eq!(taken, expected);
    }

    #[test]
    fn a_guest_that_claims_more_than_there_was_is_cut() {
        let taken = phases(
            Duration::from_millis(100),
            Duration::ZERO,
            &timing(60_000_000, u64::MAX, u64::MAX),
        );
        let expected =
            Phases { vmm: 0.0, jail: 0.0, kernel: 60.0, init: 40.0, ready: 0.0, total: 100.0 };
        assert_eq!(taken, expected);
        let none = phases(Duration::ZERO, JAIL, &timing(u64::MAX, 1, 1));
        assert_eq!(none, Phases::default());
    }

    #[test]
    fn the_process_began_before_now() {
        let (start, now) = (process_start().unwrap(), Instant::now());
        assert!(start < now && now.duration_since(start) < Duration::from_secs(3600));
    }
}
