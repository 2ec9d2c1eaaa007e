//! Programs: the commands that the host and the agent request, and the input, output and end of every program.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_contract::wire::{
    Builtin, Caller, Credit, Exec, Exited, Fenced, GuestEvent, GuestMessage, MAX_OUTPUT, Output,
    ProgramId, Stream, TaskResult, TerminalSize,
};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::program::Program;
use super::{Agent, Server};
use crate::component::Component;
use crate::component::protocol::Request;
use crate::component::spawn::{CANNOT_START, Workload};
use crate::error::{InitError, Step as _};
use crate::sys;
use crate::task::TaskFiles;

/// Returns the exit report of a program that was not started.
pub(super) fn not_started(id: ProgramId) -> Exited {
    Exited {
        id,
        status: CANNOT_START,
        oom_killed: false,
        disk_full: false,
        timed_out: false,
        fenced: None,
    }
}

/// The greatest length of a reason, in bytes, without its newline.
const MAX_REASON: usize = MAX_OUTPUT - 1;

impl Server<'_> {
    /// Starts a command, if the policy does not forbid it, and if a person approves it where the policy asks. If it cannot be started,
    /// sends the reason to the caller as the command's standard error.
    pub(super) fn exec(&mut self, id: ProgramId, exec: Exec) -> Result<(), InitError> {
        if !id.is_command() || self.is_used(id) {
            let error = InitError::new("run a command", format!("the id {id} is in use"));
            drop(self.machine.channel.send_failed(&error));
            return Ok(());
        }
        if let Some(reason) = self.why_no_command(exec.component) {
            self.refuse(id, &reason);
            return Ok(());
        }
        let by = if id.is_known_to_host() { Caller::Host } else { Caller::Agent };
        self.admit(id, exec, by);
        Ok(())
    }

    /// Returns whether a program or a waiting command has the id.
    pub(super) fn is_used(&self, id: ProgramId) -> bool {
        self.programs.contains_key(&id) || self.approvals.has(id)
    }

    /// Starts a command that the policy permits.
    pub(super) fn launch(&mut self, id: ProgramId, exec: Exec, by: Caller) {
        let component = exec.component;
        self.log(GuestEvent::of_command(id, &exec, by));
        match self.start(id, exec) {
            Ok(program) => drop(self.programs.insert(id, program)),
            Err(error) => {
                self.refuse(id, &error.to_string());
                self.log(GuestEvent::of_end(component, Some(id), not_started(id)));
            }
        }
    }

    /// Returns why no command can be started in a component. `None` if commands can be started.
    fn why_no_command(&self, component: ComponentName) -> Option<String> {
        if self.stop.is_some() {
            return Some("the box is being stopped".to_owned());
        }
        if self.verification.is_some() {
            return Some("the task is being verified".to_owned());
        }
        let is_gone = self.target(component).is_none();
        is_gone.then(|| format!("the box has no {} component any more", component.name()))
    }

    /// Starts a command. Only the host can request tasks on skills: such a task of the agent is started in the
    /// component, where it fails with an error.
    fn start(&mut self, id: ProgramId, exec: Exec) -> Result<Program, InitError> {
        let subject = Workload::from(&exec).subject;
        let timeout = exec.timeout_ms.map(Duration::from_millis);
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut program = match exec.builtin {
            Some(Builtin::Skills(task)) if id.is_known_to_host() => {
                self.start_task(id, &exec, task)?
            }
            _ => self.start_in_component(id, exec)?,
        };
        program.deadline = deadline;
        program.fenced = subject.and(self.machine.plan.sandbox.as_ref()).map(|_| Fenced::Whole);
        Ok(program)
    }

    /// Asks a component's holder to run a command.
    fn start_in_component(&self, id: ProgramId, exec: Exec) -> Result<Program, InitError> {
        let target =
            self.target(exec.component).ok_or("it has ended").step("find the component")?;
        let (program, streams) = if exec.terminal.is_some() {
            (Program::with_terminal(exec.component), None)
        } else {
            let made = Program::with_pipes(exec.component, exec.stdin);
            let (program, streams) = made.step("make the pipes")?;
            (program, Some(streams))
        };
        let fds = streams.iter().flat_map(|it| it.stdin.iter().chain([&it.stdout, &it.stderr]));
        let fds: Vec<_> = fds.map(|fd| fd.as_fd()).collect();
        target.link.send(&Request::Exec { id, exec }, &fds).step("run a command")?;
        Ok(program)
    }

    pub(super) fn target(&self, name: ComponentName) -> Option<&Component> {
        self.machine.components.iter().find(|it| it.name == name && !it.is_lost)
    }

    /// Reports to the caller that a command was not started, and why.
    pub(super) fn refuse(&mut self, id: ProgramId, reason: &str) {
        self.explain(id, reason);
        self.reply(id, |id| GuestMessage::Exited(not_started(id)));
    }

    /// Writes the reason why a command was not started to the command's standard error.
    pub(super) fn explain(&mut self, id: ProgramId, why: &str) {
        if id == ProgramId::VERIFICATION {
            return self.explain_verification(why);
        }
        // Cut the reason, because a name in it can be as long as a whole message.
        let mut data = why.as_bytes()[..why.len().min(MAX_REASON)].to_vec();
        data.push(b'\n');
        self.reply(id, |id| GuestMessage::Output(Output { id, stream: Stream::Stderr, data }));
    }

    /// Sends a message about a program to the program's caller.
    pub(super) fn reply(&mut self, id: ProgramId, message: impl FnOnce(ProgramId) -> GuestMessage) {
        if id.is_known_to_host() {
            self.send(&message(id));
        } else {
            self.answer_call(id, message);
        }
    }

    /// Sends a signal to a program. It is a no-op if the program has ended. SIGINT and SIGQUIT go to the foreground of a terminal, as
    /// if its keys were pressed.
    pub(super) fn signal(&self, id: ProgramId, signal: i32) -> Result<(), InitError> {
        if let Some(pid) = self.task(id) {
            sys::send_signal(pid, signal);
            return Ok(());
        }
        let is_key = [Signal::SIGINT as i32, Signal::SIGQUIT as i32].contains(&signal);
        let program = self.programs.get(&id).filter(|_| is_key);
        if let Some(group) = program.and_then(Program::foreground) {
            sys::send_signal(Pid::from_raw(-group.as_raw()), signal);
            return Ok(());
        }
        self.ask_holder(id, &Request::Signal { id, signal }, "pass a signal on")
    }

    /// Kills a program and everything that it has started.
    pub(super) fn kill(&self, id: ProgramId) -> Result<(), InitError> {
        if self.task(id).is_some() {
            return self.signal(id, Signal::SIGKILL as i32);
        }
        self.ask_holder(id, &Request::Kill { id }, "kill a program")
    }

    /// Kills the programs that have exceeded their time limit, with everything that they have started.
    pub(super) fn kill_late_programs(&mut self) -> Result<(), InitError> {
        let now = Instant::now();
        let is_late = |program: &Program| program.deadline.is_some_and(|it| it <= now);
        let mut killed = Vec::new();
        for (id, program) in self.programs.iter_mut().filter(|(_, program)| is_late(program)) {
            program.deadline = None;
            program.timed_out = program.status.is_none();
            killed.push(*id);
        }
        killed.into_iter().try_for_each(|id| self.kill(id))
    }

    /// Sends a request to the holder of a program's component.
    fn ask_holder(
        &self,
        id: ProgramId,
        request: &Request,
        step: &'static str,
    ) -> Result<(), InitError> {
        let Some(program) = self.programs.get(&id) else { return Ok(()) };
        let Some(target) = self.target(program.component) else { return Ok(()) };
        Self::has_reached_holder(target.link.send(request, &[])).step(step).map(drop)
    }

    /// Returns whether a request has reached a holder. `false` means that the holder has ended, which the link to it
    /// reports, too.
    pub(super) fn has_reached_holder(sent: io::Result<()>) -> io::Result<bool> {
        match sent {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            sent => sent.map(|()| true),
        }
    }

    /// Connects the terminal of a command. If that fails, the command has no input and no output.
    pub(super) fn connect_terminal(&mut self, id: ProgramId, fds: Vec<OwnedFd>) {
        let (Some(program), Some(terminal)) = (self.programs.get_mut(&id), fds.into_iter().next())
        else {
            return;
        };
        if let Err(error) = program.connect(terminal) {
            crate::console::say(&format!("take a terminal: {error}"));
        }
    }

    /// Buffers bytes for a program's standard input until the program reads them, or until a waiting command starts.
    pub(super) fn take_input(&mut self, id: ProgramId, data: &[u8]) {
        self.keep_input(id, data);
        let input = self.programs.get_mut(&id).and_then(|it| it.input.as_mut());
        if let Some(input) = input {
            input.push(data);
            self.feed(id);
        }
    }

    pub(super) fn end_input(&mut self, id: ProgramId) {
        self.note_input_end(id);
        let input = self.programs.get_mut(&id).and_then(|it| it.input.as_mut());
        if let Some(input) = input {
            input.end();
            self.feed(id);
        }
    }

    pub(super) fn resize(&mut self, id: ProgramId, size: TerminalSize) {
        self.note_size(id, size);
        self.programs.get_mut(&id).into_iter().for_each(|program| program.resize(size));
    }

    /// Writes buffered bytes to a program's standard input without blocking, and grants the caller as many bytes again.
    pub(super) fn feed(&mut self, id: ProgramId) {
        let input = self.programs.get_mut(&id).and_then(|it| it.input.as_mut());
        let bytes = input.map_or(0, |input| input.write());
        if bytes > 0 {
            self.reply(id, |id| GuestMessage::Credit(Credit { id, bytes }));
        }
    }

    /// Adds `bytes` to the output window of a program.
    pub(super) fn grant(&mut self, id: ProgramId, bytes: u32) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.grant(bytes);
            self.conclude(id);
        } else if id == ProgramId::BUSINESS {
            self.machine.autostart.iter_mut().for_each(|it| it.grant(bytes));
        }
    }

    /// Reads up to one frame of a program's output, and sends it to the caller.
    pub(super) fn relay(&mut self, id: ProgramId, stream: Stream) {
        let output = self.programs.get_mut(&id).and_then(|program| program.read(stream));
        if let Some(data) = output {
            self.send_output(id, stream, data);
        }
    }

    fn send_output(&mut self, id: ProgramId, stream: Stream, data: Vec<u8>) {
        if id == ProgramId::AGENT {
            self.machine.logs.output(stream, &data);
        }
        if id == ProgramId::VERIFICATION {
            return self.keep_verification_output(&data);
        }
        self.reply(id, |id| GuestMessage::Output(Output { id, stream, data }));
    }

    pub(super) fn program_has_ended(&mut self, id: ProgramId, status: u8) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.status = Some(status);
            self.conclude(id);
        }
    }

    /// If a program has ended, sends its remaining output and then reports its end. If the output window is full,
    /// returns early; the next grant continues.
    pub(super) fn conclude(&mut self, id: ProgramId) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some(status) = program.status else { return };
        let mut outputs = Vec::new();
        while let Some(output) = program.drain() {
            outputs.push(output);
            if id == ProgramId::VERIFICATION {
                // Init keeps only the end of this output, so no reader has to keep up.
                program.grant(u32::MAX);
            }
        }
        let (is_held_back, timed_out, component, credit) =
            (program.is_held_back(), program.timed_out, program.component, program.credit());
        let fenced = program.fenced;
        for (stream, data) in outputs {
            self.send_output(id, stream, data);
        }
        // Wait for a grant. If the caller is gone, report the end now, because the caller grants no more bytes.
        if is_held_back && self.has_caller(id) {
            return;
        }
        self.programs.remove(&id);
        let of_program = self.machine.components.iter().find(|it| it.name == component);
        let leaf = of_program.map(|it| &it.leaf);
        let oom_killed = leaf.is_some_and(crate::cgroup::Leaf::oom_killed);
        let disk_full = status != 0 && of_program.is_some_and(Component::is_full);
        let exited = Exited { id, status, oom_killed, disk_full, timed_out, fenced };
        let command = id.is_command().then_some(id);
        self.log(GuestEvent::of_end(component, command, exited));
        if id == ProgramId::VERIFICATION {
            return self.end_verification(exited);
        }
        if id == ProgramId::AGENT {
            let result = self.send_result();
            self.send_trajectories();
            // The launcher knows whether the agent has been ready, and decides what follows. The start fails without that.
            let was_ready = self.agent == Agent::Ready;
            self.agent = Agent::Ended;
            if was_ready && self.begin_verification(exited, &result) {
                return;
            }
        }
        if id == ProgramId::BUSINESS {
            self.autostarted_has_ended(status, credit);
            if self.verification.is_some() {
                // Init has ended it. It has not failed.
                return;
            }
        }
        // `reply` passes the id by which the caller knows the program, which may be another one.
        self.reply(id, |id| GuestMessage::Exited(Exited { id, ..exited }));
        self.hang_up(id);
    }

    /// Sends and returns the result of the task. Sends no message if the box has no task or the result is empty.
    fn send_result(&mut self) -> Vec<u8> {
        let result = self.machine.task.as_ref().map(TaskFiles::result).unwrap_or_default();
        for part in result.chunks(MAX_OUTPUT) {
            self.send(&GuestMessage::TaskResult(TaskResult { data: part.to_vec() }));
        }
        result
    }

    /// Sends the agent's trajectories.
    fn send_trajectories(&mut self) {
        let logs = std::mem::take(&mut self.machine.logs);
        logs.trajectories(|part| self.send(&GuestMessage::Trajectory(part)));
        self.machine.logs = logs;
    }

    /// Returns whether a program's caller is still connected.
    fn has_caller(&self, id: ProgramId) -> bool {
        if id.is_known_to_host() { !self.host_gone } else { self.calls.is_open(id) }
    }
}
