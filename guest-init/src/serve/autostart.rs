//! When the business application's own program is started: once the agent is ready, and again where the plan says so.

use std::time::{Duration, Instant};

use box_contract::wire::WINDOW;
use box_contract::{ComponentPlan, Restart};

/// The pause before the first further start; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause. A program that ran for so long starts over with the first.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// When the program is started.
#[derive(Debug)]
pub(crate) struct Autostart {
    restart: Restart,
    pause: Duration,
    started: Option<Instant>,
    /// When it is to be started next.
    due: Option<Instant>,
    /// The part of the window that the former run has left: what it wrote may still be on its way.
    credit: u32,
}

impl Autostart {
    /// Returns what a plan says; `None` where nothing is started.
    pub(crate) fn of(plan: &ComponentPlan) -> Option<Self> {
        plan.autostart.then(|| Self::new(plan.restart))
    }

    const fn new(restart: Restart) -> Self {
        Self { restart, pause: FIRST_PAUSE, started: None, due: None, credit: WINDOW }
    }

    /// Lets the next run send more.
    pub(super) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(WINDOW);
    }

    /// Returns when it is to be started next.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Plans a start.
    pub(super) const fn plan_start(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Notes that the program has been started; returns what of the window it has.
    pub(super) const fn start(&mut self, now: Instant) -> u32 {
        (self.started, self.due) = (Some(now), None);
        self.credit
    }

    /// Notes that it has ended, with what of the window was left.
    pub(super) fn end(&mut self, status: u8, credit: u32, now: Instant) {
        self.credit = credit;
        if !self.restart.applies(status) {
            return;
        }
        if self.started.is_some_and(|at| now.duration_since(at) >= MAX_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        self.due = Some(now + self.pause);
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_longer_until_the_program_runs_for_a_while() {
        let mut it = Autostart::new(Restart::OnFailure);
        let now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(it.start(now), WINDOW);
            assert_eq!(it.due, None);
            it.end(1, WINDOW, now);
            pauses.push((it.due.unwrap() - now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        it.end(1, 5, now);
        it.grant(2);
        assert_eq!(it.start(now), 7, "the rest is still on its way");
        let later = now + MAX_PAUSE;
        it.end(1, WINDOW, later);
        assert_eq!(it.due, Some(later + FIRST_PAUSE));
    }

    #[test]
    fn the_rule_decides_whether_it_is_started_again() {
        for (restart, after_failure, after_success) in [
            (Restart::Never, false, false),
            (Restart::OnFailure, true, false),
            (Restart::Always, true, true),
        ] {
            for (status, again) in [(1, after_failure), (0, after_success)] {
                let mut it = Autostart::new(restart);
                assert_eq!(it.start(Instant::now()), WINDOW);
                it.end(status, WINDOW, Instant::now());
                assert_eq!(it.due.is_some(), again, "{restart:?} {status}");
            }
        }
    }
}
