//! Cancellation of a group of workers.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A cancellation token: one worker cancels the others, also those that sleep.
#[derive(Debug, Default)]
pub struct Cancel {
    canceled: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// Cancels all workers.
    pub fn cancel(&self) {
        *self.canceled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Returns whether the workers are canceled.
    pub fn is_canceled(&self) -> bool {
        *self.canceled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps for a time, or until the workers are canceled.
    pub fn sleep(&self, time: Duration) {
        let canceled = self.canceled.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(canceled, time, |canceled| !*canceled));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
