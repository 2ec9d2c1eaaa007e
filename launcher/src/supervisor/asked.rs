//! Handles the messages of the supervisor's clients.

use box_contract::wire::{Follow, GuestMessage, HostMessage, ProgramId, Signal};
use nix::libc::SIGKILL;

use super::approvals::DECIDE;
use super::clients::{FromClient, MAX_CLIENTS};
use super::hand_over::HAND_OVER;
use super::{CONTINUE, Flow, Supervisor, failed};

/// How many clients may wait for the guest's answers to [`HostMessage::Measure`].
const MAX_MEASURED: usize = 64;

impl Supervisor {
    /// Handles an event of a client.
    pub(super) fn serve_client(&mut self, message: FromClient) -> Flow {
        if let (Some(idle), FromClient::Asked { .. }) = (&mut self.idle, &message) {
            idle.used();
        }
        match message {
            FromClient::Connected(stream) => {
                let why = format!("it has {MAX_CLIENTS} clients");
                self.clients.welcome_or(stream, &failed("serve another client", &why));
            }
            FromClient::Greeted { client, follow } => {
                self.clients.follow(client, follow);
                if let (Some(exit), Follow::End | Follow::Output) = (self.agent_exit, follow) {
                    self.clients.send(client, &GuestMessage::Exited(exit), None);
                }
            }
            // Ignores a client that was removed, for example because there were too many.
            FromClient::Asked { client, .. } if !self.clients.knows(client) => {}
            FromClient::Asked { client, message } => {
                return self.ask(client, *message).unwrap_or_else(|reason| {
                    self.clients.send(client, &failed("do that", &reason), None);
                    CONTINUE
                });
            }
            FromClient::Rules { client, rules } if self.clients.knows(client) => {
                let done = self.set_rules(rules);
                self.report(client, "change the box's rules", done);
            }
            FromClient::Publish { client, port } if self.clients.knows(client) => {
                let done = self.publish(port);
                self.report(client, "publish a port", done);
            }
            FromClient::Approvals { client, of } if self.clients.knows(client) => {
                self.send_questions(client, of);
            }
            FromClient::Decide { client, answer } if self.clients.knows(client) => {
                let done = self.decide(answer);
                self.report(client, DECIDE, done);
            }
            FromClient::Rules { .. }
            | FromClient::Publish { .. }
            | FromClient::Approvals { .. }
            | FromClient::Decide { .. } => {}
            FromClient::HandOver { client } => {
                let done = self.hand_over(client);
                self.report(client, HAND_OVER, done);
            }
            FromClient::TakeOver { client, take } => {
                let done = self.give_way(client, &take);
                self.report(client, HAND_OVER, done);
            }
            FromClient::Misused { client, reason } => {
                self.clients.send(client, &failed("understand its client", &reason), None);
            }
            FromClient::Gone { client } => self.part(client),
        }
        CONTINUE
    }

    /// Tells a client why the supervisor cannot do `step`. A no-op if it is done.
    fn report(&mut self, client: u64, step: &str, done: Result<(), String>) {
        if let Err(reason) = done {
            self.clients.send(client, &failed(step, &reason), None);
        }
    }

    /// Removes a client that has disconnected, and kills its command.
    fn part(&mut self, client: u64) {
        self.clients.remove(client);
        self.part_successor(client);
        if let Some(id) = self.programs.of(client) {
            self.machine.tell(&HostMessage::Signal(Signal { id, signal: SIGKILL }));
        }
        self.end_unanswerable();
    }

    /// Fulfils a client's request, or returns the reason for a refusal.
    fn ask(&mut self, client: u64, message: HostMessage) -> Result<Flow, String> {
        let own = self.programs.of(client);
        let message = match message {
            HostMessage::Shutdown(shutdown) => {
                self.was_asked = true;
                return Ok(self.begin_stop(shutdown.grace()));
            }
            HostMessage::Exec(_) if self.kill_at.is_some() => {
                return Err("the box is being stopped".to_owned());
            }
            HostMessage::Exec(mut exec) => {
                let reads = exec.stdin || exec.terminal.is_some();
                exec.id = self.programs.add(client, (exec.component, reads))?;
                HostMessage::Exec(exec)
            }
            HostMessage::Signal(signal) if signal.id == ProgramId::AGENT => {
                self.sent_signal = Some(signal.signal);
                HostMessage::Signal(signal)
            }
            HostMessage::Measure(_) if self.measured_for.contains(&client) => {
                return Err("it is being measured".to_owned());
            }
            HostMessage::Measure(_) if self.measured_for.len() >= MAX_MEASURED => {
                return Err("its guest does not answer".to_owned());
            }
            HostMessage::Measure(_) => message,
            // Ignored: only the supervisor may send these.
            HostMessage::Credit(_)
            | HostMessage::Clock(_)
            | HostMessage::Variable(_)
            | HostMessage::Secret(_)
            | HostMessage::Mounts(_)
            | HostMessage::Answer(_)
            | HostMessage::FilePart(_) => {
                return Ok(CONTINUE);
            }
            // Ignored: the client has no command, or its command has ended.
            _ if own.is_none() => return Ok(CONTINUE),
            HostMessage::Signal(mut signal) => {
                signal.id = own.unwrap_or(ProgramId::AGENT);
                HostMessage::Signal(signal)
            }
            message => self.programs.addressed(message, own.unwrap_or(ProgramId::AGENT))?,
        };
        self.send_for(client, &message)?;
        Ok(CONTINUE)
    }

    /// Sends a client's request to the guest.
    fn send_for(&mut self, client: u64, message: &HostMessage) -> Result<(), String> {
        if let Err(error) = self.machine.events.send(message) {
            if let HostMessage::Exec(exec) = message {
                self.programs.remove(exec.id);
            }
            return Err(error.to_string());
        }
        if matches!(message, HostMessage::Measure(_)) {
            self.measured_for.push_back(client);
        }
        Ok(())
    }
}
