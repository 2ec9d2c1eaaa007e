//! The messages that only a client of a running box's supervisor sends, over the supervisor's Unix socket.
//!
//! A client first sends a [`Greeting`], and then the [`HostMessage`](super::HostMessage)s that the supervisor sends to
//! init, or a [`RuleChange`]. Each connection may have one command, whose id the supervisor chooses. The supervisor
//! answers with [`GuestMessage`](super::GuestMessage)s, which identify each program by its
//! [`ProgramId`](super::ProgramId). A client grants no credit for output: backpressure works because the supervisor
//! grants init credit only for output that the client has read.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, read_frame, write_frame};
use crate::{NetworkPlan, PeerPlan};

/// The version of the protocol between a supervisor and its clients.
pub const CLIENT_PROTOCOL: u32 = 1;

messages! {
    /// The messages that only clients send.
    pub enum ClientMessage {
        /// The first message of a connection.
        129 => Greeting(Greeting),
        /// Changes the rules of the box's filter.
        130 => Rules(RuleChange),
    }
}

/// The protocol version of a client, and its subscription to the agent's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// [`CLIENT_PROTOCOL`].
    pub protocol: u32,
    /// The messages about the agent that the client gets.
    pub agent: Follow,
}

/// New rules for the box's connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleChange {
    /// As in [`NetworkPlan::allow`].
    pub allow: Vec<PeerPlan>,
    /// As in [`NetworkPlan::deny`].
    pub deny: Vec<PeerPlan>,
    /// Whether these rules replace the current rules. If false, they are added to the current rules.
    pub replace: bool,
}

impl RuleChange {
    /// Applies the change to a network's rules.
    pub fn of(self, network: &NetworkPlan) -> NetworkPlan {
        let all = |old: &[PeerPlan], mut rules: Vec<PeerPlan>| {
            rules.extend(old.iter().filter(|_| !self.replace).cloned());
            rules.sort();
            rules.dedup();
            rules
        };
        let (allow, deny) = (all(&network.allow, self.allow), all(&network.deny, self.deny));
        NetworkPlan { allow, deny, ..network.clone() }
    }
}

/// The messages about the agent that a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// No messages.
    Nothing,
    /// The agent's exit.
    End,
    /// The agent's output from now on and its exit, and the exits of the business application's main program.
    Output,
}
