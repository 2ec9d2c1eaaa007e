//! Bounds how often something happens.

use std::time::{Duration, Instant};

/// Lets something happen so many times in a second, and as many times at once after a second without it.
#[derive(Debug)]
pub struct Pace {
    per_second: u32,
    /// When all that has happened is paid for.
    paid: Instant,
}

impl Pace {
    /// Lets something happen `per_second` times in a second, at least once.
    pub fn new(per_second: u32, now: Instant) -> Self {
        Self { per_second: per_second.max(1), paid: now }
    }

    /// Returns how long it has to wait, if it may not happen now.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let ahead = (self.paid + self.share()).saturating_duration_since(now);
        ahead.checked_sub(Duration::from_secs(1)).filter(|it| !it.is_zero())
    }

    /// Notes that it happens; returns `false` where it may not.
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
