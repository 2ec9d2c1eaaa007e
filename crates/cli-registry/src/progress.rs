//! Shows the progress of downloads to the user.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use box_digest::{AnyDigest, Digest};
use download::Progress as Piece;
use safe_text::readable;

use crate::Screen;

/// The minimum size in bytes for which a completed blob gets a permanent line.
const WORTH_A_LINE: u64 = 1 << 20;
/// The minimum interval between two changes of a watched line.
const PAUSE: Duration = Duration::from_millis(100);

/// The time after which the rate is shown. An earlier rate would not be meaningful.
const RATE_AFTER: Duration = Duration::from_secs(1);

/// Shows the progress of downloads: on one changing line if a user watches it, or else with a line for each completed download.
pub(crate) struct Progress {
    screen: Screen,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The received and total bytes of each running download.
    blobs: BTreeMap<Digest, (u64, u64)>,
    reported: Option<Instant>,
    /// When the first running download began.
    started: Option<Instant>,
    /// The bytes received since `started`.
    received: u64,
}

impl Progress {
    /// Starts without downloads.
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, state: Mutex::default() }
    }

    /// Updates a download, and shows the progress. Several threads call this function often.
    pub(crate) fn tell(&self, piece: Piece) {
        let Screen { note, status, is_watched, way } = self.screen;
        let [doing, did] = way.words();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = state.add(piece);
        if is_watched && done {
            status("");
        } else if is_watched && state.is_time() {
            status(&state.line(doing, state.rate().as_deref()));
        }
        if done && piece.received >= WORTH_A_LINE {
            note(&done_line(did, piece));
        }
    }
}

impl State {
    /// Updates a download, and returns whether it is complete.
    fn add(&mut self, piece: Piece) -> bool {
        let Piece { digest, received, total } = piece;
        if self.blobs.is_empty() {
            (self.started, self.received) = (Some(Instant::now()), 0);
        }
        let before = self.blobs.get(&digest).map_or(0, |(before, _)| *before);
        self.received += received.saturating_sub(before);
        if total == Some(received) {
            self.blobs.remove(&digest);
            return true;
        }
        // Show an unknown total as the received bytes, its lower bound.
        self.blobs.insert(digest, (received, total.unwrap_or(received)));
        false
    }

    /// Returns whether the line may change now.
    fn is_time(&mut self) -> bool {
        let may = self.reported.is_none_or(|reported| reported.elapsed() >= PAUSE);
        if may {
            self.reported = Some(Instant::now());
        }
        may
    }

    /// Returns the rate of the downloads, once they have run long enough for a meaningful rate.
    fn rate(&self) -> Option<String> {
        rate(self.received, self.started?.elapsed())
    }

    fn line(&self, doing: &str, rate: Option<&str>) -> String {
        let sums = self.blobs.values().fold((0, 0), |sums, it| (sums.0 + it.0, sums.1 + it.1));
        let (count, (received, all)) = (self.blobs.len(), sums);
        let blobs = if count == 1 { "blob" } else { "blobs" };
        let rate = rate.map(|rate| format!(", {rate}")).unwrap_or_default();
        format!("{doing} {count} {blobs}: {} of {}{rate}", readable(received), readable(all))
    }
}

/// Returns a readable rate, e.g. `2.0 MiB/s`, once enough time has passed.
fn rate(bytes: u64, taken: Duration) -> Option<String> {
    let milliseconds = u64::try_from(taken.as_millis()).unwrap_or(u64::MAX);
    let second = bytes.saturating_mul(1000).checked_div(milliseconds)?;
    (taken >= RATE_AFTER).then(|| format!("{}/s", readable(second)))
}

fn done_line(did: &str, piece: Piece) -> String {
    format!("{did} {} ({})", AnyDigest::from(piece.digest).short(), readable(piece.received))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(byte: u8, received: u64, total: u64) -> Piece {
        let digest = Digest::from_bytes([byte; 32]);
        Piece { digest, received, total: Some(total) }
    }

    #[test]
    fn what_is_under_way_is_summed_up() {
        let mut state = State::default();
        assert!(!state.add(piece(1, 1 << 20, 4 << 20)));
        assert_eq!(state.line("fetching", None), "fetching 1 blob: 1.0 MiB of 4.0 MiB");
        assert!(!state.add(piece(2, 0, 1 << 20)));
        assert!(!state.add(piece(1, 3 << 20, 4 << 20)));
        assert_eq!(state.line("fetching", None), "fetching 2 blobs: 3.0 MiB of 5.0 MiB");
        assert!(state.add(piece(1, 4 << 20, 4 << 20)));
        assert_eq!(state.line("fetching", None), "fetching 1 blob: 0 bytes of 1.0 MiB");
    }

    #[test]
    fn the_rate_is_shown_after_a_second() {
        assert_eq!(rate(4 << 20, Duration::from_millis(999)), None);
        assert_eq!(rate(4 << 20, Duration::from_secs(2)).unwrap(), "2.0 MiB/s");
        assert_eq!(rate(0, Duration::ZERO), None);
        let mut state = State::default();
        state.add(piece(1, 1 << 20, 4 << 20));
        state.add(piece(1, 3 << 20, 4 << 20));
        assert_eq!(state.received, 3 << 20);
        let line = state.line("sending", Some("2.0 MiB/s"));
        assert_eq!(line, "sending 1 blob: 3.0 MiB of 4.0 MiB, 2.0 MiB/s");
    }

    #[test]
    fn a_watched_line_does_not_change_at_each_piece() {
        let mut state = State::default();
        assert!(state.is_time());
        assert!(!state.is_time(), "within a tenth of a second");
        assert_eq!(done_line("sent", piece(0xab, 1, 1)), "sent sha256:abababababab (1 byte)");
    }
}
