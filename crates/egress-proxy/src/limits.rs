//! How much of the network a box may use.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// How much of a second's bytes may pass at once, as a divisor, after a time in which none did.
const BURST: u32 = 8;

/// The names that were asked for within the last minute. A repeated name counts once: the limit bounds how much a box can
/// communicate to the owner of a domain by asking for names below it.
#[derive(Debug)]
pub(crate) struct Names {
    most: u32,
    seen: Mutex<HashMap<String, Instant>>,
}

impl Names {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// Records that a name is asked for. Returns `false` if that exceeds the limit.
    pub(crate) fn ask(&self, name: &str) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_recent = |at: &Instant| now.duration_since(*at) < MINUTE;
        let is_full = || seen.len() >= self.most as usize;
        if !seen.contains_key(name) && is_full() {
            seen.retain(|_, at| is_recent(at));
            if seen.len() >= self.most as usize {
                return false;
            }
        }
        seen.insert(name.to_owned(), now);
        true
    }
}

/// Limits the bytes per second of all connections together.
///
/// Bytes are paid for after they were transferred: a connection waits while more bytes have passed than the rate allows. A read
/// therefore need not know its length in advance, and the debt is at most one buffer for each connection.
#[derive(Debug)]
pub(crate) struct ByteRate {
    bytes_per_second: u64,
    /// When all that has passed is paid for.
    paid: Mutex<Instant>,
}

impl ByteRate {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), paid: Mutex::new(Instant::now()) }
    }

    /// Returns when the next byte may pass, if that is not now.
    pub(crate) fn next(&self) -> Option<Instant> {
        let paid = *self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let ahead = paid.saturating_duration_since(now);
        let burst = Duration::from_secs(1) / BURST;
        (ahead > burst).then(|| now + (ahead - burst))
    }

    /// Notes that bytes have passed.
    pub(crate) fn pass(&self, bytes: usize) {
        let nanoseconds = (bytes as u64).saturating_mul(1_000_000_000) / self.bytes_per_second;
        let mut paid = self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        *paid = (*paid).max(Instant::now()) + Duration::from_nanos(nanoseconds);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_name_counts_for_a_minute_after_it_was_asked_for_last() {
        let names = Names::new(2);
        assert!(names.ask("a") && names.ask("b") && !names.ask("c"));
        advance(Duration::from_secs(40)).await;
        assert!(names.ask("a") && !names.ask("c"));
        advance(Duration::from_secs(30)).await;
        // The last that was heard of b is more than a minute ago.
        assert!(names.ask("c") && names.ask("a") && !names.ask("b"));
        advance(Duration::from_secs(60)).await;
        assert!(names.ask("b") && names.ask("d") && !names.ask("a"));
        assert_eq!(names.seen.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_paid_for_afterwards() {
        let pace = ByteRate::new(1000);
        assert_eq!(pace.next(), None);
        pace.pass(100);
        // An eighth of a second's bytes is free.
        assert_eq!(pace.next(), None);
        pace.pass(1900);
        let wait = pace.next().unwrap() - Instant::now();
        assert_eq!(wait, Duration::from_millis(1875));
        advance(wait).await;
        assert_eq!(pace.next(), None);
        advance(Duration::from_secs(3600)).await;
        pace.pass(2000);
        // Nor does a long silence allow more at once.
        assert_eq!(pace.next().unwrap() - Instant::now(), Duration::from_millis(1875));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_nothing_is_not_divided_by() {
        ByteRate::new(0).pass(1);
        ByteRate::new(u64::MAX).pass(usize::MAX);
    }
}
