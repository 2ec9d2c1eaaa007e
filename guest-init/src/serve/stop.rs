//! Orderly shutdown: SIGTERM or the image's stop signal, a grace period, SIGKILL, and the last reports.

use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::ProgramId;
use nix::sys::signal::Signal;

use super::Server;
use crate::component::Component;
use crate::console;
use crate::error::InitError;

/// How often the cgroups are checked for processes while the box stops.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// The time limit for the last reports after SIGKILL.
const REPORTS: Duration = Duration::from_secs(2);

/// A stop in progress.
#[derive(Debug)]
pub(super) struct Stop {
    deadline: Instant,
    /// Whether SIGKILL was sent.
    killed: bool,
}

impl Server<'_> {
    /// Asks every workload to end within `grace`. A second stop can only shorten the first one's grace period.
    pub(super) fn begin_stop(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace;
        if let Some(stop) = &mut self.stop {
            stop.deadline = stop.deadline.min(deadline);
            return;
        }
        self.stop = Some(Stop { deadline, killed: false });
        self.deny_stopped(None);
        self.abandon_verification();
        if !grace.is_zero() {
            for component in &self.machine.components {
                match component.stop_signal.filter(|_| self.programs.contains_key(&own(component)))
                {
                    Some(signal) => self.signal_each(component, signal),
                    None => component.signal_all(Signal::SIGTERM),
                }
            }
            self.hang_up_terminals();
        }
    }

    /// Asks the programs of a component to end: the main program with its stop signal, commands with SIGTERM. Children
    /// of the main program get no signal, because stopping them is the main program's task. In a program with a
    /// different stop signal, SIGTERM often does not mean a stop.
    fn signal_each(&self, component: &Component, signal: u8) {
        let own = own(component);
        let ids = self.programs.iter().filter(|(_, it)| it.component == component.name);
        for (id, _) in ids {
            let signal = if *id == own { signal.into() } else { Signal::SIGTERM as i32 };
            if let Err(error) = self.signal(*id, signal) {
                console::say(&error.to_string());
            }
        }
    }

    /// Tells commands that their terminals are closed. An idle shell ignores SIGTERM, and ends with SIGHUP.
    fn hang_up_terminals(&self) {
        let ids = self.programs.iter().filter(|(id, it)| id.is_command() && it.has_terminal());
        for (id, _) in ids {
            if let Err(error) = self.signal(*id, Signal::SIGHUP as i32) {
                console::say(&error.to_string());
            }
        }
    }

    /// Returns whether the VM can be powered off: all programs have ended and are reported, or the deadline after
    /// SIGKILL has passed.
    pub(super) fn is_stopped(&mut self) -> Result<bool, InitError> {
        let Some(stop) = &mut self.stop else { return Ok(false) };
        let components = &self.machine.components;
        if self.programs.is_empty() && !components.iter().any(Component::is_populated) {
            return Ok(true);
        }
        if Instant::now() < stop.deadline {
            return Ok(false);
        }
        if stop.killed {
            return Ok(true);
        }
        *stop = Stop { deadline: Instant::now() + REPORTS, killed: true };
        components.iter().try_for_each(|it| it.leaf.kill())?;
        Ok(false)
    }
}

/// Returns the id of a component's main program.
const fn own(component: &Component) -> ProgramId {
    match component.name {
        ComponentName::Agent => ProgramId::AGENT,
        ComponentName::Business => ProgramId::BUSINESS,
    }
}
