//! Asking again, and how long to wait before.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Options, RegistryError};

/// How often, and after which pauses, something is tried.
#[derive(Debug, Clone)]
pub(super) struct Tries {
    all: u32,
    left: u32,
    backoff: Duration,
    longest: Duration,
}

impl Tries {
    /// Starts counting.
    pub(super) fn new(options: &Options<'_>) -> Self {
        let all = options.tries.max(1);
        Self { all, left: all, backoff: options.backoff, longest: options.longest_pause }
    }

    /// Limits the tries where there is another server to ask.
    #[must_use]
    pub(super) fn at_most(self, tries: u32) -> Self {
        let all = self.all.min(tries);
        Self { all, left: all, ..self }
    }

    /// Starts counting again: something came.
    pub(super) const fn refill(&mut self) {
        self.left = self.all;
    }

    /// Returns how long to wait before the next try after an error; nothing where there is none.
    ///
    /// The pauses double from try to try. A server that asks for a longer pause (`Retry-After`)
    /// gets it, unless that is longer than any: then asking sooner would be rude, and asking then
    /// too late.
    pub(super) fn pause(&mut self, error: &RegistryError) -> Option<Duration> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || !error.is_passing() {
            return None;
        }
        let doubled = 1_u32.checked_shl(self.all - self.left - 1).unwrap_or(u32::MAX);
        let pause = self.backoff.saturating_mul(doubled).min(self.longest);
        match error {
            RegistryError::Status { retry_after: Some(asked), .. } => {
                (*asked <= self.longest).then(|| pause.max(*asked))
            }
            _ => Some(pause),
        }
    }
}

/// Lets the threads of one call wait, and end together.
#[derive(Debug, Default)]
pub(super) struct Stop {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Tells all threads to end.
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether the threads are to end.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, but not longer than until the threads are to end.
    pub(super) fn sleep(&self, time: Duration) {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever sleeps asks afterwards whether to end.
        drop(self.changed.wait_timeout_while(stopped, time, |stopped| !*stopped));
    }
}

/// Tries until it goes well, fails for good, or has been tried often enough.
pub(super) fn retry<T>(
    mut tries: Tries,
    mut attempt: impl FnMut() -> Result<T, RegistryError>,
) -> Result<T, RegistryError> {
    loop {
        match attempt() {
            Err(error) => match tries.pause(&error) {
                Some(pause) => std::thread::sleep(pause),
                None => return Err(error),
            },
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: [u64; 0] = [];

    fn tries() -> Tries {
        let second = Duration::from_secs(1);
        let longest_pause = Duration::from_secs(5);
        Tries::new(&Options { tries: 6, backoff: second, longest_pause, ..Options::default() })
    }

    fn busy(retry_after: Option<u64>) -> RegistryError {
        RegistryError::Status {
            what: String::new(),
            host: String::new(),
            status: String::new(),
            code: None,
            passing: true,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn pauses(mut tries: Tries, error: &RegistryError) -> Vec<u64> {
        std::iter::from_fn(|| tries.pause(error)).map(|it| it.as_secs()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        assert_eq!(pauses(tries(), &busy(None)), [1, 2, 4, 5, 5]);
        assert_eq!(pauses(tries().at_most(2), &busy(None)), [1]);
        assert_eq!(pauses(tries().at_most(1), &busy(None)), NEVER);
        assert_eq!(pauses(tries().at_most(0), &busy(None)), NEVER);
    }

    #[test]
    fn a_server_may_ask_for_more_but_not_for_too_much() {
        assert_eq!(pauses(tries(), &busy(Some(3))), [3, 3, 4, 5, 5]);
        assert_eq!(pauses(tries(), &busy(Some(0))), [1, 2, 4, 5, 5]);
        assert_eq!(pauses(tries(), &busy(Some(6))), NEVER);
    }

    #[test]
    fn what_does_not_pass_is_not_tried_again() {
        let error = RegistryError::NotFound { what: String::new(), host: String::new() };
        assert_eq!(pauses(tries(), &error), NEVER);
    }

    #[test]
    fn progress_starts_the_count_again() {
        let mut tries = tries();
        for _ in 0..20 {
            assert_eq!(tries.pause(&busy(None)), Some(Duration::from_secs(1)));
            tries.refill();
        }
    }

    #[test]
    fn a_stop_ends_a_long_sleep() {
        let stop = Stop::default();
        std::thread::scope(|scope| {
            scope.spawn(|| stop.sleep(Duration::from_secs(3600)));
            stop.stop();
        });
        assert!(stop.is_stopped());
    }
}
