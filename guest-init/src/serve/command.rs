//! Programs: commands that the host asks for, what they read and write, and how they end.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use box_image::ComponentName;
use box_image::wire::{Credit, Exec, Exited, GuestMessage, Input as Bytes, Output, Stream};

use super::program::Program;
use super::{AGENT, Agent, Server};
use crate::component::Component;
use crate::component::protocol::Request;
use crate::component::spawn::CANNOT_START;
use crate::error::{InitError, Step as _};

impl Server<'_> {
    /// Runs a command, or says on its standard error why not.
    pub(super) fn exec(&mut self, exec: Exec) -> Result<(), InitError> {
        let id = exec.id;
        if id == AGENT || self.programs.contains_key(&id) {
            let error = InitError::new("run a command", format!("the id {id} is in use"));
            drop(self.machine.channel.send_failed(&error));
            return Ok(());
        }
        let (Some(target), None) = (self.target(exec.component), &self.stop) else {
            let reason = match &self.stop {
                Some(_) => "the box is being stopped".to_owned(),
                None => format!("the box has no {} component", exec.component.name()),
            };
            self.refuse(id, &reason);
            return Ok(());
        };
        match start(target, exec) {
            Ok(program) => drop(self.programs.insert(id, program)),
            Err(error) => self.refuse(id, &error.to_string()),
        }
        Ok(())
    }

    fn target(&self, name: ComponentName) -> Option<&Component> {
        self.machine.components.iter().find(|it| it.name == name)
    }

    /// Reports a command that was not even tried.
    fn refuse(&mut self, id: u8, reason: &str) {
        self.explain(id, reason);
        let (id, status) = (id.into(), CANNOT_START);
        self.send(&GuestMessage::Exited(Exited {
            id,
            status,
            oom_killed: false,
            timed_out: false,
        }));
    }

    /// Says why a command was not started, where it would say so itself: on its standard error.
    pub(super) fn explain(&mut self, id: u8, why: &str) {
        let data = format!("{why}\n").into_bytes();
        self.send(&GuestMessage::Output(Output { id, stream: Stream::Stderr, data }));
    }

    /// Passes a signal on. A program that has just ended needs none.
    pub(super) fn signal(&self, id: u32, signal: i32) -> Result<(), InitError> {
        let Ok(id) = u8::try_from(id) else { return Ok(()) };
        self.ask_holder(id, &Request::Signal { id, signal }, "pass a signal on")
    }

    /// Kills the programs whose time is up, with all processes of their groups.
    pub(super) fn kill_late_programs(&mut self) -> Result<(), InitError> {
        let now = Instant::now();
        let is_late = |program: &Program| program.deadline.is_some_and(|it| it <= now);
        let mut killed = Vec::new();
        for (id, program) in self.programs.iter_mut().filter(|(_, program)| is_late(program)) {
            program.deadline = None;
            program.timed_out = program.status.is_none();
            killed.push(*id);
        }
        let kill = |id: u8| self.ask_holder(id, &Request::Kill { id }, "kill a program");
        killed.into_iter().try_for_each(kill)
    }

    /// Sends a request to the holder of a program's component.
    fn ask_holder(&self, id: u8, request: &Request, step: &'static str) -> Result<(), InitError> {
        let Some(program) = self.programs.get(&id) else { return Ok(()) };
        self.target(program.component)
            .map_or(Ok(()), |target| target.link.send(request, &[]).step(step))
    }

    /// Takes the terminal of a command; without it there is nobody to write to, or to read.
    pub(super) fn connect_terminal(&mut self, id: u8, fds: Vec<OwnedFd>) {
        let (Some(program), Some(terminal)) = (self.programs.get_mut(&id), fds.into_iter().next())
        else {
            return;
        };
        if let Err(error) = program.connect(terminal) {
            crate::console::say(&format!("take a terminal: {error}"));
        }
    }

    /// Keeps bytes for a program's standard input until it reads them.
    pub(super) fn take_input(&mut self, bytes: &Bytes) {
        let input = self.programs.get_mut(&bytes.id).and_then(|it| it.input.as_mut());
        if let Some(input) = input {
            input.push(&bytes.data);
            self.feed(bytes.id);
        }
    }

    pub(super) fn end_input(&mut self, id: u8) {
        let input = self.programs.get_mut(&id).and_then(|it| it.input.as_mut());
        if let Some(input) = input {
            input.end();
            self.feed(id);
        }
    }

    /// Writes to a program's standard input what it takes, and lets the host send as much again.
    pub(super) fn feed(&mut self, id: u8) {
        let input = self.programs.get_mut(&id).and_then(|it| it.input.as_mut());
        let taken = input.map_or(0, |input| input.write());
        if taken > 0 {
            self.send(&GuestMessage::Credit(Credit { id, bytes: taken }));
        }
    }

    /// Lets a program send more.
    pub(super) fn grant(&mut self, credit: Credit) {
        if let Some(program) = self.programs.get_mut(&credit.id) {
            program.grant(credit.bytes);
            self.conclude(credit.id);
        }
    }

    /// Sends a piece of what a program has written.
    pub(super) fn relay(&mut self, id: u8, stream: Stream) {
        let output = self.programs.get_mut(&id).and_then(|program| program.read(id, stream));
        if let Some(output) = output {
            self.send(&GuestMessage::Output(output));
        }
    }

    pub(super) fn program_has_ended(&mut self, id: u8, status: u8) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.status = Some(status);
            self.conclude(id);
        }
    }

    /// Reports the end of a program that has ended, after all that it has written.
    pub(super) fn conclude(&mut self, id: u8) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some(status) = program.status else { return };
        let mut outputs = Vec::new();
        while let Some(output) = program.drain(id) {
            outputs.push(output);
        }
        let (is_held_back, timed_out, component) =
            (program.is_held_back(), program.timed_out, program.component);
        for output in outputs {
            self.send(&GuestMessage::Output(output));
        }
        // Nobody grants anything where nobody listens.
        if is_held_back && !self.host_gone {
            return;
        }
        self.programs.remove(&id);
        if id == AGENT {
            // Whether it was ready before, the launcher knows, and says what that means.
            self.agent = Agent::Ended;
        }
        let leaf = self.target(component).map(|target| &target.leaf);
        let oom_killed = leaf.is_some_and(crate::cgroup::Leaf::oom_killed);
        self.send(&GuestMessage::Exited(Exited { id: id.into(), status, oom_killed, timed_out }));
    }
}

/// Asks a component's holder to run a command.
fn start(target: &Component, exec: Exec) -> Result<Program, InitError> {
    let timeout = exec.timeout_ms.map(Duration::from_millis);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let (mut program, streams) = if exec.terminal.is_some() {
        (Program::with_terminal(exec.component), None)
    } else {
        let made = Program::with_pipes(exec.component, exec.stdin);
        let (program, streams) = made.step("make the pipes")?;
        (program, Some(streams))
    };
    let fds = streams.iter().flat_map(|it| it.stdin.iter().chain([&it.stdout, &it.stderr]));
    let fds: Vec<_> = fds.map(|fd| fd.as_fd()).collect();
    target.link.send(&Request::Exec(exec), &fds).step("run a command")?;
    program.deadline = deadline;
    Ok(program)
}
