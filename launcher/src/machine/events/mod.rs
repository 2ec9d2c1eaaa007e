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

/// How long to read the control channel of a VMM process that has ended: its last messages have arrived already.
const REST: Duration = Duration::from_millis(1);
/// How long a VMM process that has closed its log may live on, and how long to read the log of a VMM process that has
/// ended. A process that is not compromised does both at once.
const LAG: Duration = Duration::from_secs(2);
/// The most that [`Events::settle`] reads, as [`Output::cost`](box_contract::wire::Output::cost) counts it.
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
    /// The listener is kept because dropping it removes its file.
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
    /// Readable once the VMM process has ended; `None` after that has been noted.
    running: Option<Receiver>,
    log: Option<Receiver>,
    control: Control,
    /// When to stop waiting for the other half, if only the process or only its log has ended.
    limit: Option<Instant>,
    /// When to stop draining the VM, if both its process and its log have ended.
    ended: Option<Instant>,
    pub(crate) console: Console,
}

/// The signals that end a run, for a caller that waits for them.
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
        // A signalfd, not a pipe, but polled for readability like one.
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
        // A pidfd, not a pipe, but polled for readability like one.
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

    /// Returns the protocol that init speaks.
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

    /// Kills the VM, and keeps the rest of its log.
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
        // Another process that has the log open is not part of the VM.
        timeout(LAG, rest).await.unwrap_or(Ok(()))
    }

    /// Waits for the next event. Cancel-safe. A message that has arrived is returned before the VM's end.
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
                        // A chunk may be thousands of lines: let clients be served between two chunks.
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

    /// Gives up on the half of the VM that has not ended: a log that another process has open, or a process that closed
    /// its log and lives on.
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

    /// Gives a failing VM a moment for its last messages, and calls `each` with them; returns the first other event.
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
                // An answer whose request no longer matters.
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
        // From here on, nothing else can connect: the listener is dropped, and its file is removed.
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
    /// Waits for the next step. Cancel-safe.
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

/// Waits for the end of a process; for ever if that was already noted.
async fn end(running: Option<&Receiver>) {
    match running {
        // An error here means that the process cannot be waited for. Its log and the time limit still work.
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
