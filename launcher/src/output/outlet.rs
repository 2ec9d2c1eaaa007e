//! Standard output or standard error of this program, whose reader may be slow, or stop reading.
//!
//! ```text
//! Outlet::write ──▶ a pipe of our own ──▶ the pump, a thread ──▶ the file
//! ```
//!
//! A pager that is paused takes nothing for as long as it likes, and a blocked `write` cannot be
//! called off. So the file is written by a thread of its own, which may block; the run waits for
//! the pipe between them, and for signals beside it. The file itself is not made non-blocking: it is
//! shared with whoever started this program.

use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::signals::StopSignals;

/// How long a reader may take nothing once a signal has asked for the end.
const LINGER: Duration = Duration::from_secs(1);
/// How much the pump moves at a time, in bytes; what a pipe holds.
const CHUNK: usize = 64 << 10;

/// A file that is written without ever keeping the run from a signal. Clones share it.
///
/// A write fails with [`ErrorKind::WouldBlock`] where a signal waits and the reader takes nothing;
/// what it was about is kept, and written before what comes next. After the first signal a reader is
/// waited for only as long as it goes on taking something, and then written to no more.
#[derive(Clone)]
pub struct Outlet(Rc<RefCell<Inner>>);

struct Inner {
    state: State,
    signals: Rc<StopSignals>,
    linger: Duration,
    /// What the pipe has not taken yet.
    pending: Vec<u8>,
}

enum State {
    /// Nothing was written yet, so there is no thread.
    Idle(File),
    Open(Pump),
    /// Nobody reads any more; what is written is dropped.
    Closed,
}

/// The thread and our ends of its pipes.
struct Pump {
    queue: PipeWriter,
    /// At its end when the thread has ended.
    done: PipeReader,
    thread: JoinHandle<io::Result<()>>,
}

impl Outlet {
    /// Wraps a file; `signals` are those that end a wait for its reader.
    pub fn new(file: impl Into<OwnedFd>, signals: &Rc<StopSignals>) -> Self {
        Self::with_linger(file, signals, LINGER)
    }

    fn with_linger(file: impl Into<OwnedFd>, signals: &Rc<StopSignals>, linger: Duration) -> Self {
        let (state, signals) = (State::Idle(File::from(file.into())), Rc::clone(signals));
        Self(Rc::new(RefCell::new(Inner { state, signals, linger, pending: Vec::new() })))
    }

    /// Waits until everything is written, and writes no more.
    ///
    /// # Errors
    /// The file's, unless a write has returned it already; [`ErrorKind::WouldBlock`] where a signal
    /// came first.
    pub fn finish(&self) -> io::Result<()> {
        self.0.borrow_mut().finish()
    }
}

impl Write for Outlet {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        if !matches!(inner.state, State::Closed) {
            inner.pending.extend_from_slice(data);
            inner.push()?;
        }
        Ok(data.len())
    }

    /// Does nothing: what was written is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outlet")
    }
}

impl Inner {
    /// Puts what is pending into the pipe.
    fn push(&mut self) -> io::Result<()> {
        self.open()?;
        while let (State::Open(pump), false) = (&mut self.state, self.pending.is_empty()) {
            match pump.queue.write(&self.pending) {
                Ok(length) => drop(self.pending.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let room = PollFd::new(pump.queue.as_fd(), PollFlags::POLLOUT);
                    match wait(room, &self.signals, self.linger)? {
                        Waited::Ready => {}
                        Waited::Signal => return Err(ErrorKind::WouldBlock.into()),
                        Waited::Enough => self.close(),
                    }
                }
                // The pump has given up, and knows why.
                Err(_) => return self.join(),
            }
        }
        Ok(())
    }

    /// Starts the pump, the first time.
    fn open(&mut self) -> io::Result<()> {
        if matches!(self.state, State::Idle(_))
            && let State::Idle(file) = std::mem::replace(&mut self.state, State::Closed)
        {
            self.state = State::Open(Pump::start(file)?);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.push()?;
        }
        let State::Open(Pump { queue, done, thread }) =
            std::mem::replace(&mut self.state, State::Closed)
        else {
            return Ok(());
        };
        // The pump ends once it has written what is in the pipe.
        drop(queue);
        let end = PollFd::new(done.as_fd(), PollFlags::POLLIN);
        match wait(end, &self.signals, self.linger)? {
            Waited::Ready => joined(thread),
            Waited::Signal => Err(ErrorKind::WouldBlock.into()),
            Waited::Enough => Ok(()),
        }
    }

    /// Returns why the pump has ended.
    fn join(&mut self) -> io::Result<()> {
        self.pending.clear();
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(pump) => joined(pump.thread),
            State::Idle(_) | State::Closed => Ok(()),
        }
    }

    /// Leaves the pump to itself: it ends with this program at the latest.
    fn close(&mut self) {
        self.pending.clear();
        self.state = State::Closed;
    }
}

impl Pump {
    fn start(mut file: File) -> io::Result<Self> {
        let (mut reader, queue) = io::pipe()?;
        let (done, ending) = io::pipe()?;
        fcntl(&queue, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let body = move || {
            let result = pump(&mut reader, &mut file);
            // Only now, and also where the pump panics, does `done` come to its end.
            drop(ending);
            result
        };
        let thread = thread::Builder::new().name("output".to_owned()).spawn(body)?;
        Ok(Self { queue, done, thread })
    }
}

fn pump(reader: &mut PipeReader, file: &mut File) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => file.write_all(&chunk[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn joined(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Why a wait ended.
enum Waited {
    Ready,
    /// The first signal has come.
    Signal,
    /// A signal came before, and another came or the reader took nothing for too long.
    Enough,
}

fn wait(on: PollFd<'_>, signals: &StopSignals, linger: Duration) -> io::Result<Waited> {
    let linger = PollTimeout::try_from(linger).unwrap_or(PollTimeout::MAX);
    let hurried = signals.any_taken();
    let mut fds = [on, PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    let timeout = if hurried { linger } else { PollTimeout::NONE };
    while let Err(error) = poll(&mut fds, timeout) {
        if error != nix::Error::EINTR {
            return Err(error.into());
        }
    }
    let [ready, signal] = fds.map(|fd| fd.any().unwrap_or(true));
    Ok(match (ready, signal && !hurried) {
        (true, _) => Waited::Ready,
        (false, true) => Waited::Signal,
        (false, false) => Waited::Enough,
    })
}

#[cfg(test)]
mod tests;
