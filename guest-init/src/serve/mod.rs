//! The time after the set-up: relaying output, running commands, reporting ends, until the host
//! says stop or hangs up.
//!
//! One thread and one `poll` over the channel, the holders, the programs' pipes and SIGCHLD.

mod output;
mod stop;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use box_image::wire::{AGENT_ID, Exec, Exited, GuestMessage, HostMessage, Output, Stream};
use box_image::{ComponentName, RunPlan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use crate::channel::Channel;
use crate::component::Component;
use crate::component::protocol::{Event, Request};
use crate::component::spawn::CANNOT_START;
use crate::error::{InitError, Step as _};
use crate::time::{Clock, Milestones};
use crate::wait::{self, Ended};
use output::Program;
use stop::{Stop, TICK};

/// The agent's program on the wire, where commands have ids from 1.
const AGENT: u8 = 0;

/// The result of the set-up.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub(crate) clock: Clock,
    /// The plan of the box.
    pub(crate) plan: &'a RunPlan,
    /// The connection to the launcher.
    pub(crate) channel: &'a mut Channel,
    /// The components that the box has, the agent first.
    pub(crate) components: Vec<Component>,
    pub(crate) bridges: Vec<Pid>,
    /// Readable when a child has ended.
    pub(crate) signals: SignalFd,
}

/// Starts the agent and serves until the machine is to be powered off.
///
/// # Errors
/// The step that failed; the machine is then to be powered off, too.
pub(crate) fn run(machine: Machine<'_>) -> Result<(), InitError> {
    let mut server = Server {
        machine,
        programs: BTreeMap::new(),
        agent: Agent::Starting,
        host_gone: false,
        stop: None,
    };
    server.start_agent()?;
    while !server.is_stopped()? {
        for source in server.wait()? {
            server.serve(source)?;
        }
    }
    Ok(())
}

/// How far the agent has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    /// Its program is not executed yet.
    Starting,
    /// It was executed at this time, and is not ready.
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
    Output(u8, Stream),
}

struct Server<'a> {
    machine: Machine<'a>,
    /// The running programs by their ids.
    programs: BTreeMap<u8, Program>,
    agent: Agent,
    host_gone: bool,
    stop: Option<Stop>,
}

impl Server<'_> {
    fn start_agent(&mut self) -> Result<(), InitError> {
        let user = &self.machine.plan.agent.user;
        let (program, streams) =
            Program::new(ComponentName::Agent, user).step("make the agent's pipes")?;
        let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
        self.machine.components[0].link.send(&Request::Start, &fds).step("start the agent")?;
        self.programs.insert(AGENT, program);
        Ok(())
    }

    /// Waits until something has something for init, or a stop is to be looked after.
    fn wait(&self) -> Result<Vec<Source>, InitError> {
        let timeout = self.stop.as_ref().map_or(PollTimeout::NONE, |_| TICK.into());
        let mut sources = vec![(Source::Children, self.machine.signals.as_fd())];
        if !self.host_gone {
            sources.push((Source::Host, self.machine.channel.as_fd()));
        }
        let components = self.machine.components.iter().enumerate();
        sources.extend(components.map(|(i, it)| (Source::Component(i), it.link.as_fd())));
        for (id, program) in &self.programs {
            sources.extend(program.pipes().map(|(stream, fd)| (Source::Output(*id, stream), fd)));
        }
        let mut fds: Vec<_> =
            sources.iter().map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).step("wait for something to do"),
        }
        let ready = sources.iter().zip(&fds).filter(|(_, fd)| fd.any().unwrap_or(false));
        Ok(ready.map(|((source, _), _)| *source).collect())
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
        }
    }

    fn serve_host(&mut self) -> Result<(), InitError> {
        match self.machine.channel.receive() {
            Ok(Some(HostMessage::Exec(exec))) => return self.exec(exec),
            Ok(Some(HostMessage::Signal(signal))) => return self.signal(signal.id, signal.signal),
            Ok(Some(HostMessage::Shutdown(shutdown))) => {
                self.begin_stop(Duration::from_millis(shutdown.grace_ms.into()));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(error).step("understand the launcher");
            }
            Ok(None) | Err(_) => self.host_is_gone(),
        }
        Ok(())
    }

    /// Sends to the launcher; that it no longer listens means the same as its hanging up.
    fn send(&mut self, message: &GuestMessage) {
        if !self.host_gone && self.machine.channel.send(message).is_err() {
            self.host_is_gone();
        }
    }

    fn host_is_gone(&mut self) {
        self.host_gone = true;
        self.begin_stop(Duration::ZERO);
    }

    /// Runs a command, or says on its standard error why not.
    fn exec(&mut self, exec: Exec) -> Result<(), InitError> {
        let Exec { id, component, argv } = exec;
        if id == AGENT || self.programs.contains_key(&id) {
            let error = InitError::new("run a command", format!("the id {id} is in use"));
            drop(self.machine.channel.send_failed(&error));
            return Ok(());
        }
        let plan = self.machine.plan.component(component);
        let target = self.machine.components.iter().find(|it| it.name == component);
        let (Some(plan), Some(target), None) = (plan, target, &self.stop) else {
            let reason = if self.stop.is_some() { "the box stops" } else { "the box has none" };
            self.refuse(id, &format!("{}: {reason}\n", component.name()));
            return Ok(());
        };
        match Program::new(component, &plan.user) {
            Ok((program, streams)) => {
                let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
                target.link.send(&Request::Exec { id, argv }, &fds).step("run a command")?;
                self.programs.insert(id, program);
            }
            Err(error) => self.refuse(id, &format!("make the pipes: {error}\n")),
        }
        Ok(())
    }

    /// Reports a command that was not even tried.
    fn refuse(&mut self, id: u8, reason: &str) {
        let data = reason.as_bytes().to_vec();
        self.send(&GuestMessage::Output(Output { id, stream: Stream::Stderr, data }));
        let exited = Exited { id: id.into(), status: CANNOT_START, oom_killed: false };
        self.send(&GuestMessage::Exited(exited));
    }

    /// Passes a signal on. A program that has just ended needs none.
    fn signal(&mut self, id: u32, signal: i32) -> Result<(), InitError> {
        let Ok(id) = u8::try_from(id) else { return Ok(()) };
        let Some(program) = self.programs.get(&id) else { return Ok(()) };
        let target = self.machine.components.iter().find(|it| it.name == program.component);
        target.map_or(Ok(()), |target| {
            target.link.send(&Request::Signal { id, signal }, &[]).step("pass a signal on")
        })
    }

    fn serve_component(&mut self, index: usize) -> Result<(), InitError> {
        let component = &self.machine.components[index];
        let step = || format!("hold the {}", component.name.name());
        let received = component.link.receive::<Event>().step_with(step)?;
        match received.map(|(event, _)| event) {
            Some(Event::Started { at_ns }) => self.agent = Agent::Started(at_ns),
            Some(Event::Healthy { at_ns }) => self.agent_is_healthy(at_ns),
            Some(Event::Exited { id, status }) => self.program_has_ended(index, id, status),
            Some(Event::Failed(failed)) => return Err(failed.into()),
            Some(Event::Prepared) => {}
            None => return Err("its holder has ended").step_with(step),
        }
        Ok(())
    }

    fn agent_is_healthy(&mut self, ready_ns: u64) {
        let Agent::Started(started_ns) = self.agent else { return };
        self.agent = Agent::Ready;
        let timing = self.machine.clock.timing(Milestones { started_ns, ready_ns });
        self.send(&GuestMessage::Ready(timing));
    }

    /// Reports an end, after all that the program has written.
    fn program_has_ended(&mut self, index: usize, id: u8, status: u8) {
        let Some(mut program) = self.programs.remove(&id) else { return };
        for output in program.drain(id) {
            self.send(&GuestMessage::Output(output));
        }
        if id == AGENT {
            // Whether it was ready before, the launcher knows, and says what that means.
            self.agent = Agent::Ended;
        }
        let oom_killed = self.machine.components[index].leaf.oom_killed();
        self.send(&GuestMessage::Exited(Exited { id: id.into(), status, oom_killed }));
    }

    fn relay(&mut self, id: u8, stream: Stream) {
        let output = self.programs.get_mut(&id).and_then(|program| program.read(id, stream));
        if let Some(output) = output {
            self.send(&GuestMessage::Output(output));
        }
    }

    /// Reaps init's children. Without a holder or a bridge the box is no longer what was asked for.
    fn reap(&mut self) -> Result<(), InitError> {
        wait::clear(&self.machine.signals);
        while let Some(Ended { pid, status }) = wait::next_ended() {
            if self.machine.bridges.contains(&pid) {
                return Err(format!("it ended with status {status}"))
                    .step("bridge the agent's port");
            }
            // A holder says by its link why it ends, and that may still be unread.
        }
        Ok(())
    }
}

const _: () = assert!(AGENT as u32 == AGENT_ID);
