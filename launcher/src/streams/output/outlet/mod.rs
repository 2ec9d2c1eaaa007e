//! Writes standard output or standard error of this program, even if its reader is slow or stops reading.
//!
//! ```text
//! Outlet::write ──▶ a pipe ──▶ the pump, a thread ──▶ the file
//! ```
//!
//! A paused pager may not read for hours, and a blocked `write` cannot be cancelled. So a separate thread, the pump,
//! writes the file and may block. The run waits for the pipe to that thread and, at the same time, for signals. The
//! file itself is not made non-blocking, because it is shared with the process that started this program.

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

/// How long a reader may stop reading after a signal has requested the end.
const LINGER: Duration = Duration::from_secs(1);
/// How much the pump reads at a time, in bytes: as much as a pipe holds.
const CHUNK: usize = 64 << 10;
/// How much of that the pump writes at a time, in bytes, so that progress of a slow reader is visible: one page, which
/// is the unit of a pipe's capacity ([pipe(7)](https://man7.org/linux/man-pages/man7/pipe.7.html)).
const PIECE: usize = 4096;

/// A file whose writes never keep the run from handling a signal. Clones share the file.
///
/// A write fails with [`ErrorKind::WouldBlock`] if a signal is pending and the reader does not read. The outlet keeps
/// the bytes, and writes them before the bytes of the next write. After the first signal, the outlet waits only while
/// the reader makes progress. If it does not, the outlet drops all further output.
#[derive(Debug, Clone)]
pub struct Outlet(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    state: State,
    signals: Rc<StopSignals>,
    linger: Duration,
    /// Bytes that the pipe has not accepted yet.
    pending: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// No byte was written yet, so there is no thread.
    Idle(File),
    Open(PipeWriter, Pump),
    /// The pipe contains the last bytes.
    Ending(Pump),
    /// The reader is gone or has stopped reading, or the output is complete. All further output is dropped.
    Closed,
}

/// The thread that writes the file, and its progress.
#[derive(Debug)]
struct Pump {
    /// Grows whenever the reader reads something.
    drained: Arc<AtomicUsize>,
    /// Reaches its end when the thread ends.
    done: PipeReader,
    thread: JoinHandle<io::Result<()>>,
}

impl Outlet {
    /// Wraps a file; `signals` end a wait for its reader.
    pub fn new(file: impl Into<OwnedFd>, signals: &Rc<StopSignals>) -> Self {
        Self::with_linger(file, signals, LINGER)
    }

    fn with_linger(file: impl Into<OwnedFd>, signals: &Rc<StopSignals>, linger: Duration) -> Self {
        let (state, signals) = (State::Idle(File::from(file.into())), Rc::clone(signals));
        Self(Rc::new(RefCell::new(Inner { state, signals, linger, pending: Vec::new() })))
    }

    /// Waits until everything is written. Output after this call is dropped.
    ///
    /// # Errors
    /// The error of writing the file, if no write has returned it. [`ErrorKind::WouldBlock`] if a signal is pending:
    /// after the signal has been read, another call continues to wait.
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

    /// A no-op, because the pump writes all bytes without waiting for more.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    /// Writes the pending bytes to the pipe.
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
                // The pump has failed: return its error.
                Err(_) => return self.join(),
            }
        }
        Ok(())
    }

    /// Starts the pump on first use.
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
            // Dropping the queue ends the pump once it has written the rest of the pipe.
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

    /// Returns the result of the pump.
    fn join(&mut self) -> io::Result<()> {
        self.pending.clear();
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Open(_, pump) | State::Ending(pump) => {
                pump.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            State::Idle(_) | State::Closed => Ok(()),
        }
    }

    /// Abandons the pump, which ends with this program at the latest.
    fn close(&mut self) {
        self.pending.clear();
        self.state = State::Closed;
    }
}

impl Pump {
    /// Starts the thread. Also returns the writer of the pipe from which the thread reads.
    fn start(mut file: File) -> io::Result<(PipeWriter, Self)> {
        let (mut reader, queue) = io::pipe()?;
        let (done, ending) = io::pipe()?;
        fcntl(&queue, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let drained = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&drained);
        let body = move || {
            let result = pump(&mut reader, &mut file, &counter);
            // `done` reaches its end here, or when the pump panics.
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
    /// The first signal has arrived.
    Signal,
    /// A signal arrived earlier. Since then, another one arrived, or the reader made no progress for too long.
    Enough,
}

/// Waits for an event of `on` or for a signal. After the first signal, waits only while the reader makes progress.
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

/// Repeats a wait that ended without an event if the reader made progress meanwhile.
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

/// Polls, and retries after an interruption; returns the number of events.
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
