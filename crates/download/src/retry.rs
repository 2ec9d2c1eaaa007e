//! Retries with exponential backoff, time limits of downloads, and cancellation.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time limits and retries of a download.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The time limit for the connection, for the response, and for each read.
    pub patience: Duration,
    /// The minimum rate of a server in bytes per second, measured over each `patience`.
    pub least_rate: u64,
    /// The time limit of an empty download. [`Self::overall_rate`] adds time for each byte.
    pub grace: Duration,
    /// The number of bytes for which the time limit grows by one second. The limit does not include pauses between attempts.
    pub overall_rate: u64,
    /// The number of attempts without progress.
    pub tries: u32,
    /// The pause before the second attempt. It doubles for each further attempt.
    pub backoff: Duration,
    /// The longest pause between two attempts. If a server requests a longer pause, there is no further attempt.
    pub longest_pause: Duration,
}

impl Default for Policy {
    /// Returns a policy with four attempts, 30 s for each read, at least 1 KiB/s, and a time limit of 60 s plus one second for
    /// each 64 KiB.
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(30),
            least_rate: 1 << 10,
            grace: Duration::from_secs(60),
            overall_rate: 64 << 10,
            tries: 4,
            backoff: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
        }
    }
}

/// The number of attempts at a server that refuses the connection. The second attempt is for a server that starts at this moment.
const TRIES_IF_REFUSED: u32 = 2;

/// An error after which a retry may help.
pub trait Retryable: Error + 'static {
    /// Returns the shortest pause before a retry; `None` if a retry cannot help.
    fn retry_after(&self) -> Option<Duration>;

    /// Returns whether the server's host has refused the connection. Then there are fewer attempts.
    fn is_refused_connection(&self) -> bool;
}

/// A further attempt, after a pause.
#[derive(Debug, Clone, Copy)]
pub struct Retry<'a> {
    /// The server to which the request is repeated.
    pub host: &'a str,
    /// The error of the attempt before.
    pub error: &'a (dyn Error + 'static),
    /// The number of the attempt, from 2.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub tries: u32,
    /// The pause before the attempt.
    pub pause: Duration,
}

/// A function that receives each [`Retry`]. Several threads may call it.
#[derive(Clone)]
pub struct RetryObserver(Arc<dyn Fn(Retry<'_>) + Send + Sync>);

impl RetryObserver {
    /// Wraps a function.
    pub fn new(observe: impl Fn(Retry<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observe))
    }
}

impl fmt::Debug for RetryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RetryObserver").finish_non_exhaustive()
    }
}

/// The attempts at one download.
#[derive(Debug, Clone)]
pub struct Attempts {
    policy: Policy,
    /// The maximum number of attempts without progress.
    tries: u32,
    left: u32,
    started: Instant,
    /// The sum of all pauses.
    paused: Duration,
    /// The server, and the function that receives the retries of requests to it.
    observer: Option<(String, RetryObserver)>,
}

impl Attempts {
    /// Starts the time, with all attempts of the policy left.
    pub fn new(policy: &Policy) -> Self {
        let (policy, tries) = (*policy, policy.tries.max(1));
        let (started, paused) = (Instant::now(), Duration::ZERO);
        Self { policy, tries, left: tries, started, paused, observer: None }
    }

    /// Sets the function that receives the retries at the server `host`.
    #[must_use]
    pub fn observed(self, host: &str, observer: Option<&RetryObserver>) -> Self {
        let observer = observer.map(|it| (host.to_owned(), it.clone()));
        Self { observer, ..self }
    }

    /// Limits the number of attempts, for a server with a fallback.
    #[must_use]
    pub fn at_most(self, tries: u32) -> Self {
        let tries = self.tries.min(tries);
        Self { tries, left: tries, ..self }
    }

    /// Makes all attempts available again, after progress.
    pub const fn refill(&mut self) {
        self.left = self.tries;
    }

    /// Returns the deadline for a file of this many bytes.
    pub fn deadline(&self, size: u64) -> Deadline {
        let seconds = Duration::from_secs(size / self.policy.overall_rate.max(1));
        let allowed = self.policy.grace.saturating_add(seconds);
        Deadline { started: self.started, paused: self.paused, allowed }
    }

    /// Returns the pause before the next attempt, or `None` after the last attempt.
    ///
    /// The pauses double from attempt to attempt, up to the longest pause. The pause is at least the server's `Retry-After`; if
    /// that is longer than the longest pause, there is no further attempt. The sum of all pauses is limited too, so that a server
    /// cannot prolong a download with many pauses.
    pub fn pause(&mut self, error: &impl Retryable) -> Option<Duration> {
        let Policy { backoff, longest_pause, .. } = self.policy;
        let asked = error.retry_after()?;
        self.left = self.left.saturating_sub(1);
        let (made, tries) = (self.tries - self.left, self.tries_after(error));
        if made >= tries || asked > longest_pause {
            return None;
        }
        let doubled = 1_u32.checked_shl(made - 1).unwrap_or(u32::MAX);
        let pause = backoff.saturating_mul(doubled).min(longest_pause).max(asked);
        self.paused = self.paused.saturating_add(pause);
        if self.paused > longest_pause.saturating_mul(self.tries) {
            return None;
        }
        if let Some((host, RetryObserver(observe))) = &self.observer {
            observe(Retry { host, error, attempt: made + 1, tries, pause });
        }
        Some(pause)
    }

    /// Returns the maximum number of attempts, of which the last one has failed with `error`.
    fn tries_after(&self, error: &impl Retryable) -> u32 {
        match error.is_refused_connection() {
            true => self.tries.min(TRIES_IF_REFUSED),
            false => self.tries,
        }
    }
}

/// The deadline of a download.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    started: Instant,
    paused: Duration,
    /// The time limit, without the pauses between attempts.
    pub allowed: Duration,
}

impl Deadline {
    /// Returns whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.started.elapsed() > self.allowed.saturating_add(self.paused)
    }
}

/// Calls `attempt` until it succeeds, its error is permanent, or no attempts are left. Cancellation only ends the pause:
/// `attempt` must check `cancel` and return an error.
///
/// # Errors
/// The error of the last attempt.
pub fn retry<T, E: Retryable>(
    mut attempts: Attempts,
    cancel: &Cancel,
    mut attempt: impl FnMut(&mut Attempts) -> Result<T, E>,
) -> Result<T, E> {
    loop {
        match attempt(&mut attempts) {
            Err(error) => match attempts.pause(&error) {
                Some(pause) => cancel.sleep(pause),
                None => return Err(error),
            },
            done => return done,
        }
    }
}

/// A cancellation token, with which one thread cancels the work of others, even while they sleep.
#[derive(Debug, Default)]
pub struct Cancel {
    canceled: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// Cancels the work, and wakes the threads that sleep.
    pub fn cancel(&self) {
        *self.canceled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Returns whether the work is canceled.
    pub fn is_canceled(&self) -> bool {
        *self.canceled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for `time`, or until the work is canceled.
    pub fn sleep(&self, time: Duration) {
        let canceled = self.canceled.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(canceled, time, |canceled| !*canceled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DownloadError;
    use crate::http::HttpError;

    const NEVER: [u64; 0] = [];

    fn attempts() -> Attempts {
        let second = Duration::from_secs(1);
        let longest_pause = Duration::from_secs(5);
        Attempts::new(&Policy { tries: 6, backoff: second, longest_pause, ..Policy::default() })
    }

    fn busy(retry_after: Option<u64>) -> DownloadError {
        DownloadError::Status {
            what: String::new(),
            host: String::new(),
            status: reqwest::StatusCode::TOO_MANY_REQUESTS,
            reason: None,
            transient: true,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn pauses(mut attempts: Attempts, error: &DownloadError) -> Vec<u64> {
        std::iter::from_fn(|| attempts.pause(error)).map(|it| it.as_secs()).collect()
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        assert_eq!(pauses(attempts(), &busy(None)), [1, 2, 4, 5, 5]);
        assert_eq!(pauses(attempts().at_most(2), &busy(None)), [1]);
        assert_eq!(pauses(attempts().at_most(1), &busy(None)), NEVER);
        assert_eq!(pauses(attempts().at_most(0), &busy(None)), NEVER);
    }

    #[test]
    fn each_further_attempt_is_reported_and_the_last_failure_is_not() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let observer = RetryObserver::new(move |retry| {
            let error = retry.error.to_string();
            into.lock().unwrap().push((retry.host.to_owned(), error, retry.attempt, retry.tries));
        });
        let attempts = attempts().at_most(3).observed("a.example", Some(&observer));
        assert_eq!(pauses(attempts, &busy(None)), [1, 2]);
        let retry = |attempt| ("a.example".to_owned(), busy(None).to_string(), attempt, 3);
        assert_eq!(*seen.lock().unwrap(), [retry(2), retry(3)]);
    }

    #[test]
    fn a_refused_connection_is_tried_once_more() {
        let what = String::new();
        let refused =
            DownloadError::Http(HttpError::Refused { what, source: "Connection refused".into() });
        assert_eq!(pauses(attempts(), &refused), [1]);
        assert_eq!(pauses(attempts().at_most(1), &refused), NEVER);
        let mut attempts = attempts();
        attempts.pause(&busy(None)).unwrap();
        attempts.pause(&busy(None)).unwrap();
        assert_eq!(attempts.pause(&refused), None, "the attempts before it count too");
    }

    #[test]
    fn a_server_may_ask_for_more_but_not_for_too_much() {
        assert_eq!(pauses(attempts(), &busy(Some(3))), [3, 3, 4, 5, 5]);
        assert_eq!(pauses(attempts(), &busy(Some(0))), [1, 2, 4, 5, 5]);
        assert_eq!(pauses(attempts(), &busy(Some(6))), NEVER);
    }

    #[test]
    fn a_permanent_error_is_not_retried() {
        let error = DownloadError::TooLarge { what: String::new(), limit: 1 };
        assert_eq!(pauses(attempts(), &error), NEVER);
    }

    #[test]
    fn progress_starts_the_count_again() {
        let mut attempts = attempts();
        for _ in 0..20 {
            assert_eq!(attempts.pause(&busy(None)), Some(Duration::from_secs(1)));
            attempts.refill();
        }
    }

    #[test]
    fn all_pauses_together_are_bounded() {
        let mut attempts = attempts();
        let pauses = std::iter::from_fn(|| {
            attempts.refill();
            attempts.pause(&busy(Some(5)))
        });
        assert_eq!(pauses.take(100).sum::<Duration>(), Duration::from_secs(30));
    }

    #[test]
    fn the_time_of_a_download_grows_with_its_size() {
        let attempts = Attempts::new(&Policy::default());
        let allowed = |size| attempts.deadline(size).allowed.as_secs();
        assert_eq!((allowed(0), allowed(4 << 20)), (60, 124));
        assert_eq!(allowed(16 << 30), 60 + (3 << 16) + (1 << 16), "three days, not half a year");
        assert!(!attempts.deadline(u64::MAX).is_over());
    }

    #[test]
    fn pauses_are_not_part_of_the_time() {
        let policy = Policy { grace: Duration::ZERO, ..Policy::default() };
        let mut attempts = Attempts::new(&policy);
        std::thread::sleep(Duration::from_millis(2));
        assert!(attempts.deadline(0).is_over());
        attempts.pause(&busy(Some(60))).unwrap();
        assert!(!attempts.deadline(0).is_over());
    }

    #[test]
    fn cancellation_ends_a_long_sleep() {
        let cancel = Cancel::default();
        std::thread::scope(|scope| {
            scope.spawn(|| cancel.sleep(Duration::from_secs(3600)));
            cancel.cancel();
        });
        assert!(cancel.is_canceled());
    }
}
