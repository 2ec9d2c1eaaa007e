//! The event loop after the set-up: relays output, runs commands and reports ends, until the host requests a stop or
//! hangs up.
//!
//! One thread calls [poll(2)](https://man7.org/linux/man-pages/man2/poll.2.html) on the channel, the holders, the
//! programs' pipes and SIGCHLD.

mod approvals;
pub(crate) mod autostart;
mod business;
pub(crate) mod calls;
mod command;
pub(crate) mod impartial;
mod input;
mod program;
mod skills;
mod stop;
mod verification;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use box_contract::wire::{
    Fenced, GuestEvent, GuestEventKind, GuestMessage, HostMessage, Measure, ProgramId, Stream,
    Usage,
};
use box_contract::{ComponentName, NetworkMode, RunPlan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::channel::Channel;
use crate::component::protocol::{Event, Request};
use crate::component::{Component, Starter};
use crate::console;
use crate::error::{InitError, Step as _};
use crate::logs::Logs;
use crate::sockets::SocketDoor;
use crate::task::{self, TaskFiles};
use crate::time::{self, Clock, Milestones};
use crate::wait::{self, Ended};
use crate::{bridge, cap_http, network};
use approvals::Approvals;
use autostart::Autostart;
use calls::Calls;
use input::Input;
use program::Program;
use stop::{Stop, TICK};
use verification::Verification;

/// The state after the set-up.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) clock: Clock,
    /// The connection to the launcher.
    pub(crate) channel: &'a mut Channel,
    /// The run plan.
    pub(crate) plan: &'a RunPlan,
    /// The components that have been started, the agent first.
    pub(crate) components: Vec<Component>,
    /// The starter of the other components. It is used when the agent has executed its program, so that the agent's
    /// start does not wait for them.
    pub(crate) starter: Option<Starter<'a>>,
    /// The processes that carry connections of components, each with the name of the step under which its failure is
    /// reported.
    pub(crate) carriers: BTreeMap<Pid, &'static str>,
    /// The sockets that stand for sockets of the host, until their components are connected to the network.
    pub(crate) sockets: Vec<SocketDoor>,
    /// The socket on which the agent requests commands in the business component, if the box has one.
    pub(crate) calls: Option<UnixListener>,
    /// The files of the agent's task, if it has one.
    pub(crate) task: Option<TaskFiles>,
    /// The logs that the plan declares.
    pub(crate) logs: Logs,
    /// The start times of the business application's main program, if the plan starts it.
    pub(crate) autostart: Option<Autostart>,
    /// Readable if a child has ended.
    pub(crate) signals: SignalFd,
    /// Whether the layer of skills exists since the start.
    pub(crate) has_skill_layer: bool,
}

/// Starts the agent, and serves until the VM can be powered off.
///
/// # Errors
/// The step that failed. The caller must power the VM off after an error, too.
pub(crate) fn run(machine: Machine<'_>) -> Result<(), InitError> {
    let mut server = Server {
        approvals: Approvals::new(machine.plan.sandbox.as_ref()),
        calls: Calls::default(),
        has_skills: machine.has_skill_layer,
        machine,
        programs: BTreeMap::new(),
        tasks: BTreeMap::new(),
        connected: Vec::new(),
        wanted: Vec::new(),
        agent: Agent::Starting,
        for_verification: None,
        verification: None,
        host_gone: false,
        stop: None,
    };
    server.connect_what_programs_need()?;
    server.start_agent()?;
    while !server.is_stopped()? {
        for source in server.wait()? {
            server.serve(source)?;
        }
        server.kill_late_programs()?;
        server.deny_late_commands();
        server.start_autostarted();
        server.go_on_with_verification()?;
    }
    Ok(())
}

/// The status of a program that SIGKILL has ended: 128 + SIGKILL.
const KILLED: u8 = 137;

/// The agent's progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    /// The program has not been executed yet.
    Starting,
    /// The program was executed at this time, on the clock of [`time::now_ns`], and is not ready yet.
    Started(u64),
    Ready,
    Ended,
}

/// A source of work for init.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Host,
    Children,
    Component(usize),
    Output(ProgramId, Stream),
    Input(ProgramId),
    /// The agent opens a connection to run a command.
    NewCall,
    Call(ProgramId),
}

struct Server<'a> {
    machine: Machine<'a>,
    /// The running programs, by their ids.
    programs: BTreeMap<ProgramId, Program>,
    /// The tasks on skills, which are children of init, by process id.
    tasks: BTreeMap<Pid, ProgramId>,
    /// Whether the layer of loaded skills exists.
    has_skills: bool,
    /// The components that are connected to the host's end of the network.
    connected: Vec<ComponentName>,
    /// The components to connect to the network once they exist.
    wanted: Vec<ComponentName>,
    calls: Calls,
    approvals: Approvals,
    agent: Agent,
    /// The starter of the component in which the task is verified, if it has a verification.
    for_verification: Option<Starter<'a>>,
    /// The verification of the task, while it takes place.
    verification: Option<Verification>,
    host_gone: bool,
    stop: Option<Stop>,
}

impl Server<'_> {
    fn start_agent(&mut self) -> Result<(), InitError> {
        let (mut program, streams) =
            Program::with_pipes(ComponentName::Agent, false).step("make the agent's pipes")?;
        let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
        self.machine.task.iter().for_each(|_| task::start());
        match self.machine.components[0].link.send(&Request::Start { id: ProgramId::AGENT }, &fds) {
            // Ignore this: the holder has ended already, and its report with the reason is still unread.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent.step("start the agent")?,
        }
        program.deadline = self.machine.plan.task.as_ref().and_then(task::deadline);
        program.fenced = self.machine.plan.sandbox.as_ref().map(|_| Fenced::Whole);
        self.programs.insert(ProgramId::AGENT, program);
        Ok(())
    }

    /// Sets up everything except the agent: the other component, the bridges to the components' ports, and the network.
    fn set_up_rest(&mut self) -> Result<(), InitError> {
        let machine = &mut self.machine;
        let Some(starter) = machine.starter.take() else { return Ok(()) };
        for (name, plan) in machine.plan.components().skip(machine.components.len()) {
            let component = starter.start(name, plan)?;
            component.wait_until_prepared()?;
            machine.components.push(component);
        }
        // All secrets have been delivered.
        let starter = starter.for_verification();
        let is_verified = machine.plan.task.as_ref().is_some_and(|it| it.verify.is_some());
        self.for_verification = is_verified.then_some(starter);
        for (component, (_, plan)) in machine.components.iter().zip(machine.plan.components()) {
            let bridge = bridge::start(component, plan)?;
            machine.carriers.extend(bridge.map(|pid| (pid, "bridge the agent's port")));
        }
        let wanted = std::mem::take(&mut self.wanted);
        wanted.into_iter().try_for_each(|name| self.connect(name))?;
        self.connect_what_programs_need()
    }

    /// Connects the components whose programs must find the filter or their HTTP APIs when they start.
    fn connect_what_programs_need(&mut self) -> Result<(), InitError> {
        let needs = |it: &&Component| needs_network(self.machine.plan, it.name);
        let components = self.machine.components.iter().filter(needs);
        let names: Vec<_> = components.map(|it| it.name).collect();
        names.into_iter().try_for_each(|name| self.connect(name))?;
        self.serve_files()
    }

    /// Starts the processes that send requests as files. Their components are connected.
    fn serve_files(&mut self) -> Result<(), InitError> {
        for component in &mut self.machine.components {
            if component.requests.is_none() && !component.is_lost {
                component.requests = cap_http::start(component, self.machine.plan)?;
            }
        }
        Ok(())
    }

    /// Connects a component to the host's end of the network, unless it is connected.
    fn connect(&mut self, name: ComponentName) -> Result<(), InitError> {
        let machine = &mut self.machine;
        if machine.starter.is_some() && !needs_network(machine.plan, name) {
            // Deferred to `set_up_rest`, so that the agent's start does not wait for it.
            self.wanted.push(name);
            return Ok(());
        }
        let component = machine.components.iter().find(|it| it.name == name && !it.is_lost);
        let Some(component) = component else { return Ok(()) };
        if !self.connected.contains(&name) {
            let sockets = machine.sockets.extract_if(.., |it| it.component == name).collect();
            let pid = network::start(component, machine.plan, sockets)?;
            machine.carriers.insert(pid, "carry the network");
            self.connected.push(name);
        }
        Ok(())
    }

    /// Waits for events, or until the deadline of a stop, a start or a program.
    fn wait(&self) -> Result<Vec<Source>, InitError> {
        let sources = self.sources();
        let mut fds: Vec<_> =
            sources.iter().map(|(_, fd, wanted)| PollFd::new(*fd, *wanted)).collect();
        match poll(&mut fds, wait::timeout(self.deadline())) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).step("wait for something to do"),
        }
        let ready = sources.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|((source, ..), _)| *source).collect())
    }

    /// Returns the sources of events, each with the events to wait for.
    fn sources(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut sources = vec![(Source::Children, self.machine.signals.as_fd(), PollFlags::POLLIN)];
        if !self.host_gone {
            sources.push((Source::Host, self.machine.channel.as_fd(), PollFlags::POLLIN));
        }
        let components = self.machine.components.iter().enumerate().filter(|(_, it)| !it.is_lost);
        let components =
            components.map(|(i, it)| (Source::Component(i), it.link.as_fd(), PollFlags::POLLIN));
        sources.extend(components);
        for (id, program) in &self.programs {
            let outputs = program.outputs();
            sources.extend(
                outputs.map(|(stream, fd)| (Source::Output(*id, stream), fd, PollFlags::POLLIN)),
            );
            let input = program.input.as_ref().and_then(Input::pending);
            sources.extend(input.map(|fd| (Source::Input(*id), fd, PollFlags::POLLOUT)));
        }
        let has_callee = self.machine.starter.is_none();
        let new = self.machine.calls.as_ref().filter(|_| has_callee && self.calls.has_room());
        sources.extend(new.map(|it| (Source::NewCall, it.as_fd(), PollFlags::POLLIN)));
        sources.extend(self.calls.fds().map(|(id, fd)| (Source::Call(id), fd, PollFlags::POLLIN)));
        sources
    }

    /// Returns the next time at which init has work even without an event. `None` if there is no such time.
    fn deadline(&self) -> Option<Instant> {
        let is_ticking = self.stop.is_some() || self.is_preparing_verification();
        let tick = is_ticking.then(|| Instant::now() + TICK);
        let due = self.start_due();
        let denial = self.approvals.deadline();
        let programs = self.programs.values().filter_map(|it| it.deadline);
        programs.chain(tick).chain(due).chain(denial).min()
    }

    fn serve(&mut self, source: Source) -> Result<(), InitError> {
        match source {
            Source::Host => self.serve_host(),
            Source::Children => self.reap(),
            Source::Component(index) => self.serve_component(index),
            Source::Output(id, stream) => {
                self.relay(id, stream);
                Ok(())
            }
            Source::Input(id) => {
                self.feed(id);
                Ok(())
            }
            Source::NewCall => {
                self.accept_call();
                Ok(())
            }
            Source::Call(id) => self.serve_call(id),
        }
    }

    fn serve_host(&mut self) -> Result<(), InitError> {
        match self.machine.channel.receive() {
            Ok(Some(message)) => self.serve_message(message),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(error).step("understand the launcher")
            }
            Ok(None) | Err(_) => {
                self.host_is_gone();
                Ok(())
            }
        }
    }

    fn serve_message(&mut self, message: HostMessage) -> Result<(), InitError> {
        match message {
            HostMessage::Exec(exec) => self.exec(exec.id, exec),
            HostMessage::Signal(signal) => self.pass_signal(signal.id, signal.signal),
            HostMessage::Shutdown(shutdown) => {
                self.begin_stop(shutdown.grace());
                Ok(())
            }
            HostMessage::Input(input) => {
                self.take_input(input.id, &input.data);
                Ok(())
            }
            HostMessage::InputEnd(end) => {
                self.end_input(end.id);
                Ok(())
            }
            HostMessage::Credit(credit) => {
                self.grant(credit.id, credit.bytes);
                Ok(())
            }
            HostMessage::Resize(resize) => {
                self.resize(resize.id, resize.size);
                Ok(())
            }
            HostMessage::Measure(Measure {}) => {
                self.send_usage();
                Ok(())
            }
            HostMessage::Clock(clock) => {
                time::follow(clock);
                Ok(())
            }
            HostMessage::Connect(connect) => self.connect(connect.component),
            HostMessage::Answer(answer) => {
                self.answer(answer);
                Ok(())
            }
            HostMessage::Variable(_)
            | HostMessage::Secret(_)
            | HostMessage::Mounts(_)
            | HostMessage::FilePart(_) => Err("it sends late what belongs to the start".to_owned())
                .step("understand the launcher"),
        }
    }

    /// Sends a message to the launcher. An error is handled as if the launcher had hung up.
    fn send(&mut self, message: &GuestMessage) {
        if !self.host_gone && self.machine.channel.send(message).is_err() {
            self.host_is_gone();
        }
    }

    /// Logs an event in the box and on the host.
    fn log(&mut self, event: GuestEvent) {
        if self.machine.logs.event(&event) {
            self.send(&GuestMessage::Event(event));
        }
    }

    fn send_usage(&mut self) {
        let components = self.machine.components.iter().filter(|it| !it.is_lost);
        let components = components.map(Component::usage).collect();
        self.send(&GuestMessage::Usage(Usage { components }));
    }

    fn host_is_gone(&mut self) {
        self.host_gone = true;
        // Ended programs must not wait for grants of the host any longer.
        let ids: Vec<ProgramId> = self.programs.keys().copied().collect();
        ids.into_iter().for_each(|id| self.conclude(id));
        self.begin_stop(Duration::ZERO);
    }

    fn serve_component(&mut self, index: usize) -> Result<(), InitError> {
        let component = &self.machine.components[index];
        let step = || format!("hold the {}", component.name.name());
        let received = component.link.receive::<Event>().step_with(step)?;
        let Some((event, fds)) = received else { return self.lose(index) };
        match event {
            Event::Started { at_ns } => {
                self.agent = Agent::Started(at_ns);
                self.log(GuestEvent::new(ComponentName::Agent, GuestEventKind::Start));
                self.set_up_rest()?;
            }
            Event::Healthy { at_ns } => self.agent_is_healthy(at_ns),
            Event::LacksLandlock { id } => {
                let program = self.programs.get_mut(&id);
                program.into_iter().for_each(|it| it.fenced = Some(Fenced::WithoutLandlock));
            }
            Event::Exited { id, status } => self.program_has_ended(id, status),
            Event::Failed(failed) if self.verification.is_some() => {
                self.fail_verification(&InitError::from(failed).to_string());
            }
            Event::Failed(failed) => return Err(failed.into()),
            Event::Kept { path, reason } => self.take_workdir(path, reason.as_deref(), fds),
            Event::Terminal { id } => self.connect_terminal(id, fds),
            Event::Explained { id, reason } => self.explain(id, &reason),
            Event::Prepared => {}
        }
        Ok(())
    }

    /// Handles the end of a component's holder: kills all processes of the component, and reports the ends of its
    /// programs.
    fn lose(&mut self, index: usize) -> Result<(), InitError> {
        let component = &mut self.machine.components[index];
        component.is_lost = true;
        component.leaf.kill()?;
        let name = component.name;
        console::say(&format!("the holder of the {} has ended", name.name()));
        self.end_programs_of(name);
        self.deny_stopped(Some(name));
        Ok(())
    }

    fn agent_is_healthy(&mut self, ready_ns: u64) {
        let Agent::Started(started_ns) = self.agent else { return };
        self.agent = Agent::Ready;
        let timing = self.machine.clock.timing(Milestones { started_ns, ready_ns });
        self.send(&GuestMessage::Ready(timing));
        self.log(GuestEvent::new(ComponentName::Agent, GuestEventKind::Ready));
        self.begin_autostart();
    }

    /// Reaps init's children. The end of a process that carries connections or sends requests is an error, because the box
    /// would be incomplete without it. A process that sends requests and was killed is started again.
    fn reap(&mut self) -> Result<(), InitError> {
        wait::clear(&self.machine.signals);
        while let Some(Ended { pid, status }) = wait::next_ended() {
            if self.task_has_ended(pid, status) {
                continue;
            }
            if status == KILLED && self.requests_went_on(pid) {
                continue;
            }
            if let Some(step) = self.missed(pid) {
                return Err(format!("its process ended with status {status}")).step(step);
            }
            // The end of a holder is handled when its link closes, because its report of the reason can still be
            // unread.
        }
        Ok(())
    }

    /// Starts the process of a component that sends requests as files again, after it was killed: the component had used up its
    /// memory. If it cannot be started, because the memory is still used up, the component's requests are no longer answered. Returns
    /// whether the killed process was such a one.
    fn requests_went_on(&mut self, pid: Pid) -> bool {
        let is_killed = |it: &&mut Component| it.requests == Some(pid) && !it.is_lost;
        let component = self.machine.components.iter_mut().find(is_killed);
        let Some(component) = component.filter(|_| self.stop.is_none()) else { return false };
        component.requests =
            cap_http::start(component, self.machine.plan).unwrap_or_else(|error| {
                console::say(&format!("requests as files are no longer answered: {error}"));
                None
            });
        true
    }

    /// Returns the step of an ended process without which the box is incomplete. `None` for another process. Init itself ends
    /// the processes that send requests together with their component.
    fn missed(&self, pid: Pid) -> Option<&'static str> {
        let is_needed = |it: &Component| it.requests == Some(pid) && !it.is_lost;
        let sends = self.stop.is_none() && self.machine.components.iter().any(is_needed);
        self.machine.carriers.get(&pid).copied().or_else(|| sends.then_some(cap_http::STEP))
    }
}

/// Returns whether the programs of a component must find the filter or HTTP APIs when they start.
fn needs_network(plan: &RunPlan, component: ComponentName) -> bool {
    plan.network.mode == NetworkMode::Filtered || plan.services_of(component).next().is_some()
}
