//! The supervisor's part in a box's network: changes of its rules, and denials, which clients see.

use std::future::pending;

use box_image::wire::{Denied, Follow, GuestMessage, RuleChange};
use egress_proxy::Decision;
use egress_rules::Rules;

use super::Supervisor;
use crate::network::Network;

/// How much clients are told that the filter has denied.
const MAX_TOLD: usize = 100;

/// Waits for the next thing that the filter of a network denies; for ever, without a filter.
pub(super) async fn next_denied(network: Option<&mut Network>) -> Decision {
    match network {
        Some(network) => network.next_denied().await,
        None => pending().await,
    }
}

impl Supervisor {
    /// Replaces the rules of the box's filter.
    pub(super) fn set_rules(&mut self, change: RuleChange) -> Result<(), String> {
        let Some(filter) = self.machine.network.as_ref().and_then(|it| it.filter.as_ref()) else {
            let mode = self.entry.record.network.mode.name();
            return Err(format!("its network is {mode:?}, which has no rules"));
        };
        let plan = change.of(&self.entry.record.network);
        filter.reload(Rules::try_from(&plan).map_err(|error| error.to_string())?);
        let noted = self.entry.update(|record| record.network = plan);
        noted.map_err(|error| format!("they hold, but could not be noted: {error}"))
    }

    /// Tells those who follow the agent of something that was denied, once.
    pub(super) fn tell_denied(&mut self, decision: &Decision) {
        let (component, what) = (decision.component, decision.to_string());
        if self.clients.are_behind() || self.told.len() >= MAX_TOLD {
            return;
        }
        if self.told.insert((component, what.clone())) {
            let denied = GuestMessage::Denied(Denied { component, what });
            self.clients.tell(&[Follow::Output], &denied, None);
        }
    }
}
