//! Watches the health of the agent, and stops a box whose agent fails several checks in a row.

use std::future::pending;
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::{Exited, HostMessage, Output, ProgramId};

use super::{CONTINUE, Flow, Supervisor};
use crate::machine::health;
use crate::streams::output::Route;

/// The client for which checks run. The numbers of clients that connect begin with 1.
pub(super) const WATCHER: u64 = 0;
/// How many checks in a row have to fail.
const FAILURES: u32 = 3;
/// How long a check may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How much longer the guest may take to report the end of a check.
const MARGIN: Duration = Duration::from_secs(5);

/// The checks of a box's agent.
#[derive(Debug)]
pub(super) struct Watch {
    /// The time between the end of a check and the start of the next one.
    interval: Duration,
    /// When the next check starts or, while one runs, when it counts as failed.
    due: Instant,
    /// The output of the check that runs.
    running: Option<Route>,
    /// How many checks in a row have failed.
    failures: u32,
}

impl Watch {
    pub(super) fn new(interval: Duration) -> Self {
        Self { interval, due: Instant::now() + interval, running: None, failures: 0 }
    }

    /// Counts the result of a check: `None`, or why it failed. Returns why the agent is unhealthy, if it is now.
    fn count(&mut self, reason: Option<String>) -> Option<String> {
        self.due = Instant::now() + self.interval;
        self.failures = if reason.is_some() { self.failures + 1 } else { 0 };
        reason.filter(|_| self.failures >= FAILURES)
    }
}

/// Waits until the watch has something to do. Never returns if there is none.
pub(super) async fn due(watch: Option<&Watch>) {
    match watch {
        Some(watch) => tokio::time::sleep_until(watch.due.into()).await,
        None => pending().await,
    }
}

impl Supervisor {
    /// Starts the next check, or counts the one that runs as failed.
    pub(super) fn check_health(&mut self) -> Flow {
        let Some(watch) = &mut self.watch else { return CONTINUE };
        if self.kill_at.is_some() {
            self.watch = None;
            return CONTINUE;
        }
        if watch.running.is_some() {
            let seconds = (LIMIT + MARGIN).as_secs();
            let verdict = watch.count(Some(format!("no answer for {seconds} s")));
            // The guest runs the same check on, so the next failure takes as long.
            watch.due = Instant::now() + LIMIT + MARGIN;
            return self.judge(verdict);
        }
        let component = ComponentName::Agent;
        let Ok(id) = self.programs.add(WATCHER, (component, false)) else {
            // Clients run as many commands as there may be, so the guest is alive.
            watch.due = Instant::now() + watch.interval;
            return CONTINUE;
        };
        (watch.running, watch.due) = (Some(health::answer()), Instant::now() + LIMIT + MARGIN);
        let mut check = health::check(component, LIMIT);
        check.id = id;
        self.machine.tell(&HostMessage::Exec(check));
        CONTINUE
    }

    /// Adds output of the check that runs.
    pub(super) fn hear_check(&mut self, output: &Output) {
        if let Some(answer) = self.watch.as_mut().and_then(|it| it.running.as_mut()) {
            // The route captures in memory.
            drop(answer.write(output.stream, &output.data));
        }
    }

    /// Handles the end of a check.
    pub(super) fn check_ended(&mut self, exit: Exited) -> Flow {
        let Some(watch) = &mut self.watch else { return CONTINUE };
        let Some(answer) = watch.running.take() else { return CONTINUE };
        let verdict = watch.count(health::reason(exit, &answer, LIMIT));
        self.judge(verdict)
    }

    /// Stops the box if its agent is unhealthy.
    fn judge(&mut self, unhealthy: Option<String>) -> Flow {
        let Some(reason) = unhealthy.filter(|_| self.kill_at.is_none()) else { return CONTINUE };
        (self.watch, self.unhealthy) = (None, Some(reason));
        self.begin_stop(self.terms.grace)
    }

    /// Returns whether a program is a check of the watch.
    pub(super) fn is_check(&self, id: ProgramId) -> bool {
        self.programs.client(id) == Some(WATCHER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_unhealthy_after_three_failures_in_a_row() {
        let mut watch = Watch::new(Duration::from_secs(10));
        let results = [Some("a"), Some("b"), None, Some("c"), Some("d"), Some("e")];
        let counted = results.map(|it| watch.count(it.map(str::to_owned)));
        assert_eq!(counted, [None, None, None, None, None, Some("e".to_owned())]);
    }
}
