//! The supervisor of a running box, which serves the box's clients until the box ends.
//!
//! ```text
//! init ◀── control channel ──▶ Supervisor ◀── Unix sockets ──▶ clients: run, exec, attach, stop …
//! ```
//!
//! The supervisor is one thread that waits for all events at once and never for a single client: output that a client
//! does not read waits in a queue for that client. The agent and each command have a window for their output (see
//! [`box_contract::wire`]). The window is granted again when the bytes have been written to every client that follows
//! the program, so a queue stays small, and backpressure reaches only the program whose output is not read.

pub(crate) mod approvals;
mod asked;
mod clients;
mod hand_over;
mod idle;
mod network;
mod orphans;
mod programs;
mod restart;
mod task;
mod wall_clock;
mod watch;

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use box_contract::wire::{
    Exited, Failed, Follow, GuestMessage, HostMessage, HostTime, Output, ProgramId, Shutdown,
};
use box_contract::{ComponentName, PeerPlan};
use egress_proxy::LOOKUPS;
use host_fs::OsError;
use host_fs::named::FileSlot;
use tokio::runtime::{Builder, Runtime};

use crate::boxes::Entry;
use crate::boxes::task::EndedTask;
use crate::machine::events::{Event, WatchedSignals};
use crate::machine::{
    BoxToRun, HostResources, Machine, MachineError, RunFailure, StartPolicy, explain_end,
    guest_error,
};
use crate::streams::StreamError;
use crate::streams::control::watched;
use crate::supervisor::wall_clock::WallClock;
use approvals::Approvals;
use clients::Clients;
use hand_over::Retiring;
use orphans::Orphans;
use programs::Programs;
use watch::{WATCHER, Watch};

pub use idle::Idle;
pub use restart::{Restart, delay};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

/// The name of the supervisor's socket in a box's runtime directory.
pub const SOCKET: &str = "supervisor.sock";
/// How long a VM may take to power off after its programs have ended.
const POWER_OFF: Duration = Duration::from_secs(5);
/// The step in the supervisor's error message about a VM that has failed.
pub(crate) const RUN: &str = "run the box";
/// Completes an error message about a VM that ended without a request.
const WHEN: &str = "while the box ran";

/// The result of serving a box: its task, if it had one.
pub type Served = Result<Option<EndedTask>, RunFailure>;

/// The end of a box.
#[derive(Debug)]
pub struct Ended {
    /// The box's task, if it had one, or why the run failed.
    pub served: Served,
    /// The exit status of the agent, if it has ended by itself.
    pub status: Option<u8>,
    /// The record, if the box is to be started again.
    pub again: Option<Entry>,
    /// How long the box was not used, for [`Terms::idle`] of the next start.
    pub idle: Option<Idle>,
}

/// A started box that is not served yet.
#[derive(Debug)]
pub struct Started {
    runtime: Runtime,
    listener: UnixListener,
    /// The VM.
    pub machine: Machine,
}

impl Started {
    /// Starts a VM. Clients can already connect to the socket in the runtime directory, and wait until the box is
    /// served.
    ///
    /// # Errors
    /// The errors of [`Machine::start`].
    pub fn new(
        run: BoxToRun<'_>,
        gifts: HostResources,
        policy: StartPolicy<'_>,
    ) -> Result<Self, RunFailure> {
        let runtime =
            Builder::new_current_thread().enable_all().max_blocking_threads(LOOKUPS).build();
        let runtime = runtime.map_err(OsError::system("make the supervisor's runtime"))?;
        let listener = listen(&run.runtime)?;
        match runtime.block_on(Machine::start(run, gifts, policy)) {
            Ok(machine) => Ok(Self { runtime, listener, machine }),
            Err(error) => {
                // Unlike a drop, this does not wait for a name lookup that may still run.
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Accepts the clients of the ports that another box has handed over.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn open_ports(&mut self) -> Result<(), OsError> {
        let _runtime = self.runtime.enter();
        self.machine.open_ports()
    }

    /// Writes the logs to the directory of `entry`, after the record was renamed.
    pub fn move_logs(&mut self, entry: &Entry) {
        self.machine.logs.move_to(entry.directory());
    }

    /// Serves the box on a new thread. Returns a connection to the supervisor, and the thread, whose result has the
    /// box's task.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn serve_beside(
        self,
        entry: Entry,
        terms: Terms,
    ) -> Result<(UnixStream, JoinHandle<Served>), MachineError> {
        let action = "start the supervisor";
        let (ours, theirs) = UnixStream::pair().map_err(OsError::system(action))?;
        let serve = move || self.serve(entry, terms, None, Some(theirs)).served;
        let thread = thread::Builder::new().name("supervisor".to_owned()).spawn(serve);
        Ok((ours, thread.map_err(OsError::system(action))?))
    }

    /// Serves the box until it ends or a signal requests its end.
    pub fn serve_here(self, entry: Entry, terms: Terms, signals: &StopSignals) -> Ended {
        self.serve(entry, terms, Some(signals), None)
    }

    fn serve(
        self,
        entry: Entry,
        mut terms: Terms,
        signals: Option<&StopSignals>,
        first: Option<UnixStream>,
    ) -> Ended {
        let Self { runtime, listener, mut machine } = self;
        let ended: Result<Ended, MachineError> = runtime.block_on(async {
            let signals = signals.map(WatchedSignals::new).transpose()?;
            let mut clients = Clients::new(listener)?;
            if let Some(first) = first {
                let stream = watched(first);
                let stream = stream.map_err(OsError::system("serve the first client"))?;
                clients.welcome_first(stream);
            }
            let programs = Programs::new(std::mem::take(&mut machine.agent_window));
            let is_watched = terms.restart.is_some_and(|it| it.unhealthy);
            let supervisor = Supervisor {
                machine,
                watch: is_watched.then(|| Watch::new(terms.health_interval)),
                idle: terms.idle.take(),
                unhealthy: None,
                was_asked: false,
                sent_signal: None,
                given: std::mem::take(&mut terms.given),
                entry,
                clients,
                approvals: Approvals::default(),
                programs,
                terms,
                kill_at: None,
                agent_exit: None,
                status: None,
                measured_for: VecDeque::new(),
                wall_clock: WallClock::new()?,
                orphans: Orphans::new(),
                reported: BTreeSet::new(),
                result: Vec::new(),
                has_failed: false,
                successor: None,
                retiring: None,
            };
            Ok(supervisor.run(signals.as_ref()).await)
        });
        runtime.shutdown_background();
        ended.unwrap_or_else(|error| Ended {
            served: Err(error.into()),
            status: None,
            again: None,
            idle: None,
        })
    }
}

/// Creates the supervisor's socket in a directory to which only this user has access.
fn listen(directory: &RuntimeDir) -> Result<UnixListener, MachineError> {
    let path = directory.socket(SOCKET)?;
    Ok(UnixListener::bind(&path).map_err(OsError::file("make", &path))?)
}

/// When and how a box ends.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Whether the box ends when its agent ends.
    pub ends_with_agent: bool,
    /// How long the programs of the box may take to end, after the agent's end or after a signal.
    pub grace: Duration,
    /// The path for the result of the box's task, if there is one.
    pub result: Option<Arc<FileSlot>>,
    /// The addresses outside the internet that the command line permits.
    pub given: Vec<PeerPlan>,
    /// When the box is started again.
    pub restart: Option<Restart>,
    /// The time between two checks of the agent's health, if [`Restart::unhealthy`] needs them.
    pub health_interval: Duration,
    /// How long the box was not used, and may be unused before it is stopped; without a limit if `None`.
    pub idle: Option<Idle>,
    /// Whether commands that the policy asks about wait for an answer even while no client can answer. If false, they are then
    /// denied at once.
    pub waits_for_answers: bool,
}

/// The state of a served box.
#[derive(Debug)]
struct Supervisor {
    machine: Machine,
    entry: Entry,
    clients: Clients,
    approvals: Approvals,
    programs: Programs,
    terms: Terms,
    /// When to kill the VM, once its end was requested.
    kill_at: Option<Instant>,
    /// How the agent ended; `None` while it runs.
    agent_exit: Option<Exited>,
    /// The agent's status for the record; `None` if the agent was stopped after the command for which the box was
    /// started.
    status: Option<u8>,
    /// The clients that wait for a [`GuestMessage::Usage`]. The guest answers in this order.
    measured_for: VecDeque<u64>,
    wall_clock: WallClock,
    orphans: Orphans,
    /// The addresses outside the internet that the command line has permitted.
    given: Vec<PeerPlan>,
    /// The denials that were already sent to clients.
    reported: BTreeSet<(ComponentName, String)>,
    /// The bytes of the task's result that have arrived.
    result: Vec<u8>,
    /// Whether the box is ending because of an error.
    has_failed: bool,
    /// The client that has the sockets of this box, because it is the supervisor of the box that replaces this one.
    successor: Option<u64>,
    /// The end of the box after another one has replaced it.
    retiring: Option<Retiring>,
    /// The checks of the agent's health, if a policy needs them.
    watch: Option<Watch>,
    /// How long the box was not used, if there is a limit.
    idle: Option<Idle>,
    /// Why the watch stops the box.
    unhealthy: Option<String>,
    /// Whether a user or a service manager asked for the end of the box.
    was_asked: bool,
    /// The last signal that a client has sent to the agent. If it ends the agent, a user asked for that end.
    sent_signal: Option<i32>,
}

/// Whether to continue to serve the box.
type Flow = ControlFlow<()>;

const CONTINUE: Flow = ControlFlow::Continue(());
const BREAK: Flow = ControlFlow::Break(());

impl Supervisor {
    /// Serves the box until it ends, and records the end.
    async fn run(mut self, signals: Option<&WatchedSignals<'_>>) -> Ended {
        let served = self.serve(signals).await;
        self.has_failed = served.is_err();
        if served.as_ref().is_err_and(|error| !error.is_an_end()) {
            self.settle().await;
        }
        let killed = self.machine.events.kill().await;
        let (task, written) = self.ended_task();
        let unhealthy = self.unhealthy.take().map_or(Ok(()), |it| Err(MachineError::Unhealthy(it)));
        let served = served.and(unhealthy);
        let ended = served.and(killed.and(written).map_err(MachineError::from));
        let status = self.status.filter(|_| !self.was_asked);
        let failure = ended.as_ref().err().map(ToString::to_string);
        let incomplete = self.log_failure();
        let again = self.next_restart(failure.as_deref());
        let error = failure.or(incomplete);
        let Self { machine, mut entry, mut clients, status: agent, idle, .. } = self;
        let again = if let Some(restarted) = again {
            entry.rest(agent, restarted);
            Some(entry)
        } else {
            // Ignore a failure: the next command then finds the lock free, and records the end.
            drop(entry.end(agent, error));
            None
        };
        let last_output = vec![machine.console_end()];
        // End the VM before clients are informed of the end, because they must find the VM gone.
        drop(machine);
        if let Err(error) = &ended {
            clients.tell_all(&failed(RUN, &error.to_string()));
        }
        clients.close().await;
        let served = ended.map(|()| task).map_err(|error| RunFailure { error, last_output });
        Ended { served, status, again, idle }
    }

    /// Handles the last messages of a VM that has failed.
    async fn settle(&mut self) {
        let mut messages = Vec::new();
        self.machine.events.settle(&mut |it| messages.push(it)).await;
        for message in messages {
            // The error that ended the box matters more than an error here.
            drop(self.serve_guest(message));
        }
    }

    /// Writes the delayed changes of the record and the delayed entries of the logs.
    fn write_due(&mut self, now: Instant) {
        self.entry.write_due(now);
        self.machine.logs.write_due(now);
    }

    fn log_failure(&mut self) -> Option<String> {
        self.machine.logs.finish();
        self.machine.logs.failed().map(|error| format!("its log is not complete: {error}"))
    }

    fn tell_time(&mut self, now_ns: u64) {
        self.machine.tell(&HostMessage::Clock(HostTime { now_ns }));
    }

    async fn serve(&mut self, signals: Option<&WatchedSignals<'_>>) -> Result<(), MachineError> {
        for question in std::mem::take(&mut self.machine.early_questions) {
            self.question_asked(question);
        }
        self.tell_time(wall_clock::now_ns());
        loop {
            let flow = tokio::select! {
                event = self.machine.events.next(self.kill_at, signals) => self.take(event?).await?,
                message = self.clients.next() => self.serve_client(message),
                denied = network::next_denied(self.machine.network.as_mut()) => {
                    self.tell_denied(&denied);
                    CONTINUE
                }
                granted = self.programs.next_granted() => {
                    self.grant(granted);
                    CONTINUE
                }
                () = hand_over::drained(self.retiring.as_ref()) => self.retire(),
                now_ns = self.wall_clock.next() => {
                    self.tell_time(now_ns);
                    CONTINUE
                }
                () = watch::due(self.watch.as_ref()) => self.check_health(),
                () = idle::due(self.idle.as_ref()) => self.check_idle(),
                () = self.orphans.due() => {
                    orphans::reap(&self.machine.processes());
                    CONTINUE
                }
                () = due(self.entry.due(), self.machine.logs.due()) => {
                    self.write_due(Instant::now());
                    CONTINUE
                }
            };
            if flow == BREAK {
                return Ok(());
            }
        }
    }

    /// Handles an event of the VM.
    async fn take(&mut self, event: Event) -> Result<Flow, MachineError> {
        match event {
            Event::Message(message) => self.serve_guest(message),
            Event::Signal(_) => {
                self.was_asked = true;
                let is_second = self.kill_at.is_some();
                Ok(if is_second { BREAK } else { self.begin_stop(self.terms.grace) })
            }
            _ if self.kill_at.is_some() => Ok(BREAK),
            event => {
                let mut messages = Vec::new();
                let each = &mut |it| messages.push(it);
                let error = explain_end(&mut self.machine.events, event, WHEN, each).await;
                for message in messages {
                    // The VM has ended, so the returned flow has no meaning.
                    let _ = self.serve_guest(message)?;
                }
                Err(error)
            }
        }
    }

    /// Handles a message from init.
    fn serve_guest(&mut self, message: GuestMessage) -> Result<Flow, MachineError> {
        match message {
            GuestMessage::Output(output) => self.pass_on(output),
            GuestMessage::Exited(exit) if exit.id == ProgramId::AGENT => {
                return self.agent_ended(exit);
            }
            GuestMessage::Exited(exit) if exit.id == ProgramId::BUSINESS => {
                self.business_ended(exit);
            }
            GuestMessage::Exited(exit) if self.is_check(exit.id) => {
                self.programs.remove(exit.id);
                return Ok(self.check_ended(exit));
            }
            GuestMessage::Exited(exit) => {
                if let Some(program) = self.programs.remove(exit.id) {
                    self.note_oom(program.component, exit);
                    self.clients.send(program.client, &GuestMessage::Exited(exit), None);
                }
            }
            GuestMessage::TaskResult(part) => self.take_result(&part)?,
            GuestMessage::Verification(step) => self.take_verification(step)?,
            event @ (GuestMessage::Event(_) | GuestMessage::Trajectory(_)) => {
                self.machine.logs.keep(event, Instant::now());
            }
            GuestMessage::Question(question) => self.question_asked(question),
            GuestMessage::QuestionEnded(ended) => self.question_ended(ended),
            GuestMessage::Refused(refused) => {
                if let Some(client) = self.programs.client(refused.id) {
                    self.clients.send(client, &GuestMessage::Refused(refused), None);
                }
            }
            GuestMessage::Credit(credit) => {
                if let Some(client) = self.programs.granted_input(credit) {
                    self.clients.send(client, &GuestMessage::Credit(credit), None);
                }
            }
            GuestMessage::Usage(usage) => {
                if let Some(client) = self.measured_for.pop_front() {
                    self.clients.send(client, &GuestMessage::Usage(usage), None);
                }
            }
            // While the box ends, a failure of init no longer matters.
            GuestMessage::Failed(_) | GuestMessage::Ready(_) if self.kill_at.is_some() => {}
            GuestMessage::Failed(failed) => return Err(guest_error(&failed)),
            GuestMessage::Ready(_) if self.machine.facts.is_ready => {
                return Err(StreamError::Protocol("the agent was ready twice".to_owned()).into());
            }
            // The channel itself handles the greeting.
            GuestMessage::Ready(_) | GuestMessage::Hello(_) => {}
            // Ignored: only the supervisor may send these, because the guest does not decide about denials.
            GuestMessage::Denied(_)
            | GuestMessage::Handed(_)
            | GuestMessage::QuestionsListed(_) => {}
        }
        Ok(CONTINUE)
    }

    fn agent_ended(&mut self, exit: Exited) -> Result<Flow, MachineError> {
        if self.agent_exit.replace(exit).is_some() {
            return Err(StreamError::Protocol("the agent ended twice".to_owned()).into());
        }
        self.was_asked |= self.sent_signal.is_some_and(|it| i32::from(exit.code()) == 128 + it);
        self.end_task(exit);
        if self.terms.ends_with_agent || self.kill_at.is_none() {
            self.status = Some(exit.code());
        }
        self.note_oom(ComponentName::Agent, exit);
        self.clients.tell(&[Follow::Output, Follow::End], &GuestMessage::Exited(exit), None);
        if self.terms.ends_with_agent && self.kill_at.is_none() {
            return Ok(self.begin_stop(self.terms.grace));
        }
        Ok(CONTINUE)
    }

    /// Records a component in which the kernel killed a process for lack of memory.
    fn note_oom(&mut self, component: ComponentName, exit: Exited) {
        if exit.oom_killed && !self.entry.record.oom_killed.contains(&component) {
            self.entry.note(|record| record.oom_killed.push(component), Instant::now());
        }
    }

    /// Handles an end of the business application's main program, which does not end the box.
    fn business_ended(&mut self, exit: Exited) {
        self.note_oom(ComponentName::Business, exit);
        if self.kill_at.is_some() {
            return;
        }
        let status = Some(exit.status);
        if self.entry.record.business_status != status {
            self.entry.note(|record| record.business_status = status, Instant::now());
        }
        // No window limits the number of these messages, so skip them while a client is behind (`Clients::are_behind`).
        if !self.clients.are_behind() {
            self.clients.tell(&[Follow::Output], &GuestMessage::Exited(exit), None);
        }
    }

    /// Passes output to the clients that follow its program. If there are none, the program may write more at once.
    fn pass_on(&mut self, output: Output) {
        if !output.id.is_command() {
            self.machine.logs.write(&output, Instant::now());
        }
        let (grant, owner) =
            (self.programs.grant(output.id, output.cost()), self.programs.client(output.id));
        let (is_agents, message) = (output.id == ProgramId::AGENT, GuestMessage::Output(output));
        if owner == Some(WATCHER) {
            if let GuestMessage::Output(output) = &message {
                self.hear_check(output);
            }
        } else if is_agents {
            self.clients.tell(&[Follow::Output], &message, Some(&grant));
        } else if let Some(client) = owner {
            self.clients.send(client, &message, Some(&grant));
        }
    }

    /// Permits a program to write more. Ignores the grant if the program has ended, because another one may have its id.
    fn grant(&mut self, granted: programs::Granted) {
        if let Some(bytes) = self.programs.passed(granted) {
            self.machine.grant(granted.id, bytes);
        }
    }

    /// Asks init to end all programs within `grace`. A second call can only shorten that time. A second call without
    /// grace stops waiting for the VM.
    fn begin_stop(&mut self, grace: Duration) -> Flow {
        let deadline = Instant::now() + grace + POWER_OFF;
        self.kill_at = match self.kill_at {
            Some(_) if grace.is_zero() => return BREAK,
            Some(earlier) => Some(earlier.min(deadline)),
            None => Some(deadline),
        };
        // If init is already gone, the VM is about to end, too.
        self.machine.tell(&HostMessage::Shutdown(Shutdown::within(grace)));
        CONTINUE
    }
}

/// Waits for the earlier of two times. Never returns if both are `None`.
async fn due(record: Option<Instant>, logs: Option<Instant>) {
    match record.into_iter().chain(logs).min() {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

fn failed(step: &str, message: &str) -> GuestMessage {
    GuestMessage::Failed(Failed { step: step.to_owned(), message: message.to_owned() })
}
