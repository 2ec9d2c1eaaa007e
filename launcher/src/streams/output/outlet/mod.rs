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
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use vmm::signals::StopSignals;

/// How long a reader may take nothing once a signal has asked for the end.
const LINGER: Duration = Duration::from_secs(1);
/// How much the pump moves at a time, in bytes; what a pipe holds.
const CHUNK: usize = 64 << 10;
/// How much of that is written at a time, in bytes, so that a slow reader is seen to take
/// something; a page, in which pipes count their room (`pipe(7)`).
const PIECE: usize = 4096;

/// A file that is written without ever keeping the run from a signal. Clones share it.
///
/// A write fails with [`ErrorKind::WouldBlock`] where a signal waits and the reader takes nothing;
/// what it was about is kept, and written before what comes next. After the first signal a reader is
/// waited for only as long as it keeps reading, and then written to no more.
#[derive(Debug, Clone)]
pub struct Outlet(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    state: State,
    signals: Rc<StopSignals>,
    linger: Duration,
    /// Bytes that the pipe has not taken yet.
    pending: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Nothing was written yet, so there is no thread.
    Idle(File),
    Open(PipeWriter, Pump),
    /// The pipe holds all that there will be.
    Ending(Pump),
    /// Nobody reads any more; what is written is dropped.
    Closed,
}

/// The thread, and how to tell how far it is.
#[derive(Debug)]
struct Pump {
    /// Grows as the reader takes something.
    drained: Arc<AtomicUsize>,
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

    /// Waits until everything is written; what is written after this call is dropped.
    ///
    /// # Errors
    /// The file's, unless a write has returned it already; [`ErrorKind::WouldBlock`] where a signal
    /// came first: once that is read, another call waits for the rest.
    pub fn finish(&self) -> io::Result<()> {
        self.0.borrow_mut().finish()
    }
}

impl Write for Outlet {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut inner = self.0.borrow_mut();
        if matches!(inner.state, State::Idle(_) | State::Open(..)) {
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

impl Inner {
    /// Puts what is pending into the pipe.
    fn push(&mut self) -> io::Result<()> {
        self.open()?;
        while let (State::Open(queue, pump), false) = (&mut self.state, self.pending.is_empty()) {
            match queue.write(&self.pending) {
                Ok(length) => drop(self.pending.drain(..length)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let room = PollFd::new(queue.as_fd(), PollFlags::POLLOUT);
                    match wait(room, &self.signals, self.linger, &pump.drained)? {
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
            let (queue, pump) = Pump::start(file)?;
            self.state = State::Open(queue, pump);
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.pending.is_empty() {
            self.push()?;
        }
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            // Without the queue the pump ends once it has written what is in the pipe.
            State::Open(_, pump) | State::Ending(pump) => State::Ending(pump),
            State::Idle(_) | State::Closed => return Ok(()),
        };
        let State::Ending(pump) = &self.state else { return Ok(()) };
        let end = PollFd::new(pump.done.as_fd(), PollFlags::POLLIN);
        match wait(end, &self.signals, self.linger, &pump.drained)? {
            Waited::Ready => return self.join(),
            Waited::Signal => return Err(ErrorKind::WouldBlock.into()),
            Waited::Enough => self.close(),
        }
        Ok(())
    }

    /// Returns why the pump has ended.
    fn join(&mut self) -> io::Result<()> {
        self.pending.clear();
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(_, pump) | State::Ending(pump) => {
                pump.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
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
    /// Starts the thread; returns the end of its pipe that it is fed by, too.
    fn start(mut file: File) -> io::Result<(PipeWriter, Self)> {
        let (mut reader, queue) = io::pipe()?;
        let (done, ending) = io::pipe()?;
        fcntl(&queue, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let drained = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&drained);
        let body = move || {
            let result = pump(&mut reader, &mut file, &counter);
            // Only now, and also where the pump panics, does `done` come to its end.
            drop(ending);
            result
        };
        let thread = thread::Builder::new().name("output".to_owned()).spawn(body)?;
        Ok((queue, Self { drained, done, thread }))
    }
}

fn pump(reader: &mut PipeReader, file: &mut File, drained: &AtomicUsize) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                for piece in chunk[..length].chunks(PIECE) {
                    file.write_all(piece)?;
                    drained.fetch_add(piece.len(), Ordering::Relaxed);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Why a wait ended.
enum Waited {
    Ready,
    /// The first signal has come.
    Signal,
    /// A signal came before, and another came or the reader took nothing for too long.
    Enough,
}

/// Waits as [`Waited`] says, and after the first signal as long as the reader takes something.
fn wait(
    on: PollFd<'_>,
    signals: &StopSignals,
    linger: Duration,
    drained: &AtomicUsize,
) -> io::Result<Waited> {
    let hurried = signals.any_taken();
    let linger = PollTimeout::try_from(linger).unwrap_or(PollTimeout::MAX);
    let timeout = if hurried { linger } else { PollTimeout::NONE };
    let mut fds = [on, PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    while_drained(drained, || poll_again(&mut fds, timeout))?;
    let [ready, signal] = fds.map(|fd| fd.any().unwrap_or(true));
    Ok(match (ready, signal && !hurried) {
        (true, _) => Waited::Ready,
        (false, true) => Waited::Signal,
        (false, false) => Waited::Enough,
    })
}

/// Waits again where a wait ended without an event and the reader took something meanwhile.
fn while_drained(
    drained: &AtomicUsize,
    mut wait: impl FnMut() -> io::Result<libc::c_int>,
) -> io::Result<()> {
    loop {
        let before = drained.load(Ordering::Relaxed);
        if wait()? > 0 || drained.load(Ordering::Relaxed) == before {
            return Ok(());
        }
    }
}

/// Polls, also where something interrupts it; returns how many events there are.
fn poll_again(fds: &mut [PollFd<'_>], timeout: PollTimeout) -> io::Result<libc::c_int> {
    loop {
        match poll(fds, timeout) {
            Err(nix::Error::EINTR) => {}
            polled => return polled.map_err(io::Error::from),
        }
    }
}

#[cfg(test)]
mod tests;
