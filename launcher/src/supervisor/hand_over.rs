//! Another box replaces the served one: it gets the sockets of the published ports, and then the name.
//!
//! Until the other box takes over, this box goes on as if nothing had been asked: it accepts clients, and stays if the other
//! supervisor disconnects.

use std::future::pending;
use std::time::Instant;

use box_contract::wire::{GuestMessage, Handed, TakeOver};

use super::{CONTINUE, Flow, Supervisor};
use crate::network::ports::Draining;
use crate::streams::attached::MAX_ATTACHED;

/// The action in the refusal of a request to be replaced.
pub(super) const HAND_OVER: &str = "give way to another box";

/// The end of a box that another one has replaced.
#[derive(Debug)]
pub(super) struct Retiring {
    /// The clients of its published ports that are still connected. `None` if it has no published ports.
    clients: Option<Draining>,
    /// When the box is stopped, even if clients are connected.
    until: Instant,
}

/// Waits until the clients of a retiring box are gone. Never returns if no box retires.
pub(super) async fn drained(retiring: Option<&Retiring>) {
    match retiring {
        Some(Retiring { clients: Some(clients), until }) => clients.ended(*until).await,
        Some(Retiring { clients: None, .. }) => {}
        None => pending().await,
    }
}

impl Supervisor {
    /// Sends the sockets of the published ports to a client, the supervisor of another box.
    pub(super) fn hand_over(&mut self, client: u64) -> Result<(), String> {
        if self.kill_at.is_some() {
            return Err("it is being stopped".to_owned());
        }
        if self.successor.is_some() {
            return Err("a third box is about to replace it".to_owned());
        }
        let sockets = self.machine.network.as_ref().map(|it| it.ports.sockets()).transpose();
        let sockets = sockets.map_err(|error| error.to_string())?.unwrap_or_default();
        if sockets.len() > MAX_ATTACHED {
            return Err(format!("it publishes more than {MAX_ATTACHED} ports"));
        }
        self.successor = Some(client);
        self.clients.send_files(client, &GuestMessage::Handed(Handed {}), sockets);
        Ok(())
    }

    /// Exchanges the names of this box and its successor, and accepts no more clients.
    pub(super) fn give_way(&mut self, client: u64, take: &TakeOver) -> Result<(), String> {
        if self.successor != Some(client) || self.retiring.is_some() {
            return Err("it has not handed its ports over".to_owned());
        }
        if self.kill_at.is_some() {
            return Err("it is being stopped".to_owned());
        }
        self.entry.exchange(&take.name).map_err(|error| error.to_string())?;
        self.was_asked = true;
        self.machine.logs.move_to(self.entry.directory());
        let clients = self.machine.network.as_mut().map(|it| it.ports.close());
        self.retiring = Some(Retiring { clients, until: Instant::now() + take.drain() });
        self.clients.send(client, &GuestMessage::Handed(Handed {}), None);
        Ok(())
    }

    /// Stops the box after another one has replaced it.
    pub(super) fn retire(&mut self) -> Flow {
        self.retiring = None;
        if self.kill_at.is_some() {
            return CONTINUE;
        }
        self.begin_stop(self.terms.grace)
    }

    /// Handles the end of a client's connection: a successor that has not taken over no longer replaces this box.
    pub(super) fn part_successor(&mut self, client: u64) {
        if self.successor == Some(client) {
            self.successor = None;
        }
    }
}
