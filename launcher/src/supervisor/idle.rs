//! Stops a box that nobody has used for some time (`--idle`).
//!
//! A box is used while a command runs in it, while somebody follows its output, and while a client of a published port or of the
//! agent's socket is connected. What its agent does by itself does not count, nor do its restarts.

use std::future::pending;
use std::time::{Duration, Instant};

use super::{CONTINUE, Flow, Supervisor};
use crate::boxes::StoppedBy;

/// The longest time between two looks at whether the box is used.
const LOOK: Duration = Duration::from_secs(5);

/// How long a box was not used.
#[derive(Debug, Clone)]
pub struct Idle {
    limit: Duration,
    since: Instant,
}

impl Idle {
    /// Creates the limit of a box that is used now.
    pub fn new(limit: Duration) -> Self {
        Self { limit, since: Instant::now() }
    }

    /// Notes that the box is used.
    pub(super) fn used(&mut self) {
        self.since = Instant::now();
    }

    /// Notes whether the box is used now. Returns whether it was not used for too long.
    fn is_over(&mut self, is_used: bool, now: Instant) -> bool {
        if is_used {
            self.since = now;
        }
        now.duration_since(self.since) >= self.limit
    }
}

/// Waits until the time has come to look at whether the box is used. Never returns if it has no such limit.
pub(super) async fn due(idle: Option<&Idle>) {
    match idle {
        Some(idle) => {
            let left = (idle.since + idle.limit).saturating_duration_since(Instant::now());
            tokio::time::sleep(left.min(LOOK)).await;
        }
        None => pending().await,
    }
}

impl Supervisor {
    /// Stops the box if it was not used for too long.
    pub(super) fn check_idle(&mut self) -> Flow {
        let network = self.machine.network.as_ref();
        let is_used = self.programs.has_commands()
            || self.clients.follow_any()
            || self.machine.has_agent_clients()
            || network.is_some_and(|it| it.ports.has_clients());
        let Some(idle) = &mut self.idle else { return CONTINUE };
        if !idle.is_over(is_used, Instant::now()) {
            return CONTINUE;
        }
        (self.idle, self.was_asked) = (None, true);
        if self.kill_at.is_some() {
            return CONTINUE;
        }
        self.entry.note(|record| record.stopped_by = Some(StoppedBy::Idle), Instant::now());
        self.begin_stop(self.terms.grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_begins_when_the_box_was_last_used() {
        let mut idle = Idle::new(Duration::from_secs(10));
        let after = |seconds| idle.since + Duration::from_secs(seconds);
        let times = [9, 10, 19, 20].map(after);
        let [before, used, again, over] = times;
        assert!(!idle.is_over(false, before));
        assert!(!idle.is_over(true, used));
        assert!(!idle.is_over(false, again));
        assert!(idle.is_over(false, over));
    }
}
