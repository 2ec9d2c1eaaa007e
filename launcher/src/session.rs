//! The run of a box: start, wait or run a command, stop.
//!
//! The caller decides what to do between these steps; [`Session::start`] returns when the agent is
//! ready or its budget is used up, and dropping a session kills the machine and removes what the run left on the host.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use box_image::Phases;
use box_image::secrets::mask_words;
use box_image::text::{shown, shown_lines};
use box_image::wire::{
    self, AGENT_ID, Credit, Exec, Exited, Failed, GuestMessage, HostMessage, InputEnd, Output,
    Resize, Shutdown, WINDOW,
};
use box_layout::OpenBox;

use crate::agent_socket::{AgentSocket, agent_port};
use crate::clock;
use crate::console::Console;
use crate::control::{Listener, Nonce};
use crate::error::{LaunchError, RunFailure, Said};
use crate::events::{Event, Events};
use crate::host::kvm_error::KvmError;
use crate::input::Input;
use crate::open::check_enforced;
use crate::output::Route;
use crate::receipt::Receipts;
use crate::report::RunFacts;
use crate::runtime_dir::RuntimeDir;
use crate::signals::StopSignals;
use crate::tty::Tty;
use crate::verify::{self, Trust, Verification, Verified};
use crate::vmm::{BlobFds, Vmm, VmmConfig};

/// The id of the command; a session runs one.
const COMMAND_ID: u8 = 1;
/// How long a machine may take to end by itself after init has hung up or failed.
const SETTLE: Duration = Duration::from_millis(500);
/// How long a machine may take to power off once its programs have ended.
const POWER_OFF: Duration = Duration::from_secs(5);
/// How often somebody who watches a start is shown the time.
const LOOK: Duration = Duration::from_secs(1);
/// Only this much of a guest's message is shown, in bytes.
const MAX_SHOWN: usize = 4096;

/// The arguments of [`Session::start`].
#[derive(Debug)]
pub struct Setup<'a> {
    /// The box.
    pub opened: &'a OpenBox,
    /// The program that is started as the VMM, with the argument [`crate::vmm::SUBCOMMAND`].
    pub program: &'a Path,
    /// The receipts of earlier verifications.
    pub receipts: &'a Receipts,
    /// Whether they are used.
    pub trust: Trust,
    /// Where the run's private directory is made.
    pub runtime_base: PathBuf,
    /// Where the agent's socket is made; by default in the private directory.
    pub agent_socket: Option<PathBuf>,
    /// The file for the start of the console.
    pub console: Option<File>,
    /// What is done with the agent's output.
    pub agent_output: Route,
    /// The signals that end the run early.
    pub signals: &'a StopSignals,
    /// When the program started, without what it did only this time. The hashing of blobs is no part of
    /// the start either: the clock is set forward by what it took.
    pub started: Instant,
    /// How long the start may take before it is an error.
    pub startup_timeout: Duration,
    /// How long the start may take before [`Session::start`] returns without a ready agent.
    pub enforced_total: Option<Duration>,
    /// Sees how far the start is.
    pub watch: &'a dyn Watch,
}

/// How far a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The box's files are verified now, which takes seconds where large ones have to be hashed.
    Verifying,
    /// They had to be hashed, which took this long.
    Hashed(Duration),
    /// The machine was started; this much of the start's time has passed.
    Starting(Duration),
    /// The start has ended, well or not.
    Ended,
}

/// Sees how far a start is, to show it to a person.
pub trait Watch: std::fmt::Debug {
    /// Is called at each step, and about once a second while the machine starts.
    fn see(&self, progress: Progress);
}

/// A started machine.
#[derive(Debug)]
pub struct Session<'a> {
    // Dropped in this order: the machine ends before its directory is removed.
    events: Events<'a>,
    agent_socket: Option<AgentSocket>,
    _runtime: RuntimeDir,
    agent_argv: Vec<String>,
    /// Whether the agent has written anything.
    agent_spoke: bool,
    agent_window: Window,
    /// The facts of the run so far.
    pub facts: RunFacts,
}

impl<'a> Session<'a> {
    /// Verifies the box, boots it, and returns when its agent is ready; see
    /// [`RunFacts::is_ready`] for when it is not.
    ///
    /// # Errors
    /// When the plan declares what this version does not enforce, a blob differs, or the start fails,
    /// takes too long or is ended by a signal. That the host can run machines at all, the caller
    /// has made sure of ([`crate::host::ensure_kvm`]).
    pub fn start(setup: Setup<'a>) -> Result<Self, RunFailure> {
        let watch = setup.watch;
        let (mut started, limits) = (setup.started, Limits::of(&setup));
        let mut session = Self::spawn(setup).inspect_err(|_| watch.see(Progress::Ended))?;
        started += session.facts.verification.hashing;
        let ready = session.await_ready(started, limits, watch);
        watch.see(Progress::Ended);
        ready.map_err(|error| session.failure(error))?;
        Ok(session)
    }

    /// Verifies the blobs and starts the VMM process, with the same open files.
    fn spawn(setup: Setup<'a>) -> Result<Self, LaunchError> {
        check_enforced(setup.opened)?;
        let runtime = RuntimeDir::create(&setup.runtime_base)?;
        let port = setup.opened.plan().agent.port;
        let wanted = setup.agent_socket.clone();
        let agent = port.map(|it| agent_port(it, wanted, &runtime)).transpose()?;
        let listener = Listener::bind(runtime.socket("control.sock")?)?;
        let verification = verified(&setup)?;
        let mut vmm = Vmm::spawn(setup.program, setup.opened)?;
        let nonce = Nonce::random()?;
        let agent_socket = agent.map(AgentSocket::new).transpose()?;
        vmm.configure(&VmmConfig {
            supervisor: nix::unistd::getpid().as_raw(),
            size: setup.opened.plan().vm,
            blobs: BlobFds::of(setup.opened),
            nonce: nonce.clone(),
            control_socket: listener.path().to_owned(),
            agent: agent_socket.as_ref().map(|socket| socket.port().clone()),
        })?;
        let console = Console::new(setup.console);
        Ok(Self {
            events: Events::new(vmm, listener, nonce, console, setup.signals),
            agent_socket,
            _runtime: runtime,
            agent_argv: setup.opened.plan().agent.argv.clone(),
            agent_spoke: false,
            agent_window: Window::default(),
            facts: RunFacts {
                verification,
                phases: Phases::default(),
                is_ready: false,
                agent_status: None,
                agent_output: setup.agent_output,
            },
        })
    }

    /// Waits until the agent is ready or the enforced total has passed, and notes what was taken.
    fn await_ready(
        &mut self,
        started: Instant,
        limits: Limits,
        watch: &dyn Watch,
    ) -> Result<(), LaunchError> {
        loop {
            watch.see(Progress::Starting(started.elapsed()));
            let next_look = Instant::now() + LOOK;
            match self.events.next(Some(next_look.min(started + limits.first())))? {
                Event::Message(GuestMessage::Ready(timing)) => {
                    self.facts.phases = clock::phases(started.elapsed(), &timing);
                    self.facts.is_ready = true;
                    return Ok(());
                }
                Event::Message(message) => self.agent_message(message)?,
                Event::Deadline => {
                    let taken = started.elapsed();
                    if limits.is_over_budget(taken)? {
                        self.facts.phases = clock::unready(taken);
                        return Ok(());
                    }
                }
                event => return Err(self.ended(event, "before the agent was ready")),
            }
            if let Some(status) = self.facts.agent_status {
                return Err(self.agent_ended(status));
            }
        }
    }

    fn agent_ended(&self, status: u8) -> LaunchError {
        let mut argv = self.agent_argv.clone();
        mask_words(&mut argv);
        LaunchError::AgentEnded { status, argv: argv.join(" "), was_silent: !self.agent_spoke }
    }

    /// Returns the socket that leads to the agent's port.
    pub fn agent_socket(&self) -> Option<&Path> {
        self.agent_socket.as_ref().map(|socket| socket.port().socket.as_path())
    }

    /// Waits until the agent ends, and returns its status.
    ///
    /// # Errors
    /// When the machine ends first, init fails, or a signal asks for the end.
    pub fn wait_for_agent(&mut self) -> Result<u8, RunFailure> {
        loop {
            if let Some(status) = self.facts.agent_status {
                return Ok(status);
            }
            let step = match self.events.next(None) {
                Ok(Event::Message(message)) => self.agent_message(message),
                Ok(event) => Err(self.ended(event, "before the agent did")),
                Err(error) => Err(error),
            };
            step.map_err(|error| self.failure(error))?;
        }
    }

    /// Runs a command until it ends; its id is this session's to give. With a terminal it gets one of its own of
    /// the same size, whose keys come as the input.
    ///
    /// # Errors
    /// When init cannot run it, the machine ends first, or a signal asks for the end.
    pub fn exec(
        &mut self,
        exec: Exec,
        input: Option<Input>,
        tty: Option<Tty>,
        output: &mut Route,
    ) -> Result<Exited, RunFailure> {
        let (stdin, terminal) = (input.is_some(), tty.as_ref().map(Tty::size));
        let request = HostMessage::Exec(Exec { id: COMMAND_ID, stdin, terminal, ..exec });
        (self.events.input, self.events.tty) = (input, tty);
        let ended = self.events.send(&request).and_then(|()| self.await_command(output));
        (self.events.input, self.events.tty) = (None, None);
        ended.map_err(|error| self.failure(error))
    }

    fn await_command(&mut self, output: &mut Route) -> Result<Exited, LaunchError> {
        let mut window = Window::default();
        loop {
            match self.events.next(None)? {
                Event::Message(GuestMessage::Output(wrote)) if wrote.id == COMMAND_ID => {
                    let written = output.write(wrote.stream, &wrote.data);
                    written.map_err(|error| self.not_written(error))?;
                    self.grant(COMMAND_ID, window.passed(&wrote));
                }
                Event::Message(GuestMessage::Exited(exit)) if exit.id == u32::from(COMMAND_ID) => {
                    let finished = output.finish().map_err(|error| self.not_written(error));
                    return finished.map(|()| exit);
                }
                Event::Message(GuestMessage::Credit(Credit { id: COMMAND_ID, bytes })) => {
                    self.events.input.iter_mut().for_each(|input| input.grant(bytes));
                }
                Event::Input(data) => self.send_input(data),
                Event::Resized(size) => {
                    self.tell(&HostMessage::Resize(Resize { id: COMMAND_ID, size }));
                }
                Event::Message(message) => self.agent_message(message)?,
                event => return Err(self.ended(event, "before the command did")),
            }
        }
    }

    /// Passes a part of the command's input on, or its end.
    fn send_input(&mut self, data: Vec<u8>) {
        let id = COMMAND_ID;
        self.tell(&if data.is_empty() {
            HostMessage::InputEnd(InputEnd { id })
        } else {
            HostMessage::Input(wire::Input { id, data })
        });
    }

    /// Lets a program write as much again as was passed on.
    fn grant(&mut self, id: u8, bytes: Option<u32>) {
        bytes.into_iter().for_each(|bytes| self.tell(&HostMessage::Credit(Credit { id, bytes })));
    }

    /// Sends what an init that is gone need not know: the next event says why it is, after all that it has sent.
    fn tell(&mut self, message: &HostMessage) {
        drop(self.events.send(message));
    }

    /// Ends the programs, with `grace` between the request and the killing. Init hangs up once they have ended and
    /// everything is written; what is left of the machine is then killed, as it is after a second signal, or
    /// when it does not end.
    ///
    /// # Errors
    /// When the agent's last output cannot be passed on, or the control channel is misused.
    pub fn stop(&mut self, grace: Duration) -> Result<(), RunFailure> {
        self.power_off(grace).map_err(|error| self.failure(error))
    }

    fn power_off(&mut self, grace: Duration) -> Result<(), LaunchError> {
        let grace_ms = u32::try_from(grace.as_millis()).unwrap_or(u32::MAX);
        // Where init is gone already, the machine is about to end, too.
        drop(self.events.send(&HostMessage::Shutdown(Shutdown { grace_ms })));
        let deadline = Instant::now() + grace + POWER_OFF;
        loop {
            match self.events.next(Some(deadline))? {
                Event::Message(GuestMessage::Output(output)) => self.agent_wrote(&output)?,
                Event::Message(GuestMessage::Exited(exit)) => self.note_exit(exit),
                Event::Message(_) | Event::Input(_) | Event::Resized(_) => {}
                Event::HungUp | Event::VmmEnded(_) | Event::Signal(_) | Event::Deadline => break,
            }
        }
        self.events.kill()?;
        self.facts.agent_output.finish().map_err(|error| self.not_written(error))
    }

    /// Handles a message that is not about a command.
    fn agent_message(&mut self, message: GuestMessage) -> Result<(), LaunchError> {
        match message {
            GuestMessage::Output(output) => self.agent_wrote(&output)?,
            GuestMessage::Exited(exit) => self.note_exit(exit),
            GuestMessage::Failed(failed) => return Err(guest_error(&failed)),
            GuestMessage::Ready(_) => {
                return Err(LaunchError::Protocol("the agent was ready twice".to_owned()));
            }
            // The channel lets no greeting through, and a command that has just ended reads no more.
            GuestMessage::Hello(_) | GuestMessage::Credit(_) => {}
        }
        Ok(())
    }

    /// Passes the agent's output on. What a command writes that nobody waits for any more is dropped, but
    /// granted: its end comes after all that it has written.
    fn agent_wrote(&mut self, output: &Output) -> Result<(), LaunchError> {
        if u32::from(output.id) != AGENT_ID {
            self.grant(output.id, Some(output.cost()));
            return Ok(());
        }
        self.agent_spoke |= !output.data.is_empty();
        let written = self.facts.agent_output.write(output.stream, &output.data);
        written.map_err(|error| self.not_written(error))?;
        let passed = self.agent_window.passed(output);
        self.grant(output.id, passed);
        Ok(())
    }

    /// Explains why output was not passed on: a signal ends the wait for the reader.
    fn not_written(&self, error: io::Error) -> LaunchError {
        if error.kind() != io::ErrorKind::WouldBlock {
            return LaunchError::Output(error);
        }
        match self.events.signals.next() {
            Ok(Some(signal)) => LaunchError::Signal(signal),
            Ok(None) => LaunchError::Output(error),
            Err(error) => error,
        }
    }

    const fn note_exit(&mut self, exit: Exited) {
        if exit.id == AGENT_ID {
            self.facts.agent_status = Some(exit.status);
        }
    }

    /// Explains an event that ends a run early.
    fn ended(&mut self, event: Event, when: &'static str) -> LaunchError {
        match event {
            Event::Signal(signal) => LaunchError::Signal(signal),
            Event::VmmEnded(_) if self.events.console.kvm_gave_up() => KvmError::Kernel.into(),
            Event::VmmEnded(status) => LaunchError::VmmEnded { status, when },
            Event::HungUp => match self.settle() {
                Some(ended @ Event::VmmEnded(_)) => self.ended(ended, when),
                _ => LaunchError::Protocol(format!("init closed it {when}")),
            },
            Event::Message(_) | Event::Deadline | Event::Input(_) | Event::Resized(_) => {
                LaunchError::Protocol("an event is lost".to_owned())
            }
        }
    }

    /// Gives a failing machine a moment to say its last words; returns what came instead of words.
    fn settle(&mut self) -> Option<Event> {
        let deadline = Instant::now() + SETTLE;
        loop {
            match self.events.next(Some(deadline)).ok()? {
                Event::Message(GuestMessage::Output(output)) => self.agent_wrote(&output).ok()?,
                Event::Message(_) | Event::HungUp | Event::Input(_) | Event::Resized(_) => {}
                event => return Some(event),
            }
        }
    }

    /// Puts to an error what helps to understand it: the console's end and the agent's output.
    fn failure(&mut self, error: LaunchError) -> RunFailure {
        if !matches!(
            error,
            LaunchError::Signal(_) | LaunchError::VmmEnded { .. } | LaunchError::Kvm(_)
        ) {
            drop(self.settle());
        }
        // The error at hand matters more than one while the last half line is written.
        drop(self.facts.agent_output.finish());
        let captured = self.facts.agent_output.captured();
        let output = captured.stdout() + &captured.stderr();
        let said = [
            ("the agent's output", shown_lines(&output)),
            ("the end of the machine's console", self.events.console.tail()),
        ];
        let said = said.map(|(source, words)| Said { source, words }).into();
        RunFailure { error, said }
    }
}

/// How much of a program's output has been passed on, and not granted again.
#[derive(Debug, Default)]
struct Window(u32);

impl Window {
    /// Notes that an output has been passed on; returns how many bytes to grant: not each few, and long before the
    /// program would have to wait.
    fn passed(&mut self, output: &Output) -> Option<u32> {
        self.0 = self.0.saturating_add(output.cost());
        (self.0 >= WINDOW / 4).then(|| std::mem::take(&mut self.0))
    }
}

/// How long a start may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    timeout: Duration,
    total: Option<Duration>,
}

impl Limits {
    const fn of(setup: &Setup<'_>) -> Self {
        Self { timeout: setup.startup_timeout, total: setup.enforced_total }
    }

    /// Returns the limit that is reached first.
    fn first(self) -> Duration {
        self.total.map_or(self.timeout, |total| total.min(self.timeout))
    }

    /// Returns `true` if a start without a ready agent has taken longer than the budget's total.
    ///
    /// # Errors
    /// [`LaunchError::Timeout`] if it has taken longer than the timeout.
    fn is_over_budget(self, taken: Duration) -> Result<bool, LaunchError> {
        if self.total.is_some_and(|total| taken >= total) {
            return Ok(true);
        }
        let timeout = self.timeout;
        if taken >= timeout { Err(LaunchError::Timeout(timeout.as_secs())) } else { Ok(false) }
    }
}

/// Verifies the blobs of a box before it is started.
fn verified(setup: &Setup<'_>) -> Result<Verification, LaunchError> {
    setup.watch.see(Progress::Verifying);
    let Setup { opened, receipts, trust, signals, .. } = *setup;
    let done = verify::boot_blobs(opened, receipts, trust, signals)?;
    if done.verified == Verified::Hashed {
        setup.watch.see(Progress::Hashed(done.hashing));
    }
    Ok(done)
}

fn guest_error(failed: &Failed) -> LaunchError {
    let start = |text: &str| shown(&text.chars().take(MAX_SHOWN).collect::<String>());
    LaunchError::Guest { step: start(&failed.step), message: start(&failed.message) }
}

#[cfg(test)]
mod tests;
