//! The machine of a box: its start, until the agent is ready.
//!
//! [`Machine::start`] returns when the agent is ready or its budget is used up; what comes after that is the
//! supervisor's. Dropping a machine kills it, and removes its sockets.

mod agent_socket;
pub mod clock;
mod error;
pub(crate) mod events;
pub mod health;
mod mounts;
pub mod report;
mod unready;
pub mod variables;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use box_contract::wire::{
    Connect, Credit, Exited, Failed, GuestMessage, HostMessage, OLDEST_PROTOCOL, Output, ProgramId,
    Secret, Timing, Window,
};
use box_contract::{NetworkMode, Vm as Size};
use box_layout::OpenBox;
use host_fs::OsError;
use safe_text::secrets::mask_words;
use safe_text::shown;
use vmm::signals::Stopped;

use crate::host::error::KvmError;
use crate::machine::agent_socket::{AgentSocket, places};
use crate::machine::report::RunFacts;
use crate::mounts::shares::{self, Share};
use crate::mounts::volumes::Volume;
use crate::network::passt::{self, Device};
use crate::network::{self, Given, Network, Published};
use crate::opened::check_enforced;
use crate::opened::receipt::Receipts;
use crate::opened::verify::{self, Trust, Verification, Verified};
use crate::streams::StreamError;
use crate::streams::console::Console;
use crate::streams::control::Listener;
use crate::streams::log::Logs;
use crate::streams::output::Route;
pub use error::{MachineError, RunFailure, Said, because};
use events::{Event, Events, WatchedSignals};
use variables::GivenVariable;
use vmm::Nonce;
use vmm::confine;
use vmm::jail::{Missing, Policy, Report};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;
use vmm::{BlobFds, CONTROL_SOCKET, Vmm, VmmConfig};

/// How often somebody who watches a start is shown the time.
const LOOK: Duration = Duration::from_secs(1);
/// How the end of a machine is described that comes before its agent is ready.
const STARTING: &str = "before the agent was ready";
/// Only this much of a guest's message is shown, in bytes.
const MAX_SHOWN: usize = 4096;

/// The arguments of [`Machine::start`].
#[derive(Debug)]
pub struct Setup<'a> {
    /// The box.
    pub opened: &'a OpenBox,
    /// The machine's size, which is the box's unless somebody asked for another.
    pub size: Size,
    /// The program that is started as the VMM, with the argument [`vmm::SUBCOMMAND`].
    pub program: &'a Path,
    /// The directories in which passt is looked for, as in a `PATH`, where the box shares the network of its host.
    pub programs: &'a OsStr,
    /// The device of KVM, whose group the VMM process is to be in.
    pub device: &'a Path,
    /// The receipts of earlier verifications.
    pub receipts: &'a Receipts,
    /// Whether they are used.
    pub trust: Trust,
    /// The run's private directory.
    pub runtime: RuntimeDir,
    /// The plan's scratch disks, in their order.
    pub disks: Vec<File>,
    /// Disks that stay, in the order of the devices.
    pub volumes: Vec<Volume>,
    /// The variables that were given for this run; each that the plan requires is among them.
    pub variables: Vec<GivenVariable>,
    /// The values of the plan's secrets, in their order.
    pub secrets: Vec<Secret>,
    /// The directories of the host that components see, those of the plan among them.
    pub shares: Vec<Share>,
    /// The task, instead of that of the plan.
    pub task: Option<box_contract::TaskPlan>,
    /// The network that the box gets.
    pub network: &'a Given,
    /// The ports of components that clients on the host can connect to.
    pub published: Vec<Published>,
    /// Where the agent's socket is made; by default in the private directory.
    pub agent_socket: Option<PathBuf>,
    /// The file for the start of the console.
    pub console: Option<File>,
    /// Where the agent's output is kept.
    pub logs: Logs,
    /// Where else it goes until the agent is ready.
    pub agent_output: &'a mut Route,
    /// The signals that end the start early.
    pub signals: &'a StopSignals,
    /// When the program started, without what it did only this time. The hashing of blobs is no part of
    /// the start either: the clock is set forward by what it took.
    pub started: Instant,
    /// How long the start may take before it is an error.
    pub startup_timeout: Duration,
    /// How long the start may take before [`Machine::start`] returns without a ready agent.
    pub enforced_total: Option<Duration>,
    /// How to treat a host on which the jail lacks a layer.
    pub jail: Policy,
    /// Sees how far the start is.
    pub watch: &'a dyn Watch,
}

/// How far a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The box's files are verified now, which takes seconds where large ones have to be hashed.
    Verifying,
    /// They had to be hashed, which took this long.
    Hashed(Duration),
    /// The machine's process is confined, without these layers of the jail; its guest has not started.
    Confined(&'a [Missing]),
    /// The machine was started; this much of the start's time has passed.
    Starting(Duration),
    /// The start has ended, well or not.
    Ended,
}

/// Sees how far a start is, to show it to a person.
pub trait Watch: std::fmt::Debug {
    /// Is called at each step, and about once a second while the machine starts.
    fn see(&self, progress: Progress<'_>);
}

/// Nobody watches.
impl Watch for () {
    fn see(&self, _: Progress<'_>) {}
}

/// A started machine.
#[derive(Debug)]
pub struct Machine {
    // Dropped in this order: the machine ends before its directory is removed.
    pub(crate) events: Events,
    /// Locked until the machine has ended.
    _volumes: Vec<Volume>,
    _device: Option<Device>,
    agent_socket: Option<AgentSocket>,
    pub(crate) network: Option<Network>,
    _runtime: RuntimeDir,
    agent_argv: Vec<String>,
    /// Whether the agent declares a health check.
    has_check: bool,
    /// Whether the agent has written anything.
    agent_spoke: bool,
    pub(crate) agent_window: Window,
    pub(crate) logs: Logs,
    /// The facts of the run so far.
    pub facts: RunFacts,
}

impl Machine {
    /// Verifies the box, boots it, and returns when its agent is ready; see
    /// [`RunFacts::is_ready`] for when it is not. Belongs to the runtime that it is called in.
    ///
    /// # Errors
    /// When the plan declares what this version does not enforce, a blob differs, or the start fails,
    /// takes too long or is ended by a signal. That the host can run machines at all, the caller
    /// has made sure of ([`crate::host::ensure_kvm`]).
    pub async fn start(mut setup: Setup<'_>) -> Result<Self, RunFailure> {
        check_enforced(setup.opened)?;
        let prepared = prepare(&mut setup).inspect_err(|_| setup.watch.see(Progress::Ended));
        let Prepared { verification, events, agent_socket, device, network, jail } = prepared?;
        let plan = setup.opened.plan();
        setup.started += verification.hashing;
        let (limits, signals) = (Limits::of(&setup), WatchedSignals::new(setup.signals)?);
        let (output, watch) = (setup.agent_output, setup.watch);
        let mut machine = Self {
            events,
            _volumes: setup.volumes,
            _device: device,
            agent_socket,
            network,
            _runtime: setup.runtime,
            agent_argv: plan.agent.argv.clone(),
            has_check: plan.agent.health.is_some(),
            agent_spoke: false,
            agent_window: Window::default(),
            logs: setup.logs,
            facts: RunFacts::new(verification, jail),
        };
        let ready = machine.await_ready(limits, watch, output, &signals).await;
        watch.see(Progress::Ended);
        match ready {
            Ok(()) => Ok(machine),
            Err(error) => Err(machine.failure(error, output).await),
        }
    }

    /// Waits until the agent is ready or the enforced total has passed, and notes what was taken.
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

    /// Notes what the start has taken.
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
            // Events, which are kept. The channel lets no greeting through, and no command runs yet.
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

    /// Returns the socket that leads to the agent's port.
    pub fn agent_socket(&self) -> Option<&Path> {
        self.agent_socket.as_ref().map(AgentSocket::path)
    }

    /// Returns the ports of components that clients can connect to, as they are on the host.
    pub fn published(&self) -> &[Published] {
        self.network.as_ref().map_or(&[], |it| &it.published)
    }

    /// Returns the process id of the VMM.
    pub fn vmm(&self) -> u32 {
        self.events.vmm_pid()
    }

    /// Returns the protocol that the box's init speaks.
    pub fn protocol(&self) -> u32 {
        self.events.protocol().unwrap_or(OLDEST_PROTOCOL)
    }

    /// Keeps the agent's output, and passes it on.
    fn agent_wrote(&mut self, wrote: &Output, output: &mut Route) -> io::Result<()> {
        self.agent_spoke |= !wrote.data.is_empty();
        self.logs.write(wrote, Instant::now());
        output.write(wrote.stream, &wrote.data)?;
        let passed = self.agent_window.passed(wrote.cost());
        passed.into_iter().for_each(|bytes| self.grant(wrote.id, bytes));
        Ok(())
    }

    /// Lets a program write as much again as was passed on.
    pub(crate) fn grant(&self, id: ProgramId, bytes: u32) {
        self.tell(&HostMessage::Credit(Credit { id, bytes }));
    }

    /// Sends what an init that is gone need not know: the next event says why it is, after all that it has sent.
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
        let mut said = Vec::new();
        let error = explain_end(&mut self.events, event, when, &mut |it| said.push(it)).await;
        self.take_rest(said, output);
        error
    }

    /// Keeps what the agent has written while the machine was about to end.
    fn take_rest(&mut self, messages: Vec<GuestMessage>, output: &mut Route) {
        for message in messages {
            match message {
                // The error at hand matters more than one of writing this.
                GuestMessage::Output(wrote) => drop(self.agent_wrote(&wrote, output)),
                other => self.logs.keep(other, Instant::now()),
            }
        }
    }

    /// Puts to an error what helps to understand it: the console's end and the agent's output.
    async fn failure(&mut self, error: MachineError, output: &mut Route) -> RunFailure {
        if !error.is_an_end() {
            let mut said = Vec::new();
            self.events.settle(&mut |it| said.push(it)).await;
            self.take_rest(said, output);
        }
        // The error at hand matters more than one while the last half line is written.
        drop(output.finish());
        let said = vec![Said::output(output), self.console_end()];
        RunFailure { error, said }
    }

    /// Returns the end of the console.
    pub(crate) fn console_end(&self) -> Said {
        let words = self.events.console.tail();
        Said { source: "the end of the machine's console", words }
    }
}

/// Explains an event that ends a machine before its time; `each` is called with what init has still sent.
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

/// How long a start may take.
#[derive(Debug, Clone, Copy)]
struct Limits {
    started: Instant,
    timeout: Duration,
    total: Option<Duration>,
}

impl Limits {
    const fn of(setup: &Setup<'_>) -> Self {
        let (started, timeout) = (setup.started, setup.startup_timeout);
        Self { started, timeout, total: setup.enforced_total }
    }

    /// Returns the limit that is reached first.
    fn first(self) -> Duration {
        self.total.map_or(self.timeout, |total| total.min(self.timeout))
    }

    /// Judges a start without a ready agent that has used up one of its limits: the budget's total is no error here.
    ///
    /// # Errors
    /// [`MachineError::Timeout`], with why the agent is not ready.
    fn judge(self, taken: Duration, why: Option<String>) -> Result<(), MachineError> {
        if self.total.is_some_and(|total| taken >= total) {
            return Ok(());
        }
        Err(MachineError::Timeout { seconds: self.timeout.as_secs(), why })
    }
}

/// A VMM process that has got its box.
#[derive(Debug)]
struct Prepared {
    verification: Verification,
    events: Events,
    agent_socket: Option<AgentSocket>,
    device: Option<Device>,
    network: Option<Network>,
    /// Empty where the process has ended, as the events say.
    jail: Report,
}

/// Verifies the box and starts the VMM process, with the same open files.
fn prepare(setup: &mut Setup<'_>) -> Result<Prepared, MachineError> {
    let (runtime, wanted) = (&setup.runtime, setup.agent_socket.clone());
    let port = setup.opened.plan().agent.port;
    let agent = port.map(|it| places(it, wanted, runtime)).transpose()?;
    let listener = Listener::bind(runtime.vmm_socket(CONTROL_SOCKET)?)?;
    let plan = &setup.opened.plan().network;
    let network = network::Sockets::make(runtime, plan, &setup.published)?;
    let carrier = passt::find(setup.network, setup.programs)?;
    let has_device = plan.mode == NetworkMode::Shared;
    let has_mounts = mounts::message(setup, (u32::MAX, u32::MAX))?.is_some();
    let verification = verified(setup)?;
    // A start over its budget is judged when it is known what has taken so long.
    let deadline = setup.started + verification.hashing + setup.startup_timeout;
    let kept = setup.volumes.iter().map(|it| &it.disk);
    let disks: Vec<_> = setup.disks.iter().chain(kept).collect();
    let made = has_device.then(|| Device::make(carrier.as_deref())).transpose()?;
    let (mut network_device, device_end) = made.unzip();
    let socket = device_end.as_ref().map(AsFd::as_fd);
    let mut vmm = Vmm::spawn(setup.program, setup.opened, &disks, socket)?;
    let blobs = setup.opened.boot_blobs().map(|blob| &blob.file);
    let shares = shares::directories(&setup.shares);
    let (device, policy) = (setup.device, setup.jail);
    let terms = confine::terms(blobs, &disks, device, runtime, policy, shares, &mut vmm)?;
    let nonce = Nonce::random()?;
    let (plan, log) = ((setup.opened.plan(), setup.network), setup.logs.network());
    let network = network.map(|it| Network::serve(it, plan, vmm.pid(), log)).transpose()?;
    let agent_socket = agent.map(AgentSocket::serve).transpose()?;
    let config = String::from_utf8(setup.opened.config_bytes.clone()).map_err(io::Error::other);
    vmm.configure(&VmmConfig {
        size: setup.size,
        blobs: BlobFds::of(setup.opened),
        config: config.map_err(OsError::system("read the box's config"))?,
        disks: setup.disks.iter().map(AsRawFd::as_raw_fd).collect(),
        volumes: setup.volumes.iter().map(|it| it.disk.as_raw_fd()).collect(),
        largest_disk: mounts::largest_disk(setup),
        nonce: nonce.clone(),
        agent: agent_socket.as_ref().map(|socket| socket.port),
        shared_network: socket.map(|it| it.as_raw_fd()),
        has_network: network.is_some(),
        has_mounts,
        jail: terms,
    })?;
    let serving = network_device.as_ref().and_then(Device::process);
    let until = (deadline, setup.signals);
    let jail = confine::finish(setup.size, runtime, setup.jail, &mut vmm, serving, until)?;
    if let Some(jail) = &jail {
        setup.watch.see(Progress::Confined(&jail.missing));
        setup.volumes.iter().try_for_each(Volume::note_use)?;
        network_device.as_mut().map(Device::serve).transpose()?;
        vmm.go();
    }
    // The machine alone has them open now.
    setup.disks.clear();
    let console = Console::new(setup.console.take());
    let secrets = std::mem::take(&mut setup.secrets);
    let ids = jail.as_ref().map_or_else(Default::default, |it| it.ids);
    let connect = |port: &Published| HostMessage::Connect(Connect { component: port.component });
    let variables = variables::messages(setup.opened.plan(), &setup.variables);
    let mut first: Vec<_> = variables.into_iter().map(HostMessage::Variable).collect();
    first.extend(secrets.into_iter().map(HostMessage::Secret));
    first.extend(mounts::message(setup, ids)?);
    first.extend(setup.published.iter().map(connect));
    let events = Events::new(vmm, listener, (nonce, first), console)?;
    let jail = jail.unwrap_or_default();
    Ok(Prepared { verification, events, agent_socket, device: network_device, network, jail })
}

/// Verifies the blobs of a box before it is started.
fn verified(setup: &Setup<'_>) -> Result<Verification, MachineError> {
    setup.watch.see(Progress::Verifying);
    let Setup { opened, receipts, trust, signals, .. } = *setup;
    let done = verify::boot_blobs(opened, receipts, trust, signals)?;
    if done.verified == Verified::Hashed {
        setup.watch.see(Progress::Hashed(done.hashing));
    }
    Ok(done)
}

/// Returns the error of something that init could not do.
pub(crate) fn guest_error(failed: &Failed) -> MachineError {
    let start = |text: &str| shown(&text.chars().take(MAX_SHOWN).collect::<String>());
    MachineError::Guest { step: start(&failed.step), message: start(&failed.message) }
}

#[cfg(test)]
mod tests;
