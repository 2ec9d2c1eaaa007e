//! A client of a box's supervisor, which `run`, `exec`, `attach` and `stop` use.
//!
//! One thread waits for all events at once: the supervisor, the signals, and the input and the terminal of a command.
//! The client may block while it writes output: the supervisor queues messages for it. Only the program whose output is not read
//! waits.

mod approvals;
mod builtin;
pub mod copy;
mod error;
pub mod files;
mod hidden;
mod predecessor;
pub mod skills;

use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::{
    self, CLIENT_PROTOCOL, ClientMessage, Denied, Exec, Exited, Failed, Follow, Frames, Greeting,
    GuestMessage, HostMessage, InputEnd, Measure, Output, PROTOCOL, ProgramId, PublishPort,
    Refused, Resize, RuleChange, Shutdown, Signal, TerminalSize, Usage, Verification,
};
use host_fs::OsError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use vmm::signals::Stopped;

use crate::boxes::Record;
use crate::network::Published;
use crate::streams::StreamError;
use crate::streams::control::{CHUNK, peer};
use crate::streams::input::Input;
use crate::streams::output::Route;
use crate::streams::tty::Tty;
use crate::supervisor::approvals::DECIDE;
use crate::supervisor::{RUN, SOCKET};
use approvals::Asking;
pub use approvals::QuestionChange;
pub use error::ClientError;
pub use hidden::hidden_files;
pub use predecessor::Predecessor;
use vmm::runtime_dir;
use vmm::signals::StopSignals;

/// How long to wait for an answer that a box can give at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a supervisor.
#[derive(Debug)]
pub struct Client<'a> {
    stream: UnixStream,
    frames: Frames,
    signals: &'a StopSignals,
    name: String,
    /// The protocol that the box's init speaks.
    protocol: u32,
    input: Option<Input>,
    tty: Option<Tty>,
    /// When to give up waiting for an answer.
    deadline: Option<Instant>,
    /// The agent's exit status, once it has ended.
    pub agent_status: Option<u8>,
    /// Whether the agent failed and the kernel killed a process of its component for lack of memory.
    pub agent_lacked_memory: bool,
    business: Option<BusinessEnds<'a>>,
    denials: Option<Denials<'a>>,
    asking: Option<Asking<'a>>,
    /// Why the policy has not let the last command start.
    refusal: Option<Refused>,
    verification: Option<Verifications<'a>>,
}

/// The closure that is called with each step of the verification of the task.
struct Verifications<'a>(&'a dyn Fn(&Verification));

impl fmt::Debug for Verifications<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifications(…)")
    }
}

/// The closure that is called with the component and the text of each denial of the box's filter.
struct Denials<'a>(&'a dyn Fn(ComponentName, &str));

impl fmt::Debug for Denials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Denials(…)")
    }
}

/// The closure that is called with the box's name and the exit whenever the business application's main program has
/// ended.
struct BusinessEnds<'a>(&'a dyn Fn(&str, Exited));

impl fmt::Debug for BusinessEnds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BusinessEnds(…)")
    }
}

/// A command for a client to run, with its input and the destination of its output.
#[derive(Debug)]
pub struct CommandSetup<'r> {
    /// The command. [`Client::exec`] sets `stdin` and `terminal` in it.
    pub exec: Exec,
    /// The command's standard input.
    pub input: Option<Input>,
    /// This program's terminal, whose size the command's terminal gets. The keys arrive as `input`.
    pub tty: Option<Tty>,
    /// The destination of the command's output.
    pub output: &'r mut Route,
}

/// An event that a client waits for.
#[derive(Debug)]
enum Event {
    Message(GuestMessage),
    /// The supervisor has closed the connection.
    HungUp,
    /// boxlaunch received a signal that asks it to end, such as SIGINT.
    Signal(i32),
    /// Input for the command; empty at the end of the input, which is reported once.
    Input(Vec<u8>),
    /// The new size of the command's terminal.
    Resized(TerminalSize),
}

impl<'a> Client<'a> {
    /// Sends the greeting to a supervisor over a connection to it.
    ///
    /// # Errors
    /// If the supervisor closes the connection.
    pub fn new(
        stream: UnixStream,
        (name, protocol): (&str, u32),
        agent: Follow,
        signals: &'a StopSignals,
    ) -> Result<Self, ClientError> {
        let (frames, name) = (Frames::default(), name.to_owned());
        let mut client = Self {
            stream,
            frames,
            signals,
            name,
            protocol,
            input: None,
            tty: None,
            deadline: None,
            agent_status: None,
            agent_lacked_memory: false,
            business: None,
            denials: None,
            asking: None,
            refusal: None,
            verification: None,
        };
        let mut greeting = Vec::new();
        let message = ClientMessage::Greeting(Greeting { protocol: CLIENT_PROTOCOL, agent });
        message.write(&mut greeting).map_err(OsError::system("greet the supervisor"))?;
        client.write(&greeting)?;
        Ok(client)
    }

    /// Returns why the policy of the box has not let the last command start, once.
    pub fn take_refusal(&mut self) -> Option<Refused> {
        self.refusal.take()
    }

    /// Calls `reported` with the box's name and the exit whenever the business application's main program has ended.
    #[must_use]
    pub fn on_business_end(self, reported: &'a dyn Fn(&str, Exited)) -> Self {
        Self { business: Some(BusinessEnds(reported)), ..self }
    }

    /// Calls `reported` once for each attempt to connect that the box's filter denies, with the component and the text of the attempt.
    #[must_use]
    pub fn on_denial(self, reported: &'a dyn Fn(ComponentName, &str)) -> Self {
        Self { denials: Some(Denials(reported)), ..self }
    }

    /// Calls `reported` with each step of the verification of the box's task.
    #[must_use]
    pub fn on_verification(self, reported: &'a dyn Fn(&Verification)) -> Self {
        Self { verification: Some(Verifications(reported)), ..self }
    }

    /// Connects to the supervisor of a box that is running or starting. The supervisor answers only when the agent is
    /// ready.
    ///
    /// # Errors
    /// [`ClientError::NotRunning`].
    pub fn connect(
        record: &Record,
        agent: Follow,
        signals: &'a StopSignals,
    ) -> Result<Self, ClientError> {
        let stream = supervisor_of(record)?;
        // While a box starts, its record has no protocol. In this case the newest one is assumed, and the supervisor checks each
        // request.
        let protocol = record.protocol.unwrap_or(PROTOCOL);
        Self::new(stream, (&record.name, protocol), agent, signals)
    }

    /// Sets a deadline for all further waits. After the deadline, they fail with [`ClientError::NoAnswer`].
    pub fn give_up_after(&mut self, patience: Duration) {
        self.deadline = Some(Instant::now() + patience);
    }

    /// Removes the deadline.
    pub const fn be_patient(&mut self) {
        self.deadline = None;
    }

    /// Changes the rules of the box's filter, and ends the connection.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the supervisor's reason, and the errors of [`Self::finish`].
    pub fn set_rules(mut self, change: RuleChange) -> Result<(), ClientError> {
        self.ask_supervisor(ClientMessage::Rules(change))?;
        self.finish()
    }

    /// Publishes ports of the box's components, and ends the connection. The record of the box has the ports afterwards. If one of them is
    /// refused, the others may be published.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with the supervisor's reason, and the errors of [`Self::finish`].
    pub fn publish(mut self, ports: &[Published]) -> Result<(), ClientError> {
        for &Published { host, guest, component, .. } in ports {
            self.ask_supervisor(ClientMessage::Publish(PublishPort { host, guest, component }))?;
        }
        self.finish()
    }

    /// Sends a request that the supervisor itself fulfils. It answers only to refuse it.
    fn ask_supervisor(&mut self, message: ClientMessage) -> Result<(), ClientError> {
        self.tell_supervisor(&message)?;
        self.give_up_after(PATIENCE);
        Ok(())
    }

    /// Sends a message for the supervisor itself.
    fn tell_supervisor(&mut self, message: &ClientMessage) -> Result<(), ClientError> {
        let mut frame = Vec::new();
        message.write(&mut frame).map_err(OsError::system("ask the supervisor"))?;
        self.write(&frame)
    }

    /// Returns the resources that the box uses. Must be the last request of this client, because it sets a deadline.
    ///
    /// # Errors
    /// [`Stopped`], [`ClientError::BoxEnded`], and [`ClientError::NoAnswer`].
    pub fn measure(&mut self) -> Result<Usage, ClientError> {
        self.send(&HostMessage::Measure(Measure {}))?;
        self.give_up_after(PATIENCE);
        loop {
            match self.next()? {
                Event::Message(GuestMessage::Usage(usage)) => return Ok(usage),
                Event::Message(message) => self.agent_message(message, &mut Route::Nowhere)?,
                Event::Signal(signal) => return Err(Stopped(signal).into()),
                Event::HungUp => return Err(self.ended()),
                Event::Input(_) | Event::Resized(_) => {}
            }
        }
    }

    /// Waits until the agent ends, and returns its status.
    ///
    /// # Errors
    /// [`Stopped`], and [`ClientError::BoxEnded`] if the box ends first.
    pub fn wait_for_agent(&mut self, agent: &mut Route) -> Result<u8, ClientError> {
        loop {
            if let Some(status) = self.agent_status {
                return Ok(status);
            }
            match self.next()? {
                Event::Message(message) => self.agent_message(message, agent)?,
                Event::Signal(signal) => return Err(Stopped(signal).into()),
                Event::HungUp => return Err(self.ended()),
                Event::Input(_) | Event::Resized(_) => {}
            }
        }
    }

    /// Runs a command until it ends. If `setup` has a terminal, the command gets a terminal of the same size.
    ///
    /// # Errors
    /// If init cannot run the command, the box ends first, or a signal arrives. After a signal the command still runs,
    /// and [`Self::wait_for_command`] continues to wait.
    pub fn exec(
        &mut self,
        setup: CommandSetup<'_>,
        agent: &mut Route,
    ) -> Result<Exited, ClientError> {
        let CommandSetup { exec, input, tty, output } = setup;
        let (stdin, terminal) = (input.is_some(), tty.as_ref().map(Tty::size));
        self.send(&HostMessage::Exec(Exec { stdin, terminal, ..exec }))?;
        (self.input, self.tty) = (input, tty);
        self.wait_for_command(output, agent)
    }

    /// Waits until the command ends.
    ///
    /// # Errors
    /// The errors of [`Self::exec`].
    pub fn wait_for_command(
        &mut self,
        output: &mut Route,
        agent: &mut Route,
    ) -> Result<Exited, ClientError> {
        let ended = self.follow_command(output, agent);
        if !matches!(ended, Err(ClientError::Stopped(_))) {
            (self.input, self.tty) = (None, None);
        }
        ended
    }

    fn follow_command(
        &mut self,
        output: &mut Route,
        agent: &mut Route,
    ) -> Result<Exited, ClientError> {
        loop {
            // A command that writes all the time must not postpone the deadline.
            if self.deadline.is_some_and(|it| it <= Instant::now()) {
                return Err(ClientError::NoAnswer);
            }
            match self.next()? {
                Event::Message(GuestMessage::Output(wrote)) if wrote.id.is_command() => {
                    self.pass_on(&wrote, output)?;
                }
                Event::Message(GuestMessage::Exited(exit)) if exit.id.is_command() => {
                    output.finish().map_err(|error| self.not_written(error))?;
                    return Ok(exit);
                }
                Event::Message(GuestMessage::Credit(credit)) => {
                    self.input.iter_mut().for_each(|input| input.grant(credit.bytes));
                }
                Event::Input(data) => self.send_input(data),
                Event::Resized(size) => {
                    self.tell(&HostMessage::Resize(Resize { id: ProgramId::COMMAND, size }));
                }
                Event::Message(message) => self.agent_message(message, agent)?,
                Event::Signal(signal) => return Err(Stopped(signal).into()),
                Event::HungUp => return Err(self.ended()),
            }
        }
    }

    /// Sends a part of the command's input, or its end.
    fn send_input(&mut self, data: Vec<u8>) {
        let id = ProgramId::COMMAND;
        self.tell(&if data.is_empty() {
            HostMessage::InputEnd(InputEnd { id })
        } else {
            HostMessage::Input(wire::Input { id, data })
        });
    }

    /// Requests the end of the box within `grace`. If an end was requested already and `grace` is zero, the
    /// supervisor stops waiting, and kills the VM.
    pub fn ask_to_stop(&mut self, grace: Duration) {
        self.tell(&HostMessage::Shutdown(Shutdown::within(grace)));
    }

    /// Releases the command's input and terminal, so that this program can use them again.
    pub fn let_go(&mut self) {
        (self.input, self.tty) = (None, None);
    }

    /// Sends a signal to the agent, or to this client's command.
    pub fn ask_to_signal(&mut self, is_for_agent: bool, signal: i32) {
        let id = if is_for_agent { ProgramId::AGENT } else { ProgramId::COMMAND };
        self.tell(&HostMessage::Signal(Signal { id, signal }));
    }

    /// Waits until the supervisor closes the connection.
    ///
    /// # Errors
    /// [`Stopped`], or if the agent's last output cannot be passed on, or the box failed.
    pub fn wait_for_end(&mut self, agent: &mut Route) -> Result<(), ClientError> {
        loop {
            match self.next()? {
                Event::Message(message) => self.agent_message(message, agent)?,
                Event::Signal(signal) => return Err(Stopped(signal).into()),
                Event::HungUp => {
                    return agent.finish().map_err(|error| self.not_written(error));
                }
                Event::Input(_) | Event::Resized(_) => {}
            }
        }
    }

    /// Shuts down the sending half of the connection, and waits until the supervisor has fulfilled the earlier requests.
    ///
    /// # Errors
    /// The supervisor's reason for a refusal.
    pub fn finish(mut self) -> Result<(), ClientError> {
        drop(self.stream.shutdown(std::net::Shutdown::Write));
        self.wait_for_end(&mut Route::Nowhere)
    }

    /// Handles a message that is not about the client's command.
    fn agent_message(
        &mut self,
        message: GuestMessage,
        agent: &mut Route,
    ) -> Result<(), ClientError> {
        match message {
            GuestMessage::Output(wrote) if wrote.id == ProgramId::AGENT => {
                self.pass_on(&wrote, agent)
            }
            GuestMessage::Exited(exit) if exit.id == ProgramId::AGENT => {
                self.agent_status = Some(exit.code());
                self.agent_lacked_memory = exit.lacked_memory();
                Ok(())
            }
            GuestMessage::Exited(exit) if exit.id == ProgramId::BUSINESS => {
                self.business.iter().for_each(|it| (it.0)(&self.name, exit));
                Ok(())
            }
            GuestMessage::Denied(Denied { component, what }) => {
                self.denials.iter().for_each(|it| (it.0)(component, &what));
                Ok(())
            }
            GuestMessage::Refused(refused) if refused.id.is_command() => {
                self.refusal = Some(refused);
                Ok(())
            }
            GuestMessage::Question(question) => self.ask_about(&question),
            // The question has ended before the answer arrived.
            GuestMessage::Failed(Failed { step, .. })
                if step == DECIDE && self.asking.is_some() =>
            {
                Ok(())
            }
            GuestMessage::Verification(step) => {
                self.verification.iter().for_each(|it| (it.0)(&step));
                Ok(())
            }
            GuestMessage::Failed(Failed { step, .. }) if step == RUN => Err(self.ended()),
            GuestMessage::Failed(Failed { step, message }) => {
                Err(ClientError::Refused { step, reason: message })
            }
            // Output that arrives after the command has ended is dropped.
            _ => Ok(()),
        }
    }

    fn pass_on(&self, wrote: &Output, output: &mut Route) -> Result<(), ClientError> {
        let written = output.write(wrote.stream, &wrote.data);
        written.map_err(|error| self.not_written(error))
    }

    fn not_written(&self, error: io::Error) -> ClientError {
        StreamError::not_written(error, self.signals).into()
    }

    fn ended(&self) -> ClientError {
        ClientError::BoxEnded(self.name.clone())
    }

    /// Sends a message to the supervisor.
    fn send(&mut self, message: &HostMessage) -> Result<(), ClientError> {
        if message.since() > self.protocol {
            return Err(StreamError::OlderBox(self.protocol).into());
        }
        let mut frame = Vec::new();
        message.write(&mut frame).map_err(|error| match (message, error.kind()) {
            (HostMessage::Exec(_), ErrorKind::InvalidInput) => {
                ClientError::Command(error.to_string())
            }
            _ => OsError::system("send a request to the supervisor")(error).into(),
        })?;
        self.write(&frame)
    }

    fn write(&mut self, frame: &[u8]) -> Result<(), ClientError> {
        let written = self.stream.write_all(frame);
        written.map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.ended(),
            _ => OsError::system("send a request to the supervisor")(error).into(),
        })
    }

    /// Sends a message and ignores a failure: if the supervisor is gone, the next event reports that.
    fn tell(&mut self, message: &HostMessage) {
        drop(self.send(message));
    }

    /// Waits for the next event.
    fn next(&mut self) -> Result<Event, ClientError> {
        loop {
            let message = self.frames.next(|rest| GuestMessage::read(rest));
            let misused = |error: io::Error| StreamError::Protocol(error.to_string());
            if let Some(message) = message.map_err(misused)? {
                return Ok(Event::Message(message));
            }
            let ready = self.wait()?;
            if let Some(event) = self.take(&ready)? {
                return Ok(event);
            }
        }
    }

    /// Reads from the sources that are ready.
    fn take(&mut self, ready: &Sources) -> Result<Option<Event>, ClientError> {
        if ready.signals
            && let Some(signal) = self.signals.next()?
        {
            return Ok(Some(Event::Signal(signal)));
        }
        if let Some(tty) = self.tty.as_ref().filter(|_| ready.tty) {
            tty.clear_resized();
            return Ok(Some(Event::Resized(tty.size())));
        }
        // Input takes precedence, so that a flood of output does not delay keys. Credit bounds the amount of input.
        if ready.input {
            let read = self.input.as_mut().map_or(Ok(None), Input::read);
            return Ok(read.map_err(StreamError::Input)?.map(Event::Input));
        }
        if ready.supervisor { self.receive() } else { Ok(None) }
    }

    fn wait(&self) -> Result<Sources, ClientError> {
        let fallback = self.signals.as_fd();
        let input = self.input.as_ref().and_then(Input::wanted);
        let tty = self.tty.as_ref().map(Tty::as_fd);
        // The signals' descriptor replaces an absent source, whose result is ignored below.
        let mut fds = [Some(self.stream.as_fd()), Some(fallback), input, tty]
            .map(|fd| PollFd::new(fd.unwrap_or(fallback), PollFlags::POLLIN));
        let left = self.deadline.map(|it| it.saturating_duration_since(Instant::now()));
        let left = left.map(|it| PollTimeout::try_from(it.as_millis()));
        match poll(&mut fds, left.transpose().ok().flatten().unwrap_or(PollTimeout::NONE)) {
            Err(nix::Error::EINTR) => return Ok(Sources::default()),
            Ok(0) => return Err(ClientError::NoAnswer),
            polled => polled.map_err(OsError::system("wait for the supervisor"))?,
        };
        let [supervisor, signals, on_input, on_tty] = fds.map(|fd| fd.any().unwrap_or(true));
        let (input, tty) = (input.is_some() && on_input, tty.is_some() && on_tty);
        Ok(Sources { supervisor, signals, input, tty })
    }

    fn receive(&mut self) -> Result<Option<Event>, ClientError> {
        let mut chunk = [0; CHUNK];
        match self.stream.read(&mut chunk) {
            Ok(0) => Ok(Some(Event::HungUp)),
            Ok(length) => {
                self.frames.push(&chunk[..length]);
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Some(Event::HungUp)),
            Err(error) => Err(OsError::system("read what the supervisor says")(error).into()),
        }
    }
}

/// Connects to the supervisor of a box.
fn supervisor_of(record: &Record) -> Result<UnixStream, ClientError> {
    let gone = || ClientError::NotRunning(record.name.clone());
    if !runtime_dir::is_ours(&record.runtime) {
        return Err(gone());
    }
    let stream = UnixStream::connect(record.runtime.join(SOCKET)).map_err(|_| gone())?;
    // Another box could have reused the directory, so the process id of the peer is checked. 0 is accepted: a peer in another
    // PID namespace has this id, see
    // [pid_namespaces(7)](https://man7.org/linux/man-pages/man7/pid_namespaces.7.html).
    match peer(&stream) {
        Ok(0) => Ok(stream),
        Ok(process) if process == record.supervisor => Ok(stream),
        _ => Err(gone()),
    }
}

/// The sources that are ready.
#[derive(Debug, Default)]
struct Sources {
    supervisor: bool,
    signals: bool,
    input: bool,
    tty: bool,
}
