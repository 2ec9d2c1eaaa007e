//! Limits the rate at which a log is written to the disk.
//!
//! A client that follows a program gets all of its output. The log is written even if there is no client, and a program
//! that writes without end must not keep the host's disk busy. So a log has a rate limit. The last entries are held in
//! memory until the rate permits them, and older ones that arrive too fast are dropped. So a log always has the end of
//! the output.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use super::MAX_FILE;

/// The size of the bucket, in bytes: how much can be written at once after a quiet period. It is the size of a log's
/// two files.
pub(super) const BURST: u64 = 2 * MAX_FILE;
/// The number of bytes per second that can be written once the burst is used up.
pub(super) const PER_SECOND: u64 = 1 << 20;
/// The greatest size of the entries that are held in memory, in bytes.
pub(super) const HELD: usize = 256 << 10;
/// How long to hold entries before the next attempt to write them.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The shortest period after which bytes are added to the bucket. For a shorter period, rounding would lose bytes.
const STEP: Duration = Duration::from_millis(1);

/// The bytes that a log may still write: a token bucket.
#[derive(Debug)]
pub(super) struct Rate {
    room: u64,
    counted: Instant,
}

impl Rate {
    /// Returns the rate limit of a new log.
    pub(super) const fn new(now: Instant) -> Self {
        Self { room: BURST, counted: now }
    }

    /// Takes `bytes` out of the bucket if it has that many. Returns whether it had.
    pub(super) fn take(&mut self, bytes: u64, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.counted);
        if passed >= STEP {
            let gained = passed.as_micros() * u128::from(PER_SECOND) / 1_000_000;
            let gained = u64::try_from(gained).unwrap_or(BURST);
            self.room = self.room.saturating_add(gained).min(BURST);
            self.counted = now;
        }
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }
}

/// The last entries, which wait until the rate permits them.
#[derive(Debug, Default)]
pub(super) struct Held {
    entries: VecDeque<Vec<u8>>,
    size: usize,
    /// How many bytes of entries were dropped.
    left_out: u64,
    since: Option<Instant>,
}

impl Held {
    /// Adds an entry. Then drops the oldest entries until the rest has at most [`HELD`] bytes or is one entry.
    pub(super) fn push(&mut self, entry: Vec<u8>, now: Instant) {
        self.since.get_or_insert(now);
        self.size += entry.len();
        self.entries.push_back(entry);
        while self.size > HELD
            && self.entries.len() > 1
            && let Some(first) = self.entries.pop_front()
        {
            self.size -= first.len();
            self.left_out += first.len() as u64;
        }
    }

    /// Returns the size of the held entries, in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size as u64
    }

    /// Returns when to try again to write the entries.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + LOOK)
    }

    /// Postpones the next attempt to write the entries: it is [`LOOK`] after `now`.
    pub(super) fn postpone(&mut self, now: Instant) {
        self.since = self.since.map(|_| now);
    }

    /// Removes and returns the entries, and a note about the entries that were dropped before them.
    pub(super) fn take(&mut self) -> (Option<String>, VecDeque<Vec<u8>>) {
        let Self { entries, left_out, .. } = mem::take(self);
        let note = (left_out > 0).then(|| {
            format!(
                "\n[boxlaunch: {} left out here: more than {} came in a second]\n",
                safe_text::readable(left_out),
                safe_text::readable(PER_SECOND)
            )
        });
        (note, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_takes_a_burst_and_then_so_much_in_a_second() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        assert!(rate.take(BURST, start) && !rate.take(1, start));
        let later = start + Duration::from_millis(500);
        assert!(!rate.take(PER_SECOND / 2 + 1, later), "half of it is there");
        assert!(rate.take(PER_SECOND / 2, later) && !rate.take(1, later));
        let hours = later + Duration::from_secs(36_000);
        assert!(!rate.take(BURST + 1, hours) && rate.take(BURST, hours), "no more than a burst");
        // If no time has passed, or the clock is earlier, no bytes are added.
        assert!(!rate.take(1, start));
    }

    #[test]
    fn the_rate_is_kept_however_often_the_clock_is_read() {
        let start = Instant::now();
        for step in
            [Duration::from_micros(7), Duration::from_micros(1300), Duration::from_millis(90)]
        {
            let (mut rate, mut now, mut written) = (Rate::new(start), start, 0);
            while now < start + Duration::from_secs(4) {
                while rate.take(512, now) {
                    written += 512;
                }
                now += step;
            }
            let most = BURST + 4 * PER_SECOND;
            assert!((most * 9 / 10..=most).contains(&written), "{written}");
        }
    }

    #[test]
    fn the_last_of_what_came_too_fast_is_held_and_the_rest_counted() {
        let (mut held, now) = (Held::default(), Instant::now());
        assert_eq!((held.due(), held.take()), (None, (None, VecDeque::new())));
        let entry = |number: usize| vec![u8::try_from(number).unwrap(); HELD / 4];
        (0..6).for_each(|number| held.push(entry(number), now));
        assert_eq!(held.due(), Some(now + LOOK));
        let (note, entries) = held.take();
        assert_eq!(entries, (2..6).map(entry).collect::<VecDeque<_>>());
        let output = "\n[boxlaunch: 128.0 KiB left out here: more than 1.0 MiB came in a second]\n";
        assert_eq!(note.as_deref(), Some(output));
        held.push(vec![0; 2 * HELD], now);
        assert_eq!(held.take(), (None, VecDeque::from([vec![0; 2 * HELD]])), "one entry at least");
    }
}
