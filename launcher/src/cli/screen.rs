//! Standard output and standard error while a box runs and signals wait to be read.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::rc::Rc;

use boxlaunch::LaunchError;
use boxlaunch::output::Outlet;
use boxlaunch::signals::StopSignals;

use super::error::{CommandError, FAILED, signal_code};
use super::printed;

/// Where a run writes to. Nothing of it keeps the run from a signal.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) stdout: Outlet,
    pub(crate) stderr: Outlet,
    signals: Rc<StopSignals>,
}

impl Screen {
    pub(crate) fn new(signals: &Rc<StopSignals>) -> Result<Self, CommandError> {
        let outlet = |file: &dyn AsFd| {
            let own = file.as_fd().try_clone_to_owned();
            let action = "use the standard output and error";
            own.map(|own| Outlet::new(own, signals))
                .map_err(|source| LaunchError::System { action, source })
        };
        let (stdout, stderr) = (outlet(&io::stdout())?, outlet(&io::stderr())?);
        Ok(Self { stdout, stderr, signals: Rc::clone(signals) })
    }

    /// Tells the user something that is not the result. Nobody is left to tell where that fails, and
    /// a signal that interrupts it waits for the run to read it.
    pub(crate) fn notice(&self, text: &str) {
        drop(self.stderr.clone().write_all(text.as_bytes()));
    }

    /// Prints a result.
    pub(crate) fn print(&self, text: &str) -> Result<(), CommandError> {
        match self.stdout.clone().write_all(text.as_bytes()) {
            // It is still on its way, as far as the reader takes it; `close` sees to that.
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            result => printed(result),
        }
    }

    /// Prints an error, and returns its exit code.
    pub(crate) fn report(&self, error: &CommandError) -> u8 {
        self.notice(&error.text());
        error.code()
    }

    /// Waits until everything is written; returns the exit code, which is `code` unless that failed.
    pub(crate) fn close(&self, code: u8) -> u8 {
        let code = match self.stdout.finish() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return self.interrupted(),
            result => printed(result).map_or_else(|error| self.report(&error), |()| code),
        };
        match self.stderr.finish() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.interrupted(),
            Err(error) if error.kind() != ErrorKind::BrokenPipe && code == 0 => FAILED,
            _ => code,
        }
    }

    /// Returns the exit code of a run whose reader took nothing until a signal came.
    fn interrupted(&self) -> u8 {
        self.signals.next().ok().flatten().map_or(FAILED, signal_code)
    }
}
