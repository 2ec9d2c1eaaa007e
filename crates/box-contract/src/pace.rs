//! A rate limiter.

use std::time::{Duration, Instant};

/// Permits a number of events per second, and a burst of the same number after one idle second.
///
/// # Examples
/// ```
/// use std::time::{Duration, Instant};
///
/// use box_contract::pace::Pace;
///
/// let start = Instant::now();
/// let mut pace = Pace::new(2, start);
/// assert!(pace.take(start) && pace.take(start));
/// assert_eq!(pace.wait(start), Some(Duration::from_millis(500)));
/// ```
#[derive(Debug)]
pub struct Pace {
    per_second: u32,
    /// The time until which the recorded events use up the permitted rate. After a burst, it is in the future.
    paid: Instant,
}

impl Pace {
    /// Creates a limiter of `per_second` events per second. 0 is treated as 1.
    pub fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second: per_second.max(1), paid: now }
    }

    /// Returns how long the next event has to wait, or `None` if it may happen now.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let ahead = (self.paid + self.share()).saturating_duration_since(now);
        ahead.checked_sub(Duration::from_secs(1)).filter(|it| !it.is_zero())
    }

    /// Records an event and returns `true`, or returns `false` if it may not happen now.
    pub fn take(&mut self, now: Instant) -> bool {
        let may = self.wait(now).is_none();
        if may {
            self.paid = self.paid.max(now) + self.share();
        }
        may
    }

    fn share(&self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_happen_at_once_and_then_each_after_its_share_of_a_second() {
        let start = Instant::now();
        let mut pace = Pace::new(10, start);
        let at_once = (0..20).filter(|_| pace.take(start)).count();
        assert_eq!(at_once, 10);
        let share = Duration::from_millis(100);
        assert_eq!(pace.wait(start), Some(share));
        assert!(!pace.take(start + share / 2));
        assert!(pace.take(start + share));
        let later = start + Duration::from_secs(60);
        assert_eq!(pace.wait(later), None);
        let at_once = (0..20).filter(|_| pace.take(later)).count();
        assert_eq!(at_once, 10, "time without any is not saved up");
    }
}
