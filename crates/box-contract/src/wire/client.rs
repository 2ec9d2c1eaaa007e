//! The first message of a client of a running box's supervisor, on the supervisor's Unix socket.
//!
//! After its [`Greeting`] a client sends [`HostMessage`](super::HostMessage)s, as the supervisor itself does to
//! init, or a [`RuleChange`]: at most one command for each connection, whose id the supervisor chooses. The answers are
//! [`GuestMessage`](super::GuestMessage)s, which name each program by its
//! [`ProgramId`](super::ProgramId). Output needs no credit: what the client does not read, the supervisor grants to nobody.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, read_frame, write_frame};
use crate::{NetworkPlan, PeerPlan};

/// The version of the messages between a supervisor and its clients.
pub const CLIENT_PROTOCOL: u32 = 1;

messages! {
    /// The messages that only clients send.
    pub enum ClientMessage {
        /// The first message of a connection.
        129 => Greeting(Greeting),
        /// Change the rules of the box's filter.
        130 => Rules(RuleChange),
    }
}

/// Says which protocol a client speaks, and what it wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// [`CLIENT_PROTOCOL`].
    pub protocol: u32,
    /// Which messages about the agent it gets.
    pub agent: Follow,
}

/// Other rules for what a box may connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleChange {
    /// As [`NetworkPlan::allow`].
    pub allow: Vec<PeerPlan>,
    /// As [`NetworkPlan::deny`].
    pub deny: Vec<PeerPlan>,
    /// Whether they are all from now on, and do not come to those that hold.
    pub replace: bool,
}

impl RuleChange {
    /// Returns a network with these rules.
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

/// Which messages about the agent a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Follow {
    /// None.
    Nothing,
    /// Its end.
    End,
    /// Its output from now on, and its end; also the ends of the business application's own program.
    Output,
}
