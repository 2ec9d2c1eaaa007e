//! Limits how much of the network a box may use.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// After a pause, as many bytes may pass at once as the rate permits in `1 / BURST` seconds.
const BURST: u32 = 8;

/// The names that a box asked for within the last minute, each once. The limit bounds how much a box can communicate to
/// the owner of a domain by asking for names below it.
#[derive(Debug)]
pub(crate) struct Names {
    most: u32,
    seen: Mutex<HashMap<String, Instant>>,
}

impl Names {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, seen: Mutex::default() }
    }

    /// Records that the box asks for a name. Returns `false` if that exceeds the limit.
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
/// Each connection waits while more bytes have passed than the rate permits. A transfer is recorded when it is done, so
/// its length need not be known before, and each connection can exceed the rate by at most one buffer.
#[derive(Debug)]
pub(crate) struct ByteRate {
    bytes_per_second: u64,
    /// The time at which the rate will have permitted all bytes that have passed.
    paid: Mutex<Instant>,
}

impl ByteRate {
    pub(crate) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), paid: Mutex::new(Instant::now()) }
    }

    /// Returns when the next byte may pass; `None` if it may pass now.
    pub(crate) fn next(&self) -> Option<Instant> {
        let paid = *self.paid.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let ahead = paid.saturating_duration_since(now);
        let burst = Duration::from_secs(1) / BURST;
        (ahead > burst).then(|| now + (ahead - burst))
    }

    /// Records that bytes have passed.
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
        // The last request for b is more than a minute ago.
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
        // The bytes of an eighth of a second pass at once.
        assert_eq!(pace.next(), None);
        pace.pass(1900);
        let wait = pace.next().unwrap() - Instant::now();
        assert_eq!(wait, Duration::from_millis(1875));
        advance(wait).await;
        assert_eq!(pace.next(), None);
        advance(Duration::from_secs(3600)).await;
        pace.pass(2000);
        // After a long pause, no more bytes pass at once.
        assert_eq!(pace.next().unwrap() - Instant::now(), Duration::from_millis(1875));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pace_of_nothing_is_not_divided_by() {
        ByteRate::new(0).pass(1);
        ByteRate::new(u64::MAX).pass(usize::MAX);
    }
}
