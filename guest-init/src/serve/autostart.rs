//! The business application's own program: started once the agent is ready, and again where the plan says so.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use box_image::wire::BUSINESS_ID;
use box_image::{ComponentName, ComponentPlan, Restart};

use super::Server;
use super::program::Program;
use crate::component::protocol::{ProgramId, Request};
use crate::error::{InitError, Step as _};

/// The program on the wire.
pub(super) const BUSINESS: ProgramId = 255;
const _: () = assert!(BUSINESS as u32 == BUSINESS_ID);

/// The pause before the first further start; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause. A program that ran for so long starts over with the first.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// When the program is started.
#[derive(Debug)]
pub(crate) struct Autostart {
    restart: Restart,
    pause: Duration,
    started: Option<Instant>,
    /// When it is to be started next.
    due: Option<Instant>,
}

impl Autostart {
    /// Returns what a plan says; `None` where nothing is started.
    pub(crate) fn of(plan: &ComponentPlan) -> Option<Self> {
        let (restart, pause) = (plan.restart, FIRST_PAUSE);
        plan.autostart.then_some(Self { restart, pause, started: None, due: None })
    }

    /// Notes that the program has been started.
    fn start(&mut self, now: Instant) {
        (self.started, self.due) = (Some(now), None);
    }

    /// Notes that it has ended.
    fn end(&mut self, status: u8, now: Instant) {
        if !self.restart.applies(status) {
            return;
        }
        if self.started.is_some_and(|at| now.duration_since(at) >= LONGEST_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        self.due = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

impl Server<'_> {
    /// Plans the first start, now that the agent is ready.
    pub(super) fn begin_autostart(&mut self) {
        if let Some(autostart) = &mut self.machine.autostart {
            autostart.due = Some(Instant::now());
        }
    }

    /// Returns when the program is to be started.
    pub(super) fn start_due(&self) -> Option<Instant> {
        self.machine.autostart.as_ref()?.due.filter(|_| self.stop.is_none())
    }

    /// Starts the program where it is time to.
    pub(super) fn autostart(&mut self) -> Result<(), InitError> {
        let now = Instant::now();
        if self.start_due().is_none_or(|due| due > now) {
            return Ok(());
        }
        self.machine.autostart.iter_mut().for_each(|it| it.start(now));
        let name = ComponentName::Business;
        let Some(target) = self.target(name) else { return Ok(()) };
        let made = Program::with_pipes(name, false);
        let (program, streams) = made.step("make the business application's pipes")?;
        let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
        let sent = target.link.send(&Request::Start { id: BUSINESS }, &fds);
        if Self::is_heard_by_holder(sent).step("start the business application")? {
            self.programs.insert(BUSINESS, program);
        }
        Ok(())
    }

    /// Plans the next start, now that the program has ended.
    pub(super) fn autostarted_has_ended(&mut self, status: u8) {
        self.machine.autostart.iter_mut().for_each(|it| it.end(status, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn autostart(restart: Restart) -> Autostart {
        Autostart { restart, pause: FIRST_PAUSE, started: None, due: None }
    }

    #[test]
    fn each_pause_is_longer_until_the_program_runs_for_a_while() {
        let mut it = autostart(Restart::OnFailure);
        let now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            it.start(now);
            assert_eq!(it.due, None);
            it.end(1, now);
            pauses.push((it.due.unwrap() - now).as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        it.start(now);
        let later = now + LONGEST_PAUSE;
        it.end(1, later);
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
                let mut it = autostart(restart);
                it.start(Instant::now());
                it.end(status, Instant::now());
                assert_eq!(it.due.is_some(), again, "{restart:?} {status}");
            }
        }
    }
}
