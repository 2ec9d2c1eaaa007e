//! The verification of the task: when the agent has ended with success, init ends all programs of the box and runs the declared
//! command itself.
//!
//! ```text
//! Killing    all programs get SIGKILL
//! Ending     they have not all ended yet
//! Keeping    the holder was asked for the working directory
//! Clearing   the holders got SIGKILL, so that none of them starts a program that was requested before
//! Running    the command runs, in a component with a fresh root
//! ```
//!
//! The report of the agent's end waits for the end of the command.

use std::cell::RefCell;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use box_contract::task::permits_verification;
use box_contract::wire::{
    self, Caller, Exec, Exited, GuestEvent, GuestMessage, MAX_VERIFICATION_OUTPUT,
    MAX_VERIFICATION_REASON, ProgramId, VerificationEnd,
};
use box_contract::{ComponentName, ComponentPlan, RunPlan, SecretDelivery, VerifyPlan};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};

use super::program::Program;
use super::{KILLED, Server, impartial};
use crate::component::protocol::Request;
use crate::component::spawn::CANNOT_START;
use crate::component::{Component, FreshRoot, Starter};
use crate::console;
use crate::error::{InitError, Step as _};

/// How long the programs and the holders may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A verification in progress.
#[derive(Debug)]
pub(super) struct Verification {
    /// The end of the agent, which is not reported yet.
    agent: Exited,
    started: Instant,
    phase: Phase,
    output: Tail,
    /// Why the command was not started.
    reason: Option<String>,
}

/// The progress of a verification.
#[derive(Debug)]
enum Phase {
    Killing,
    Ending,
    Keeping,
    Clearing(FreshRoot),
    Running,
}

/// The last bytes of an output.
#[derive(Debug, Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn push(&mut self, data: &[u8]) {
        self.0.extend_from_slice(data);
        self.0.drain(..self.0.len().saturating_sub(MAX_VERIFICATION_OUTPUT));
    }

    /// Returns the bytes as text, at most [`MAX_VERIFICATION_OUTPUT`] bytes of it.
    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.0);
        let from = text.len().saturating_sub(MAX_VERIFICATION_OUTPUT);
        text[text.ceil_char_boundary(from)..].to_owned()
    }
}

impl<'a> Server<'a> {
    /// Begins the verification of a task whose agent has ended, if the task has one and the agent has succeeded. Returns whether the
    /// report of the agent's end has to wait.
    pub(super) fn begin_verification(&mut self, agent: Exited, result: &[u8]) -> bool {
        let is_declared = self.for_verification.is_some();
        if !is_declared || self.stop.is_some() || !permits_verification(agent, result) {
            return false;
        }
        self.machine.autostart = None;
        self.machine.calls = None;
        for component in &mut self.machine.components {
            // Init does not start it again.
            component.requests = None;
        }
        let (started, phase) = (Instant::now(), Phase::Killing);
        let (output, reason) = (Tail::default(), None);
        self.verification = Some(Verification { agent, started, phase, output, reason });
        self.send(&GuestMessage::Verification(wire::Verification::Started));
        self.deny_stopped(None);
        true
    }

    /// Returns whether init has to look at the verification without an event.
    pub(super) fn is_preparing_verification(&self) -> bool {
        self.verification.as_ref().is_some_and(|it| !matches!(it.phase, Phase::Running))
    }

    /// Continues the verification. Must not be called while events are served, because it replaces the components.
    pub(super) fn go_on_with_verification(&mut self) -> Result<(), InitError> {
        let Some(verification) = &mut self.verification else { return Ok(()) };
        let is_late = verification.started.elapsed() > PATIENCE;
        match &mut verification.phase {
            Phase::Killing => {
                verification.phase = Phase::Ending;
                self.machine.components.iter().try_for_each(|it| it.leaf.kill())?;
            }
            Phase::Ending if !self.machine.components.iter().any(Component::is_populated) => {
                self.ask_for_workdir();
            }
            Phase::Clearing(fresh) if are_gone(&self.machine.components) => {
                let fresh = std::mem::take(fresh);
                self.run_verification(&fresh);
            }
            Phase::Ending | Phase::Keeping | Phase::Clearing(_) if is_late => {
                self.fail_verification("the programs of the box did not end");
            }
            // A holder can have started a program just before it ended.
            Phase::Clearing(_) => {
                self.machine.components.iter().try_for_each(|it| it.leaf.kill())?;
            }
            Phase::Ending | Phase::Keeping | Phase::Running => {}
        }
        Ok(())
    }

    /// Asks the holder for the working directory, unless the directory is on a mount that the new root has, too.
    fn ask_for_workdir(&mut self) {
        let (Some(plan), Some(starter)) = (self.verify_plan(), &self.for_verification) else {
            return;
        };
        let (run, name) = (self.machine.plan, plan.component);
        let workdir = run.component(name).map_or("", |it| it.workdir.as_str());
        if starter.host.have(run, name, workdir.trim_end_matches('/')) {
            return self.clear(FreshRoot::default());
        }
        let asked = self.target(name).map(|it| it.link.send(&Request::Keep, &[]));
        match asked {
            Some(Ok(())) => self.verification.iter_mut().for_each(|it| it.phase = Phase::Keeping),
            _ => self.fail_verification("the holder of its component has ended"),
        }
    }

    /// Takes the answer of the holder: the mount of the working directory, or the reason why there is none.
    pub(super) fn take_workdir(&mut self, path: PathBuf, reason: Option<&str>, fds: Vec<OwnedFd>) {
        match (reason, fds.into_iter().next()) {
            (None, Some(mount)) => self.clear(FreshRoot { workdir: Some((path, mount)) }),
            (reason, _) => {
                self.fail_verification(
                    reason.unwrap_or("the working directory was lost on the way"),
                );
            }
        }
    }

    /// Ends the holders, and with them everything that could still start a program in the old components.
    fn clear(&mut self, fresh: FreshRoot) {
        let mut names = Vec::new();
        for component in self.machine.components.iter_mut().filter(|it| !it.is_lost) {
            component.is_lost = true;
            names.push(component.name);
            // The end of a holder that has ended already is no error.
            let _ = kill(component.holder, Signal::SIGKILL);
        }
        names.into_iter().for_each(|name| self.end_programs_of(name));
        if let Some(verification) = &mut self.verification {
            verification.phase = Phase::Clearing(fresh);
        }
    }

    /// Reports the end of each program of a component whose holder has ended.
    pub(super) fn end_programs_of(&mut self, name: ComponentName) {
        let is_its = |it: &Program| it.component == name && it.status.is_none();
        let programs = self.programs.iter().filter(|(_, program)| is_its(program));
        let ids: Vec<ProgramId> = programs.map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.program_has_ended(id, KILLED));
    }

    /// Runs the command in a new component.
    fn run_verification(&mut self, fresh: &FreshRoot) {
        self.machine.components.clear();
        match self.start_verification(fresh) {
            Ok(program) => {
                self.programs.insert(ProgramId::VERIFICATION, program);
                self.verification.iter_mut().for_each(|it| it.phase = Phase::Running);
            }
            Err(error) => self.fail_verification(&error.to_string()),
        }
    }

    fn start_verification(&mut self, fresh: &FreshRoot) -> Result<Program, InitError> {
        let step = "start the verification";
        let run = self.machine.plan;
        let verify = self.verify_plan().ok_or("the task has none").step(step)?;
        let name = verify.component;
        let starter = self.for_verification.take().ok_or("it has taken place").step(step)?;
        let mut plan =
            without_secrets(run, name).ok_or("the box has no such component").step(step)?;
        let workdir = plan.workdir.trim_end_matches('/');
        let places: Vec<_> = starter.host.written_by(run, name, workdir).collect();
        impartial::set_environment(&mut plan.env, &places, workdir);
        let component = starter.verify(name, &plan, fresh)?;
        component.wait_until_prepared()?;
        let (mut program, mut streams) = Program::with_pipes(name, false).step(step)?;
        // One pipe keeps the order of what the command writes to both.
        streams.stderr = streams.stdout.try_clone().step(step)?;
        let exec = Exec::new(name, verify.argv.iter().cloned());
        self.log(GuestEvent::of_command(ProgramId::VERIFICATION, &exec, Caller::Init));
        let fds = [streams.stdout.as_fd(), streams.stderr.as_fd()];
        let request = Request::Exec { id: ProgramId::VERIFICATION, exec };
        component.link.send(&request, &fds).step(step)?;
        self.machine.components.push(component);
        program.deadline = Instant::now().checked_add(Duration::from_secs(verify.timeout_seconds));
        Ok(program)
    }

    fn verify_plan(&self) -> Option<&'a VerifyPlan> {
        let run: &'a RunPlan = self.machine.plan;
        run.task.as_ref().and_then(|it| it.verify.as_ref())
    }

    /// Keeps the end of what the command writes, and lets it write more.
    pub(super) fn keep_verification_output(&mut self, data: &[u8]) {
        self.verification.iter_mut().for_each(|it| it.output.push(data));
        let program = self.programs.get_mut(&ProgramId::VERIFICATION);
        program.into_iter().for_each(|it| it.grant(u32::MAX));
    }

    /// Keeps the reason why the command was not started. Its end is reported by another event.
    pub(super) fn explain_verification(&mut self, reason: &str) {
        self.verification.iter_mut().for_each(|it| it.reason = Some(reason.to_owned()));
    }

    /// Ends a verification whose command was not started.
    pub(super) fn fail_verification(&mut self, reason: &str) {
        self.explain_verification(reason);
        self.end_verification(Exited {
            id: ProgramId::VERIFICATION,
            status: CANNOT_START,
            oom_killed: false,
            disk_full: false,
            timed_out: false,
            fenced: None,
        });
    }

    /// Ends all programs of the verification, and reports its end and that of the agent. The components stay, without programs.
    pub(super) fn end_verification(&mut self, exited: Exited) {
        let Some(Verification { agent, started, output, reason, .. }) = self.verification.take()
        else {
            return;
        };
        let mut names = Vec::new();
        for component in &mut self.machine.components {
            component.is_lost = true;
            names.push(component.name);
            if let Err(error) = component.leaf.kill() {
                console::say(&error.to_string());
            }
        }
        names.into_iter().for_each(|name| self.end_programs_of(name));
        let end = VerificationEnd {
            status: exited.status,
            timed_out: exited.timed_out,
            oom_killed: exited.oom_killed,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            output: output.text(),
            reason: reason.map(bounded),
        };
        self.send(&GuestMessage::Verification(wire::Verification::Ended(end)));
        self.send(&GuestMessage::Exited(agent));
    }

    /// Reports the agent's end without a verification, if the box is stopped before the command runs. A command that runs is ended
    /// like every other program.
    pub(super) fn abandon_verification(&mut self) {
        if self.is_preparing_verification()
            && let Some(verification) = self.verification.take()
        {
            self.send(&GuestMessage::Exited(verification.agent));
        }
    }
}

/// Returns whether the holders have ended and were reaped, and all other processes of the components have ended.
fn are_gone(components: &[Component]) -> bool {
    let is_gone = |it: &Component| kill(it.holder, None) == Err(Errno::ESRCH) && !it.is_populated();
    components.iter().all(is_gone)
}

/// Returns the plan of a component without the variables of its secrets.
fn without_secrets(run: &RunPlan, name: ComponentName) -> Option<ComponentPlan> {
    let mut plan = run.component(name)?.clone();
    let variables = run.secrets.iter().filter(|it| it.delivery == SecretDelivery::Env);
    let names: Vec<_> = variables.filter(|it| it.scope.includes(name)).map(|it| &it.name).collect();
    let is_secret = |variable: &str| {
        let value = |name: &&String| variable.strip_prefix(name.as_str())?.strip_prefix('=');
        names.iter().any(|name| value(name).is_some())
    };
    plan.env.retain(|variable| !is_secret(variable));
    Some(plan)
}

/// Returns a reason that is as long as the protocol permits.
fn bounded(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_VERIFICATION_REASON));
    reason
}

impl Starter<'_> {
    /// Returns a starter without secrets, for the verification of the task.
    pub(super) fn for_verification(self) -> Self {
        Self { secrets: RefCell::default(), has_disk: false, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept_as_text() {
        let mut tail = Tail::default();
        tail.push(b"begin ");
        for _ in 0..3 {
            tail.push(&[b'x'; MAX_VERIFICATION_OUTPUT / 2]);
        }
        tail.push(b"end");
        let text = tail.text();
        assert_eq!(text.len(), MAX_VERIFICATION_OUTPUT);
        assert!(text.starts_with('x') && text.ends_with("end"));
        let mut bytes = Tail::default();
        bytes.push(&[0xFF; MAX_VERIFICATION_OUTPUT]);
        let text = bytes.text();
        let end = VerificationEnd { output: text.clone(), ..VerificationEnd::default() };
        assert!(end.is_bounded() && text.chars().all(|it| it == '\u{FFFD}'), "{}", text.len());
        assert!(bounded("é".repeat(MAX_VERIFICATION_REASON)).len() <= MAX_VERIFICATION_REASON);
    }
}
