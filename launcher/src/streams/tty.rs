//! The terminal of this program while a command in the box uses it.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use box_contract::wire::TerminalSize;
use nix::sys::signalfd::SignalFd;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use vmm::signals;

/// The size of a VT100, for a terminal that does not report one.
const USUAL: TerminalSize = TerminalSize { rows: 24, columns: 80 };

/// A terminal in raw mode: the command receives every key, even Ctrl-C. Dropping this value restores the earlier mode.
#[derive(Debug)]
pub struct Tty {
    file: File,
    before: Termios,
    /// Readable when the terminal's size has changed.
    resized: SignalFd,
}

impl Tty {
    /// Puts a terminal into raw mode; returns `None` if the file is not a terminal.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn take(file: impl Into<OwnedFd>) -> io::Result<Option<Self>> {
        let file = File::from(file.into());
        if !file.is_terminal() {
            return Ok(None);
        }
        let (before, resized) = (tcgetattr(&file)?, signals::resizes()?);
        let tty = Self { file, before, resized };
        let mut raw = tty.before.clone();
        raw.make_raw();
        tcsetattr(&tty.file, OptionalActions::Drain, &raw)?;
        Ok(Some(tty))
    }

    /// Returns the size of the terminal: 24 lines of 80 characters if it is unknown.
    pub fn size(&self) -> TerminalSize {
        let size = tcgetwinsize(&self.file).ok().filter(|it| it.ws_row > 0 && it.ws_col > 0);
        size.map_or(USUAL, |it| TerminalSize { rows: it.ws_row, columns: it.ws_col })
    }

    /// Discards the pending signals about changes of the size.
    pub(crate) fn clear_resized(&self) {
        while let Ok(Some(_)) = self.resized.read_signal() {}
    }
}

/// The descriptor becomes readable when the size has changed.
impl AsFd for Tty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.resized.as_fd()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        // If the terminal is gone, there is no mode to restore.
        let _ = tcsetattr(&self.file, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_is_left_alone() {
        let (reader, _writer) = io::pipe().unwrap();
        assert!(Tty::take(reader).unwrap().is_none());
    }
}
