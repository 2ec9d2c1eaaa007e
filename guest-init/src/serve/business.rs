//! Starts of the business application's main program.

use std::os::fd::AsFd as _;
use std::time::Instant;

use box_contract::ComponentName;
use box_contract::wire::{GuestEvent, GuestEventKind, ProgramId, WINDOW};

use super::Server;
use super::program::Program;
use crate::component::protocol::Request;
use crate::component::spawn::CANNOT_START;
use crate::error::{InitError, Step as _};

impl Server<'_> {
    /// Schedules the first start for now. Called when the agent has become ready.
    pub(super) fn begin_autostart(&mut self) {
        if let Some(autostart) = &mut self.machine.autostart {
            autostart.plan_start(Instant::now());
        }
    }

    /// Returns the time of the next start. `None` if no start is scheduled, or if the box is being stopped.
    pub(super) fn start_due(&self) -> Option<Instant> {
        self.machine.autostart.as_ref()?.due().filter(|_| self.stop.is_none())
    }

    /// Starts the program if its start is due. If it cannot be started, only the program fails, not the box.
    pub(super) fn start_autostarted(&mut self) {
        let now = Instant::now();
        if self.start_due().is_none_or(|due| due > now) {
            return;
        }
        let credit = self.machine.autostart.as_mut().map_or(WINDOW, |it| it.start(now));
        match self.try_autostart(credit) {
            Ok(Some(program)) => {
                self.programs.insert(ProgramId::BUSINESS, program);
                self.log(GuestEvent::new(ComponentName::Business, GuestEventKind::Start));
            }
            Ok(None) => {}
            Err(error) => {
                self.refuse(ProgramId::BUSINESS, &error.to_string());
                self.autostarted_has_ended(CANNOT_START, credit);
            }
        }
    }

    fn try_autostart(&self, credit: u32) -> Result<Option<Program>, InitError> {
        let name = ComponentName::Business;
        let Some(target) = self.target(name) else { return Ok(None) };
        let made = Program::with_pipes(name, false);
        let (program, streams) = made.step("make the business application's pipes")?;
        let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
        let sent = target.link.send(&Request::Start { id: ProgramId::BUSINESS }, &fds);
        let has_caller = Self::has_reached_holder(sent).step("start the business application")?;
        Ok(has_caller.then(|| program.with_credit(credit)))
    }

    /// Schedules the next start after the program has ended. `credit` is the rest of its output window.
    pub(super) fn autostarted_has_ended(&mut self, status: u8, credit: u32) {
        if let Some(autostart) = &mut self.machine.autostart {
            autostart.end(status, credit, Instant::now());
        }
    }
}
