//! Standard output and standard error while a box runs and signals are blocked.

use std::cell::{Cell, RefCell};
use std::env;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use boxlaunch::streams::StreamError;
use boxlaunch::streams::output::{Outlet, Route, Sink};
use cli_common::color::{CLEAR_LINE, is_dumb};
use host_fs::OsError;
use nix::sys::stat::fstat;
use safe_text::Harmless;
use vmm::signals::StopSignals;

use super::error::{Failure, signal_code};
use super::terminal::printed;

/// The standard output and standard error of a run. Writing does not delay the handling of a signal. On a terminal, programs in
/// the box cannot move the cursor or hide boxlaunch's messages, unless `--raw` is given: see [`Harmless`].
///
/// Writes are asynchronous, so only [`Screen::close`] reports whether they succeeded.
#[derive(Debug)]
pub(crate) struct Screen {
    stdout: Stream,
    stderr: Stream,
    status: Rc<Status>,
    signals: Rc<StopSignals>,
    /// Whether the output of programs reaches a terminal unchanged.
    is_raw: bool,
}

/// Standard output or standard error.
#[derive(Debug)]
struct Stream {
    outlet: Outlet,
    is_terminal: bool,
    /// Whether programs in the box have written to this stream.
    passed: Rc<Cell<bool>>,
    /// The filter for the bytes that programs in the box write. Used if this stream is a terminal.
    filter: Rc<RefCell<Harmless>>,
    /// The error of a write by boxlaunch itself.
    failed: RefCell<Option<io::Error>>,
}

/// The line on a terminal that shows the current step of the run. All other output replaces it.
#[derive(Debug)]
struct Status {
    stderr: Outlet,
    /// Whether the line can be shown. Standard error must be a terminal that can clear a line. A program in the box must not have
    /// written any output yet, because it may have left a line unfinished.
    is_possible: Cell<bool>,
    is_shown: Cell<bool>,
    /// Whether a program has left a line on a terminal unfinished.
    is_in_line: Cell<bool>,
}

impl Status {
    /// If the line is shown, erases it by a write to `outlet`.
    fn clear(&self, outlet: &Outlet) {
        if self.is_shown.take() {
            // An error is ignored here, because writing the next text reports it.
            drop(outlet.clone().write_all(CLEAR_LINE.as_bytes()));
        }
    }
}

/// The [`Sink`] that passes the output of a program in the box on to standard output or standard error.
#[derive(Debug)]
struct Passed {
    outlet: Outlet,
    any: Rc<Cell<bool>>,
    status: Rc<Status>,
    is_terminal: bool,
    /// `None` if the bytes pass unchanged.
    filter: Option<Rc<RefCell<Harmless>>>,
}

impl Screen {
    /// Returns a screen with the standard output and standard error of this process. With `is_raw`, the bytes of programs reach a
    /// terminal unchanged.
    pub(crate) fn new(signals: &Rc<StopSignals>, is_raw: bool) -> Result<Self, Failure> {
        let own = |file: &dyn AsFd| {
            let action = "use the standard output and error";
            let own = file.as_fd().try_clone_to_owned();
            own.map_err(|source| OsError::System { action, source })
        };
        let files = [own(&io::stdout())?, own(&io::stderr())?];
        let screen = Self { is_raw, ..Self::over(files, signals) };
        screen.status.is_possible.update(|it| it && !is_dumb(env::var_os("TERM")));
        Ok(screen)
    }

    fn over(files: [OwnedFd; 2], signals: &Rc<StopSignals>) -> Self {
        let is_one = is_one_terminal(&files);
        let [mut stdout, stderr] = files.map(|file| Stream {
            is_terminal: file.is_terminal(),
            outlet: Outlet::new(file, signals),
            passed: Rc::default(),
            filter: Rc::default(),
            failed: RefCell::default(),
        });
        if is_one {
            // One outlet for both streams keeps the texts in the order of their writes.
            stdout.outlet = stderr.outlet.clone();
        }
        let status = Rc::new(Status {
            stderr: stderr.outlet.clone(),
            is_possible: Cell::new(stderr.is_terminal),
            is_shown: Cell::default(),
            is_in_line: Cell::default(),
        });
        Self { stdout, stderr, status, signals: Rc::clone(signals), is_raw: false }
    }

    /// Shows `text` as the status line until the next output. A no-op if the status line cannot be shown.
    pub(crate) fn show_status(&self, text: &str) {
        if self.status.is_possible.get() {
            self.stderr.write(&format!("{CLEAR_LINE}{text}"));
            self.status.is_shown.set(true);
        }
    }

    /// Erases the status line.
    pub(crate) fn clear_status(&self) {
        self.status.clear(&self.stderr.outlet);
    }

    /// Returns the route that passes the output of a program in the box on to both streams.
    pub(crate) fn route(&self) -> Route {
        Route::Pass { stdout: self.program_stdout(), stderr: self.program_stderr() }
    }

    /// Returns the sink for standard output of programs in the box.
    pub(crate) fn program_stdout(&self) -> Box<dyn Sink> {
        self.program(&self.stdout)
    }

    /// Returns the sink for standard error of programs in the box.
    pub(crate) fn program_stderr(&self) -> Box<dyn Sink> {
        self.program(&self.stderr)
    }

    fn program(&self, stream: &Stream) -> Box<dyn Sink> {
        Box::new(Passed {
            outlet: stream.outlet.clone(),
            any: Rc::clone(&stream.passed),
            status: Rc::clone(&self.status),
            is_terminal: stream.is_terminal,
            filter: (stream.is_terminal && !self.is_raw).then(|| Rc::clone(&stream.filter)),
        })
    }

    /// Resets the colours that a program has left on a terminal, and ends its unfinished line.
    fn end_line(&self) {
        for stream in [&self.stdout, &self.stderr].into_iter().filter(|it| it.is_terminal) {
            let colours = stream.filter.borrow_mut().end_colours();
            let line = if self.status.is_in_line.take() { "\n" } else { "" };
            stream.write(&format!("{colours}{line}"));
        }
    }

    /// Prints a notice to standard error.
    pub(crate) fn notice(&self, text: &str) {
        self.clear_status();
        self.end_line();
        self.stderr.write(text);
    }

    /// Prints a result to standard output.
    pub(crate) fn print(&self, text: &str) {
        self.clear_status();
        self.end_line();
        self.stdout.write(text);
    }

    /// Prints an error, and returns its exit code.
    pub(crate) fn report(&self, error: &Failure, as_json: bool) -> u8 {
        if as_json {
            self.print(&error.json());
        } else {
            self.notice(&error.text());
        }
        error.exit
    }

    /// Waits until all output is written, and returns the exit code. A signal during the wait replaces `code` by the signal's
    /// exit code. A failed write replaces a `code` of 0 by the error's.
    pub(crate) fn close(&self, mut code: u8) -> u8 {
        for stream in [&self.stdout, &self.stderr] {
            let mut finished = stream.finish();
            if finished.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
                code = self.interrupted();
                // After the signal, `finish` waits only while the reader makes progress.
                finished = stream.finish();
            }
            if let Err(error) = stream.judged(finished) {
                let failed = self.report(&error, false);
                code = if code == 0 { failed } else { code };
            }
        }
        code
    }

    /// Reads the signal that arrived during the wait for the reader, and returns its exit code.
    fn interrupted(&self) -> u8 {
        self.signals.next().ok().flatten().map_or(box_contract::exit::FAILED, signal_code)
    }
}

impl Stream {
    fn write(&self, text: &str) {
        if text.is_empty() {
            return;
        }
        // `WouldBlock` is no failure: the outlet keeps the text until the reader reads it.
        if let Err(error) = self.outlet.clone().write_all(text.as_bytes())
            && error.kind() != ErrorKind::WouldBlock
        {
            self.failed.replace(Some(error));
        }
    }

    fn finish(&self) -> io::Result<()> {
        self.outlet.finish()?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Converts the result of [`Self::finish`]. If a program in the box has written to the stream, a closed pipe is an error,
    /// however little output was lost. If only boxlaunch has written to it, a closed pipe is no error: see [`printed`].
    fn judged(&self, finished: io::Result<()>) -> Result<(), Failure> {
        if self.passed.get() {
            return finished.map_err(|error| StreamError::Output(error).into());
        }
        printed(finished)
    }
}

impl Passed {
    /// Writes filtered text to a terminal.
    fn write_shown(&mut self, text: &str) -> io::Result<()> {
        if let Some(last) = text.chars().next_back() {
            self.status.is_in_line.set(last != '\n');
        }
        self.outlet.write_all(text.as_bytes())
    }
}

impl Write for Passed {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if !data.is_empty() {
            self.any.set(true);
            self.status.is_possible.set(false);
            self.status.clear(if self.is_terminal { &self.outlet } else { &self.status.stderr });
        }
        let Some(filter) = &self.filter else { return self.outlet.write(data) };
        let text = filter.borrow_mut().push(data);
        self.write_shown(&text).map(|()| data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.outlet.flush()
    }
}

impl Drop for Passed {
    /// Writes the incomplete control sequence that the filter has kept, and resets the program's colours.
    fn drop(&mut self) {
        let Some(filter) = &self.filter else { return };
        let text = filter.borrow_mut().finish();
        // An error is ignored here, because finishing the outlet reports it.
        drop(self.write_shown(&text));
    }
}

/// Returns whether two files are the same terminal.
fn is_one_terminal(files: &[OwnedFd; 2]) -> bool {
    let device = |file: &OwnedFd| Some(fstat(file).ok()?.st_rdev).filter(|_| file.is_terminal());
    let [stdout, stderr] = files;
    device(stdout).is_some_and(|it| device(stderr) == Some(it))
}

#[cfg(test)]
mod tests;
