//! The VM of a box and its start, until the agent is ready.
//!
//! [`Machine::start`] returns when the agent is ready or the enforced total of the budget has passed. Then the
//! supervisor runs the VM. Dropping a [`Machine`] kills its VM and removes its sockets.

mod agent_socket;
pub mod clock;
mod error;
pub(crate) mod events;
pub mod health;
mod mounts;
mod prepare;
pub mod report;
mod setup;
mod unready;
pub mod variables;

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use box_contract::wire::{
    Credit, Exited, Failed, GuestMessage, HostMessage, MAX_QUESTIONS, OLDEST_PROTOCOL, Output,
    ProgramId, Question, Timing, Window,
};
use host_fs::OsError;
use nix::unistd::Pid;
use safe_text::secrets::mask_words;
use safe_text::shown;
use vmm::signals::Stopped;

use crate::host::error::KvmError;
use crate::machine::agent_socket::AgentSocket;
use crate::machine::report::RunFacts;
use crate::mounts::roots_disk::RootsDisk;
use crate::mounts::volumes::Volume;
use crate::network::passt::Device;
use crate::network::{Network, Published};
use crate::opened::check_enforced;
use crate::streams::StreamError;
use crate::streams::log::Logs;
use crate::streams::output::Route;
pub use error::{LastOutput, MachineError, RunFailure, because};
use events::{Event, Events, WatchedSignals};
use prepare::{Prepared, prepare};
pub use setup::{BoxToRun, HostResources, Progress, StartPolicy, Watch};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

/// The interval at which a start's [`Watch`] is called with the elapsed time.
const LOOK: Duration = Duration::from_secs(1);
/// Completes an error message about a VM that ended before its agent was ready.
const STARTING: &str = "before the agent was ready";
/// The greatest length of a guest's message that is shown, in characters.
const MAX_SHOWN: usize = 4096;

/// A started VM.
#[derive(Debug)]
pub struct Machine {
    // Rust drops the fields in this order, so the VM ends before its directory is removed.
    pub(crate) events: Events,
    /// Kept because a volume is locked until it is dropped.
    _volumes: Vec<Volume>,
    /// Kept because a kept disk is locked until it is dropped.
    _roots_disk: Option<RootsDisk>,
    device: Option<Device>,
    agent_socket: Option<AgentSocket>,
    pub(crate) network: Option<Network>,
    _runtime: RuntimeDir,
    agent_argv: Vec<String>,
    /// Whether the agent declares a health check.
    has_check: bool,
    /// Whether the agent has written anything.
    agent_spoke: bool,
    pub(crate) agent_window: Window,
    /// The questions about commands that the agent has run before it was ready.
    pub(crate) early_questions: Vec<Question>,
    pub(crate) logs: Logs,
    /// What is known about the run so far.
    pub facts: RunFacts,
}

impl Machine {
    /// Verifies the box, boots it, and returns when its agent is ready or the enforced total has passed: see
    /// [`RunFacts::is_ready`]. The [`Machine`] can only be used in the tokio runtime in which it was started.
    ///
    /// # Errors
    /// If the plan declares something that this version does not enforce, if a blob differs from its digest, or if the
    /// start fails, exceeds [`StartPolicy::startup_timeout`], or is ended by a signal. The caller must check that the host
    /// can run VMs ([`crate::host::ensure_kvm`]).
    pub async fn start(
        run: BoxToRun<'_>,
        mut gifts: HostResources,
        mut policy: StartPolicy<'_>,
    ) -> Result<Self, RunFailure> {
        check_enforced(run.opened)?;
        let prepared = prepare(&run, &mut gifts, &mut policy);
        let prepared = prepared.inspect_err(|_| policy.watch.see(Progress::Ended));
        let Prepared { verification, events, agent_socket, device, network, jail } = prepared?;
        let plan = run.opened.plan();
        let (limits, signals) = (Limits::of(&policy), WatchedSignals::new(policy.signals)?);
        let (output, watch) = (policy.agent_output, policy.watch);
        let mut machine = Self {
            events,
            _volumes: gifts.volumes,
            _roots_disk: gifts.roots_disk,
            device,
            agent_socket,
            network,
            _runtime: run.runtime,
            agent_argv: plan.agent.argv.clone(),
            has_check: plan.agent.health.is_some(),
            agent_spoke: false,
            agent_window: Window::default(),
            early_questions: Vec::new(),
            logs: policy.logs,
            facts: RunFacts::new(verification, jail),
        };
        let ready = machine.await_ready(limits, watch, output, &signals).await;
        watch.see(Progress::Ended);
        match ready {
            Ok(()) => Ok(machine),
            Err(error) => Err(machine.failure(error, output).await),
        }
    }

    /// Waits until the agent is ready or the enforced total has passed, and records the time that it took.
    async fn await_ready(
        &mut self,
        limits: Limits,
        watch: &dyn Watch,
        output: &mut Route,
        signals: &WatchedSignals<'_>,
    ) -> Result<(), MachineError> {
        let started = limits.started;
        loop {
            watch.see(Progress::Starting(started.elapsed()));
            let next_look = Instant::now() + LOOK;
            let deadline = next_look.min(started + limits.first());
            match self.events.next(Some(deadline), Some(signals)).await? {
                Event::Message(GuestMessage::Ready(timing)) => {
                    self.ready_after(started.elapsed(), &timing);
                    return Ok(());
                }
                Event::Message(message) => self.starting(message, output, signals.signals)?,
                Event::Deadline => {
                    let taken = started.elapsed();
                    if taken >= limits.first() {
                        self.facts.phases = clock::unready(taken);
                        self.facts.unready = self.why_unready(output, signals).await?;
                        return limits.judge(taken, self.facts.unready.clone());
                    }
                }
                event => return Err(self.ended(event, STARTING, output).await),
            }
        }
    }

    /// Records the duration of each phase of the start.
    fn ready_after(&mut self, taken: Duration, timing: &Timing) {
        let jail = Duration::from_nanos(self.facts.jail.taken_ns);
        self.facts.phases = clock::phases(taken, jail, timing);
        self.facts.is_ready = true;
    }

    /// Handles a message that comes before the agent is ready.
    fn starting(
        &mut self,
        message: GuestMessage,
        output: &mut Route,
        signals: &StopSignals,
    ) -> Result<(), MachineError> {
        match message {
            GuestMessage::Output(wrote) => self
                .agent_wrote(&wrote, output)
                .map_err(|error| StreamError::not_written(error, signals).into()),
            GuestMessage::Exited(exit) if exit.id == ProgramId::AGENT => {
                Err(self.agent_ended(exit))
            }
            GuestMessage::Failed(failed) => Err(guest_error(&failed)),
            GuestMessage::Question(question) => {
                if self.early_questions.len() < MAX_QUESTIONS {
                    self.early_questions.push(question);
                }
                Ok(())
            }
            GuestMessage::QuestionEnded(ended) => {
                self.early_questions.retain(|it| it.question != ended.question);
                Ok(())
            }
            // Only events for the log are left: the channel handles the greeting, and clients cannot run commands yet.
            other => {
                self.logs.keep(other, Instant::now());
                Ok(())
            }
        }
    }

    fn agent_ended(&self, exit: Exited) -> MachineError {
        let (mut argv, status) = (self.agent_argv.clone(), exit.status);
        mask_words(&mut argv);
        let lacked_memory = exit.lacked_memory();
        let (argv, was_silent) = (argv.join(" "), !self.agent_spoke);
        MachineError::AgentEnded { status, argv, was_silent, lacked_memory }
    }

    /// Returns the path of the socket that leads to the agent's port.
    pub fn agent_socket(&self) -> Option<&Path> {
        self.agent_socket.as_ref().map(AgentSocket::path)
    }

    /// Returns whether a client of the agent's socket is connected.
    pub(crate) fn has_agent_clients(&self) -> bool {
        self.agent_socket.as_ref().is_some_and(AgentSocket::has_clients)
    }

    /// Returns the ports on the host through which clients reach components.
    pub fn published(&self) -> &[Published] {
        self.network.as_ref().map_or(&[], |it| &it.published)
    }

    /// Returns the processes for which this value waits: the VMM's and, if there is one, passt's.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        let vmm = Pid::from_raw(self.vmm().cast_signed());
        [vmm].into_iter().chain(self.device.as_ref().and_then(Device::process)).collect()
    }

    /// Begins to accept the clients of ports that another box has handed over.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn open_ports(&mut self) -> Result<(), OsError> {
        self.network.as_mut().map_or(Ok(()), |it| it.ports.open())
    }

    /// Returns the process id of the VMM.
    pub fn vmm(&self) -> u32 {
        self.events.vmm_pid()
    }

    /// Returns the version of the protocol that the box's init uses.
    pub fn protocol(&self) -> u32 {
        self.events.protocol().unwrap_or(OLDEST_PROTOCOL)
    }

    /// Logs the agent's output, and writes it to `output`.
    fn agent_wrote(&mut self, wrote: &Output, output: &mut Route) -> io::Result<()> {
        self.agent_spoke |= !wrote.data.is_empty();
        self.logs.write(wrote, Instant::now());
        output.write(wrote.stream, &wrote.data)?;
        let passed = self.agent_window.passed(wrote.cost());
        passed.into_iter().for_each(|bytes| self.grant(wrote.id, bytes));
        Ok(())
    }

    /// Permits a program to write `bytes` more bytes ([`Credit`]), because the host has processed that many.
    pub(crate) fn grant(&self, id: ProgramId, bytes: u32) {
        self.tell(&HostMessage::Credit(Credit { id, bytes }));
    }

    /// Sends a message to init and ignores a failure: if init has closed the channel, one of the next events has the
    /// reason.
    pub(crate) fn tell(&self, message: &HostMessage) {
        drop(self.events.send(message));
    }

    /// Explains an event that ends a start early.
    async fn ended(
        &mut self,
        event: Event,
        when: &'static str,
        output: &mut Route,
    ) -> MachineError {
        let mut messages = Vec::new();
        let error = explain_end(&mut self.events, event, when, &mut |it| messages.push(it)).await;
        self.take_rest(messages, output);
        error
    }

    /// Handles the messages that arrived while the VM was ending: logs them, and passes the agent's output on.
    fn take_rest(&mut self, messages: Vec<GuestMessage>, output: &mut Route) {
        for message in messages {
            match message {
                // The error at hand matters more than a failure to write this output.
                GuestMessage::Output(wrote) => drop(self.agent_wrote(&wrote, output)),
                other => self.logs.keep(other, Instant::now()),
            }
        }
    }

    /// Adds to an error the output that may explain it: the agent's output and the end of the console.
    async fn failure(&mut self, error: MachineError, output: &mut Route) -> RunFailure {
        if !error.is_an_end() {
            let mut messages = Vec::new();
            self.events.settle(&mut |it| messages.push(it)).await;
            self.take_rest(messages, output);
        }
        // The error at hand matters more than a failure to write the last incomplete line.
        drop(output.finish());
        let last_output = vec![LastOutput::output(output), self.console_end()];
        RunFailure { error, last_output }
    }

    /// Returns the end of the console.
    pub(crate) fn console_end(&self) -> LastOutput {
        let text = self.events.console.tail();
        LastOutput { source: "the end of the guest's console", text }
    }
}

/// Returns the error for an event that ends a VM early. If init hung up, waits for the VM's end first, and calls `each`
/// with the remaining messages from init.
pub(crate) async fn explain_end(
    events: &mut Events,
    event: Event,
    when: &'static str,
    each: &mut dyn FnMut(GuestMessage),
) -> MachineError {
    let event = match event {
        Event::HungUp => match events.settle(each).await {
            Some(ended @ Event::VmmEnded(_)) => ended,
            _ => return StreamError::Protocol(format!("init closed it {when}")).into(),
        },
        event => event,
    };
    match event {
        Event::Signal(signal) => MachineError::Stopped(Stopped(signal)),
        Event::VmmEnded(_) if events.console.kvm_gave_up() => KvmError::Kernel.into(),
        Event::VmmEnded(status) => MachineError::VmmEnded { status, when },
        Event::Message(_) | Event::Deadline | Event::HungUp => {
            StreamError::Protocol("an event is lost".to_owned()).into()
        }
    }
}

/// The time limits of a start.
#[derive(Debug, Clone, Copy)]
struct Limits {
    started: Instant,
    timeout: Duration,
    total: Option<Duration>,
}

impl Limits {
    const fn of(policy: &StartPolicy<'_>) -> Self {
        let (started, timeout) = (policy.started, policy.startup_timeout);
        Self { started, timeout, total: policy.enforced_total }
    }

    /// Returns the shorter of the two limits.
    fn first(self) -> Duration {
        self.total.map_or(self.timeout, |total| total.min(self.timeout))
    }

    /// Decides whether a start that has reached a limit without a ready agent is an error. At the enforced total it is not,
    /// because the caller then stops the box and reports the exceeded budget.
    ///
    /// # Errors
    /// [`MachineError::Timeout`], with the reason why the agent is not ready.
    fn judge(self, taken: Duration, reason: Option<String>) -> Result<(), MachineError> {
        if self.total.is_some_and(|total| taken >= total) {
            return Ok(());
        }
        Err(MachineError::Timeout { seconds: self.timeout.as_secs(), reason })
    }
}

/// Returns the error for a step that init reported as failed.
pub(crate) fn guest_error(failed: &Failed) -> MachineError {
    let start = |text: &str| shown(&text.chars().take(MAX_SHOWN).collect::<String>());
    MachineError::Guest { step: start(&failed.step), message: start(&failed.message) }
}

#[cfg(test)]
mod tests;
