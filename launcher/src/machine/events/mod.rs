//! The events of a running VM, one at a time: init's messages, the log and the end of the VMM process, signals and
//! deadlines.

use std::future::pending;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use box_contract::wire::{FRAME_COST, GuestMessage, HostMessage};
use host_fs::OsError;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;
use tokio::time::{sleep_until, timeout};

use super::MachineError;
use crate::streams::StreamError;
use crate::streams::console::Console;
use crate::streams::control::{ACCEPT, CHUNK, Channel, Listener, SEND, SETTLE, check_peer};
use vmm::signals::{SIGNAL_SIZE, StopSignals};
use vmm::{Nonce, Vmm};

/// How long to read the control channel of a VMM process that has ended. This is short, because its last messages have
/// already arrived.
const REST: Duration = Duration::from_millis(1);
/// How long a VMM process that has closed its log may live on, and how long to read the log of a VMM process that has
/// ended. A process that is not compromised closes its log only by ending.
const LAG: Duration = Duration::from_secs(2);
/// The most that [`Events::settle`] passes to its closure, as the sum of
/// [`Output::cost`](box_contract::wire::Output::cost).
const MAX_SETTLED: u32 = 1 << 20;

const KEEP: &str = "keep the guest's console";

#[derive(Debug)]
pub(crate) enum Event {
    /// A message from init.
    Message(GuestMessage),
    /// Init closed the control channel; reported once.
    HungUp,
    /// The VMM process has ended, and all that it sent has been delivered.
    VmmEnded(ExitStatus),
    /// A signal that requests the end of the run.
    Signal(i32),
    /// The deadline has passed.
    Deadline,
}

/// The state of the control connection.
#[derive(Debug)]
enum Control {
    /// No process has connected. The listener is kept, because dropping it removes the socket's file.
    Awaited {
        socket: UnixListener,
        nonce: Nonce,
        first: Vec<HostMessage>,
        _listener: Listener,
    },
    Open(Channel),
    Closed,
}

/// All sources of events of a VM.
#[derive(Debug)]
pub(crate) struct Events {
    vmm: Vmm,
    /// The pidfd of the VMM process. It becomes readable when the process ends; then [`Self::next`] sets it to `None`.
    running: Option<Receiver>,
    log: Option<Receiver>,
    control: Control,
    /// The deadline by which both the process and its log must have ended, set when the first of them has.
    limit: Option<Instant>,
    /// The deadline for draining the control channel, set when both the process and its log have ended.
    ended: Option<Instant>,
    pub(crate) console: Console,
}

/// The signals that end a run, registered with the current runtime.
#[derive(Debug)]
pub(crate) struct WatchedSignals<'a> {
    pub(crate) signals: &'a StopSignals,
    fd: Receiver,
}

impl<'a> WatchedSignals<'a> {
    /// Registers the signals with the current runtime.
    pub(crate) fn new(signals: &'a StopSignals) -> Result<Self, OsError> {
        let action = "wait for signals";
        let fd = signals.as_fd().try_clone_to_owned().map_err(OsError::system(action))?;
        // Unchecked, because a signalfd is no pipe. It is polled for readability like a pipe.
        let fd = Receiver::from_owned_fd_unchecked(fd).map_err(OsError::system(action))?;
        Ok(Self { signals, fd })
    }

    /// Returns the next signal. Cancel-safe.
    async fn next(&self) -> Result<i32, OsError> {
        loop {
            self.fd.readable().await.map_err(OsError::system("wait for signals"))?;
            let mut information = [0; SIGNAL_SIZE];
            match self.fd.try_read(&mut information) {
                Ok(_) => return Ok(self.signals.take(information)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(OsError::system("read a signal")(error)),
            }
        }
    }
}

impl Events {
    /// Starts to wait for a VM's events in the current runtime.
    pub(crate) fn new(
        mut vmm: Vmm,
        listener: Listener,
        (nonce, first): (Nonce, Vec<HostMessage>),
        console: Console,
    ) -> Result<Self, MachineError> {
        let log = vmm.take_log().map(Receiver::from_owned_fd).transpose();
        let log = log.map_err(OsError::system("read the guest's console"))?;
        // Unchecked, because a pidfd is no pipe. It is polled for readability like a pipe.
        let running = vmm.watch().and_then(Receiver::from_owned_fd_unchecked);
        let running = Some(running.map_err(OsError::system("watch the VMM process"))?);
        let socket = listener.watched();
        let socket = socket.map_err(OsError::system("wait for the control connection"))?;
        let control = Control::Awaited { socket, nonce, first, _listener: listener };
        Ok(Self { vmm, running, log, control, limit: None, ended: None, console })
    }

    /// Returns the process id of the VMM.
    pub(crate) fn vmm_pid(&self) -> u32 {
        self.vmm.pid()
    }

    /// Returns the version of the protocol that init uses. `None` if the connection is not open or init has not greeted.
    pub(crate) const fn protocol(&self) -> Option<u32> {
        match &self.control {
            Control::Open(channel) => channel.protocol(),
            Control::Awaited { .. } | Control::Closed => None,
        }
    }

    /// Sends a request to init.
    pub(crate) fn send(&self, message: &HostMessage) -> Result<(), StreamError> {
        match &self.control {
            Control::Open(channel) => channel.send(message),
            Control::Awaited { .. } | Control::Closed => {
                let gone = io::Error::from(ErrorKind::NotConnected);
                Err(OsError::system(SEND)(gone).into())
            }
        }
    }

    /// Kills the VM, and stores the rest of its log.
    pub(crate) async fn kill(&mut self) -> Result<(), OsError> {
        self.vmm.kill();
        let rest = async {
            while let Some(log) = &mut self.log {
                let mut chunk = [0; CHUNK];
                let length = log.read(&mut chunk).await;
                self.keep(length, &chunk)?;
            }
            Ok(())
        };
        // Give up after `LAG`: another process may have the log open, so that its end never comes.
        timeout(LAG, rest).await.unwrap_or(Ok(()))
    }

    /// Waits for the next event. Messages that have arrived are returned before the VM's end. Cancel-safe.
    pub(crate) async fn next(
        &mut self,
        deadline: Option<Instant>,
        signals: Option<&WatchedSignals<'_>>,
    ) -> Result<Event, MachineError> {
        loop {
            let mut chunk = [0; CHUNK];
            // Messages that have already arrived must not keep the runtime from seeing a signal.
            consume_budget().await;
            tokio::select! {
                biased;
                () = until(deadline), if self.ended.is_none() => return Ok(Event::Deadline),
                signal = next_signal(signals) => return Ok(Event::Signal(signal?)),
                () = until(self.limit), if self.ended.is_none() => self.cut_off()?,
                () = end(self.running.as_ref()) => {
                    self.running = None;
                    self.note_end();
                }
                incoming = incoming(&mut self.log, &mut self.control, &mut chunk) => match incoming {
                    Incoming::InLog(length) => {
                        self.keep(length, &chunk)?;
                        // Storing a chunk may take long, because it may have thousands of lines. Let other tasks run
                        // between two chunks.
                        yield_now().await;
                    }
                    Incoming::InControl(progress) => {
                        if let Some(event) = self.follow(progress?)? {
                            return Ok(event);
                        }
                    }
                },
                () = until(self.ended) => return Ok(Event::VmmEnded(self.vmm.wait()?)),
            }
        }
    }

    /// Records that the VM's process or its log has ended.
    fn note_end(&mut self) {
        let now = Instant::now();
        match (&self.running, &self.log) {
            (None, None) => self.ended = Some(now + REST),
            _ => self.limit = Some(now + LAG),
        }
    }

    /// Stops waiting at [`Self::limit`]: for the end of a log that another process has open, or for the end of a
    /// process that closed its log. Kills such a process.
    fn cut_off(&mut self) -> Result<(), MachineError> {
        if self.running.is_some() {
            self.vmm.kill();
            return Err(MachineError::HiddenVmm);
        }
        Ok(self.end_log()?)
    }

    fn end_log(&mut self) -> Result<(), OsError> {
        self.log = None;
        self.note_end();
        self.console.finish().map_err(OsError::system(KEEP))
    }

    /// Waits up to [`SETTLE`] for the last messages of a failing VM, and calls `each` with its output and its exits.
    /// Returns the first event that is neither a message nor [`Event::HungUp`]: at the latest, [`Event::Deadline`].
    /// `None` after an error.
    pub(crate) async fn settle(&mut self, each: &mut dyn FnMut(GuestMessage)) -> Option<Event> {
        let (deadline, mut kept) = (Instant::now() + SETTLE, 0_u32);
        loop {
            match self.next(Some(deadline), None).await.ok()? {
                Event::Message(GuestMessage::Output(output)) => {
                    kept = kept.saturating_add(output.cost());
                    if kept <= MAX_SETTLED {
                        each(GuestMessage::Output(output));
                    }
                }
                Event::Message(message @ GuestMessage::Exited(_)) => {
                    kept = kept.saturating_add(FRAME_COST);
                    if kept <= MAX_SETTLED {
                        each(message);
                    }
                }
                // Ignore all other messages, for example an answer to a request.
                Event::Message(_) | Event::HungUp => {}
                event => return Some(event),
            }
        }
    }

    /// Applies a step of the control connection; returns the event that it causes.
    fn follow(&mut self, progress: Progress) -> Result<Option<Event>, MachineError> {
        let stream = match progress {
            Progress::Message(message) => return Ok(Some(Event::Message(message))),
            Progress::Received => return Ok(None),
            Progress::Connected(stream) => Some(stream),
            Progress::Ended => None,
        };
        // Replacing `control` drops the listener and removes its file, so no other process can connect.
        match (stream, std::mem::replace(&mut self.control, Control::Closed)) {
            (Some(stream), Control::Awaited { nonce, first, .. }) => {
                check_peer(&stream, self.vmm.pid())?;
                self.control = Control::Open(Channel::new(stream, nonce, first));
                Ok(None)
            }
            _ => Ok(Some(Event::HungUp)),
        }
    }

    /// Stores a chunk of the log.
    fn keep(&mut self, read: io::Result<usize>, chunk: &[u8]) -> Result<(), OsError> {
        match read {
            Ok(0) => self.end_log(),
            Ok(length) => self.console.push(&chunk[..length]).map_err(OsError::system(KEEP)),
            Err(error) => Err(OsError::system("read the guest's console")(error)),
        }
    }
}

/// A step of the control connection.
#[derive(Debug)]
enum Progress {
    /// A process has connected.
    Connected(UnixStream),
    /// Bytes have arrived.
    Received,
    /// A complete message has arrived.
    Message(GuestMessage),
    /// The connection has ended.
    Ended,
}

impl Control {
    /// Waits for the next step of the connection. Cancel-safe.
    async fn progress(&mut self) -> Result<Progress, StreamError> {
        match self {
            Self::Awaited { socket, .. } => {
                let accepted = socket.accept().await;
                let (stream, _) = accepted.map_err(OsError::system(ACCEPT))?;
                Ok(Progress::Connected(stream))
            }
            Self::Open(channel) => {
                if let Some(message) = channel.message()? {
                    return Ok(Progress::Message(message));
                }
                let received = channel.receive().await?;
                Ok(if received { Progress::Received } else { Progress::Ended })
            }
            Self::Closed => pending().await,
        }
    }
}

/// Something that arrived from a VM.
enum Incoming {
    InLog(io::Result<usize>),
    InControl(Result<Progress, StreamError>),
}

/// Waits for bytes in a VM's log or on its control channel, in no fixed order: a flood on one of them must not starve
/// the other. Cancel-safe.
async fn incoming(log: &mut Option<Receiver>, control: &mut Control, chunk: &mut [u8]) -> Incoming {
    tokio::select! {
        length = read(log, chunk) => Incoming::InLog(length),
        progress = control.progress() => Incoming::InControl(progress),
    }
}

async fn next_signal(signals: Option<&WatchedSignals<'_>>) -> Result<i32, OsError> {
    match signals {
        Some(signals) => signals.next().await,
        None => pending().await,
    }
}

async fn read(log: &mut Option<Receiver>, chunk: &mut [u8]) -> io::Result<usize> {
    match log {
        Some(log) => log.read(chunk).await,
        None => pending().await,
    }
}

/// Waits for the end of the VMM process. Never returns if `running` is `None`, because [`Events::next`] has already
/// seen the end.
async fn end(running: Option<&Receiver>) {
    match running {
        // After an error, the process's end cannot be awaited. The end of its log and the deadline still end the run.
        Some(running) if running.readable().await.is_ok() => {}
        _ => pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline.into()).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
