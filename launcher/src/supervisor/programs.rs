//! The commands that run for clients, and the windows of their output and input.

use std::collections::BTreeMap;
use std::sync::Arc;

use box_contract::ComponentName;
use box_contract::wire::{Credit, HostMessage, INPUT_WINDOW, ProgramId, Window};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::watch::WATCHER;

/// A running command.
#[derive(Debug)]
pub(super) struct Program {
    /// The client for which the command runs.
    pub(super) client: u64,
    /// The component in which the command runs.
    pub(super) component: ComponentName,
    /// Distinguishes the command from earlier commands with the same id.
    serial: u64,
    window: Window,
    /// How many more bytes of input init accepts.
    input: u32,
    reads: bool,
}

/// The running commands by their ids.
#[derive(Debug)]
pub(super) struct Programs {
    running: BTreeMap<ProgramId, Program>,
    agent: Window,
    business: Window,
    serial: u64,
    passed: UnboundedSender<Granted>,
    granted: UnboundedReceiver<Granted>,
}

/// Output that has been written to every client that follows its program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Granted {
    /// The program.
    pub(super) id: ProgramId,
    serial: u64,
    cost: u32,
}

/// Accompanies a piece of output on its way to clients. When the last copy is dropped, the program may write more.
#[derive(Debug)]
pub(super) struct Grant {
    granted: Granted,
    passed: UnboundedSender<Granted>,
}

impl Drop for Grant {
    fn drop(&mut self) {
        // Ignore a failure, which means that the supervisor has ended.
        let _ = self.passed.send(self.granted);
    }
}

impl Programs {
    /// Returns a list without commands. `agent` is the agent's [`Window`], which includes the output that was passed on
    /// during the start.
    pub(super) fn new(agent: Window) -> Self {
        let (passed, granted) = unbounded_channel();
        let business = Window::default();
        Self { running: BTreeMap::new(), agent, business, serial: 0, passed, granted }
    }

    /// Adds a command of a client, and returns the command's id.
    pub(super) fn add(
        &mut self,
        client: u64,
        (component, reads): (ComponentName, bool),
    ) -> Result<ProgramId, String> {
        if self.of(client).is_some() {
            return Err("one command runs for each connection".to_owned());
        }
        let mut ids = ProgramId::of_commands();
        let most = ids.len();
        let free = ids.find(|id| !self.running.contains_key(id));
        let id = free.ok_or_else(|| format!("{most} commands run in the box already"))?;
        self.serial += 1;
        let (serial, window, input) = (self.serial, Window::default(), INPUT_WINDOW);
        self.running.insert(id, Program { client, component, serial, window, input, reads });
        Ok(id)
    }

    /// Removes a command that has ended.
    pub(super) fn remove(&mut self, id: ProgramId) -> Option<Program> {
        self.running.remove(&id)
    }

    /// Returns the id of a client's command.
    pub(super) fn of(&self, client: u64) -> Option<ProgramId> {
        self.running.iter().find(|(_, program)| program.client == client).map(|(id, _)| *id)
    }

    /// Returns whether a client's command runs.
    pub(super) fn has_commands(&self) -> bool {
        self.running.values().any(|program| program.client != WATCHER)
    }

    /// Returns the client for which a command runs.
    pub(super) fn client(&self, id: ProgramId) -> Option<u64> {
        self.running.get(&id).map(|program| program.client)
    }

    /// Returns the grant to attach to a piece of output.
    pub(super) fn grant(&self, id: ProgramId, cost: u32) -> Arc<Grant> {
        let serial = self.running.get(&id).map_or(0, |program| program.serial);
        Arc::new(Grant { granted: Granted { id, serial, cost }, passed: self.passed.clone() })
    }

    /// Waits until a piece of output has been written to its clients.
    pub(super) async fn next_granted(&mut self) -> Granted {
        match self.granted.recv().await {
            Some(granted) => granted,
            // Unreachable: this struct has a sender.
            None => std::future::pending().await,
        }
    }

    /// Records that a piece of output has been passed on. Returns how many more bytes to grant to the program, or `None` if
    /// the grant can wait ([`Window::passed`]).
    pub(super) fn passed(&mut self, Granted { id, serial, cost }: Granted) -> Option<u32> {
        match id {
            ProgramId::AGENT => return self.agent.passed(cost),
            ProgramId::BUSINESS => return self.business.passed(cost),
            _ => {}
        }
        let program = self.running.get_mut(&id).filter(|program| program.serial == serial)?;
        program.window.passed(cost)
    }

    /// Records that init accepts more input of a command. Returns the client that may send it.
    pub(super) fn granted_input(&mut self, Credit { id, bytes }: Credit) -> Option<u64> {
        let program = self.running.get_mut(&id)?;
        program.input = program.input.saturating_add(bytes).min(INPUT_WINDOW);
        Some(program.client)
    }

    /// Replaces the id in a client's message with the id of the client's command.
    ///
    /// # Errors
    /// If the client sends more input than it may.
    pub(super) fn addressed(
        &mut self,
        message: HostMessage,
        own: ProgramId,
    ) -> Result<HostMessage, String> {
        Ok(match message {
            HostMessage::Input(mut input) => {
                self.take_input(own, input.data.len())?;
                input.id = own;
                HostMessage::Input(input)
            }
            HostMessage::InputEnd(mut end) => {
                end.id = own;
                HostMessage::InputEnd(end)
            }
            HostMessage::Resize(mut resize) => {
                resize.id = own;
                HostMessage::Resize(resize)
            }
            other => other,
        })
    }

    fn take_input(&mut self, id: ProgramId, length: usize) -> Result<(), String> {
        let Some(program) = self.running.get_mut(&id).filter(|program| program.reads) else {
            return Err("the command reads nothing".to_owned());
        };
        let left = u32::try_from(length).ok().and_then(|length| program.input.checked_sub(length));
        program.input = left.ok_or("more input was sent than the command takes")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use box_contract::wire::{Input, WINDOW};

    use super::*;

    const DEAF: (ComponentName, bool) = (ComponentName::Agent, false);

    #[test]
    fn what_an_earlier_command_wrote_is_not_granted_to_a_later_one() {
        let mut programs = Programs::new(Window::default());
        let id = programs.add(1, DEAF).unwrap();
        let grant = programs.grant(id, WINDOW);
        programs.remove(id).unwrap();
        assert_eq!(programs.add(2, DEAF), Ok(id), "ids are used again");
        drop(grant);
        let granted = programs.granted.try_recv().unwrap();
        assert_eq!(programs.passed(granted), None);
        drop(programs.grant(id, WINDOW));
        let granted = programs.granted.try_recv().unwrap();
        assert_eq!(programs.passed(granted), Some(WINDOW));
    }

    #[test]
    fn output_is_granted_once_all_copies_are_gone() {
        let mut programs = Programs::new(Window::default());
        let (one, other) = {
            let grant = programs.grant(ProgramId::AGENT, WINDOW);
            (Arc::clone(&grant), grant)
        };
        drop(one);
        assert!(programs.granted.try_recv().is_err());
        drop(other);
        let granted = programs.granted.try_recv().unwrap();
        assert_eq!(programs.passed(granted), Some(WINDOW));
    }

    #[test]
    fn one_command_runs_for_each_client_and_so_many_in_all() {
        let mut programs = Programs::new(Window::default());
        for client in 0..254 {
            programs.add(client, DEAF).unwrap();
        }
        assert!(programs.add(3, DEAF).unwrap_err().starts_with("one command"));
        assert!(programs.add(999, DEAF).unwrap_err().starts_with("254 commands"));
        assert_eq!((programs.of(3), programs.client(ProgramId(4))), (Some(ProgramId(4)), Some(3)));
    }

    #[test]
    fn no_more_input_is_taken_than_was_granted() {
        let mut programs = Programs::new(Window::default());
        let id = programs.add(1, (ComponentName::Agent, true)).unwrap();
        let input =
            |length| HostMessage::Input(Input { id: ProgramId::COMMAND, data: vec![0; length] });
        let window = INPUT_WINDOW as usize;
        let HostMessage::Input(sent) = programs.addressed(input(window), id).unwrap() else {
            panic!()
        };
        assert_eq!(sent.id, id);
        assert!(programs.addressed(input(1), id).is_err());
        assert_eq!(programs.granted_input(Credit { id, bytes: 5 }), Some(1));
        assert!(
            programs.addressed(input(5), id).is_ok() && programs.addressed(input(1), id).is_err()
        );
        let deaf = programs.add(2, DEAF).unwrap();
        assert!(programs.addressed(input(1), deaf).is_err());
    }
}
