//! The start times of the business application's main program: once the agent is ready, and again as the plan's restart
//! rule requires.

use std::time::{Duration, Instant};

use box_contract::wire::WINDOW;
use box_contract::{ComponentPlan, Restart};

/// The pause before the first restart. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause. After the program has run for at least this long, the next pause is [`FIRST_PAUSE`] again.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The state of the program's starts and restarts.
#[derive(Debug)]
pub(crate) struct Autostart {
    restart: Restart,
    pause: Duration,
    started: Option<Instant>,
    /// The time of the next start.
    due: Option<Instant>,
    /// The rest of the program's output window ([`WINDOW`]). The next run starts with it, because the last output of the previous
    /// run can still be in transit.
    credit: u32,
}

impl Autostart {
    /// Returns the state for a plan, or `None` if the plan has no autostart.
    pub(crate) fn of(plan: &ComponentPlan) -> Option<Self> {
        plan.autostart.then(|| Self::new(plan.restart))
    }

    const fn new(restart: Restart) -> Self {
        Self { restart, pause: FIRST_PAUSE, started: None, due: None, credit: WINDOW }
    }

    /// Adds `bytes` to the output window of the next run.
    pub(super) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(WINDOW);
    }

    /// Returns the time of the next start.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Schedules a start.
    pub(super) const fn plan_start(&mut self, due: Instant) {
        self.due = Some(due);
    }

    /// Records the start of the program. Returns the rest of its output window.
    pub(super) const fn start(&mut self, now: Instant) -> u32 {
        (self.started, self.due) = (Some(now), None);
        self.credit
    }

    /// Records the end of the program and the rest of its output window. Schedules a restart if the restart rule
    /// requires one.
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
