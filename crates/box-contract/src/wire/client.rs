//! The messages that only a client of a running box's supervisor sends, over the supervisor's Unix socket.
//!
//! A client first sends a [`Greeting`], and then the [`HostMessage`](super::HostMessage)s that the supervisor sends to
//! init, a [`RuleChange`], a [`PublishPort`], an [`ApprovalsQuery`], an [`Answer`], or the requests of a box that replaces this one:
//! [`HandOver`] and [`TakeOver`]. Each
//! connection may have one command, whose id the supervisor chooses. The supervisor answers with [`GuestMessage`](super::GuestMessage)s, which identify each program by its
//! [`ProgramId`](super::ProgramId). A client grants no credit for output: backpressure works because the supervisor
//! grants init credit only for output that the client has read.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::approval::{Answer, ApprovalsQuery};
use super::frame::{Body, invalid, read_frame, write_frame};
use crate::{ComponentName, NetworkPlan, PeerPlan};

/// The version of the protocol between a supervisor and its clients.
pub const CLIENT_PROTOCOL: u32 = 1;

messages! {
    /// The messages that only clients send.
    pub enum ClientMessage {
        /// The first message of a connection.
        129 => Greeting(Greeting),
        /// Changes the rules of the box's filter.
        130 => Rules(RuleChange),
        /// Asks for the sockets of the box's published ports. The supervisor answers with
        /// [`Handed`](super::GuestMessage::Handed), to which the sockets are attached, and goes on accepting clients.
        131 => HandOver(HandOver),
        /// Tells the supervisor that the client, another box's supervisor, now has the box's name and accepts the clients of
        /// its ports. The supervisor answers with [`Handed`](super::GuestMessage::Handed), and ends its box.
        132 => TakeOver(TakeOver),
        /// Publishes a port of a component.
        133 => Publish(PublishPort),
        /// Asks for the questions about commands that wait for an answer. The supervisor answers with
        /// [`Question`](super::GuestMessage::Question)s.
        134 => Approvals(ApprovalsQuery),
        /// Answers a question. The supervisor answers only to refuse it.
        135 => Decide(Answer),
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

/// The request for the sockets of published ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {}

/// The request to end in favour of another box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeOver {
    /// The name that the other box has had until now. The two boxes exchange their names.
    pub name: String,
    /// How long open connections to published ports may last before the box is stopped, in milliseconds.
    pub drain_ms: u32,
}

impl TakeOver {
    /// Returns how long open connections may last.
    pub const fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms as u64)
    }
}

/// The request to publish a port of a component while the box runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishPort {
    /// The address to which clients connect on the host. If the port is 0, the kernel chooses one.
    pub host: SocketAddr,
    /// The TCP port on the component's loopback interface.
    pub guest: u16,
    /// The component whose port it is.
    pub component: ComponentName,
}

/// The answer to a [`HandOver`] or a [`TakeOver`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handed {}

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
