//! The network of a served box: changes its rules, and reports denials to clients.

use std::collections::BTreeSet;
use std::future::pending;
use std::time::Instant;

use box_contract::wire::{
    Connect, Denied, Follow, GuestMessage, HostMessage, PublishPort, RuleChange,
};
use box_contract::{NetworkMode, PeerPlan};
use egress_proxy::{Decision, is_own};
use egress_rules::{Local, Rules, USUAL_PORTS};

use super::Supervisor;
use crate::boxes::Record;
use crate::network::{Network, NetworkError, Published};
use crate::streams::attached::MAX_ATTACHED;

/// How many different denials of a run are sent to clients.
const MAX_TOLD: usize = 100;

/// Waits for the next denial of a network's filter. Never returns if there is no filter.
pub(super) async fn next_denied(network: Option<&mut Network>) -> Decision {
    match network {
        Some(network) => network.next_denied().await,
        None => pending().await,
    }
}

/// Returns the rules sorted, without duplicates.
fn sorted(rules: Vec<PeerPlan>) -> Vec<PeerPlan> {
    rules.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns the addresses outside the internet that a user permits by allowing `rule` with `boxlaunch network`: at the
/// rule's port or, without one, at the usual ports.
fn given_by(rule: &PeerPlan) -> Vec<PeerPlan> {
    let Some(local) = Local::of(rule) else { return Vec::new() };
    let ports = rule.port.map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port]);
    let peer = local.plan().peer;
    ports.into_iter().map(|port| PeerPlan { peer: peer.clone(), port: Some(port) }).collect()
}

/// Returns the addresses outside the internet that are permitted after a change of a box's rules. `now` are the
/// addresses before the change, and `at_start` the addresses of the command line. A change that adds rules also permits
/// their addresses. A change that replaces all rules keeps `at_start`, and the addresses in `now` that a new rule
/// needs.
fn local_after(
    change: &RuleChange,
    rules: &Rules,
    now: &[PeerPlan],
    at_start: &[PeerPlan],
) -> Vec<PeerPlan> {
    if !change.replace {
        return sorted([now.to_vec(), change.allow.iter().flat_map(given_by).collect()].concat());
    }
    let is_of_use = |it: &&PeerPlan| Local::of(it).is_some_and(|it| it.is_of_use(&rules.allow));
    let used = now.iter().filter(is_of_use);
    sorted(at_start.iter().chain(used).cloned().collect())
}

/// Refuses rules about addresses outside the internet that are not in `given`.
fn check_given(rules: &Rules, given: &[Local], name: &str) -> Result<(), String> {
    let wanted = Local::wanted(&rules.allow, given, is_own);
    if wanted.is_empty() {
        return Ok(());
    }
    let needs: Vec<_> = wanted.iter().map(|it| it.needs.to_string()).collect();
    let purposes: Vec<_> =
        wanted.iter().map(|it| format!("{} ({})", it.needs, it.purpose)).collect();
    Err(format!(
        "addresses that are not on the internet are yours to give: {}; if the box may reach them: `boxlaunch network {name} \
         allow {}`, and then this again",
        purposes.join(", "),
        needs.join(" "),
    ))
}

impl Supervisor {
    /// Changes the rules of the box's filter. A rule that is added also permits its addresses outside the internet. If
    /// all rules are replaced, such addresses must have been permitted before.
    pub(super) fn set_rules(&mut self, change: RuleChange) -> Result<(), String> {
        let record = &self.entry.record;
        let network = self.machine.network.as_ref();
        let filter = network.and_then(|it| it.filter.as_ref());
        let is_filtered = record.network.mode == NetworkMode::Filtered;
        let Some(filter) = filter.filter(|_| is_filtered) else {
            let mode = record.network.mode.name();
            return Err(format!("its network is {mode:?}, which has no rules"));
        };
        let plan = change.clone().of(&record.network);
        let rules = Rules::try_from(&plan).map_err(|error| error.to_string())?;
        let local = local_after(&change, &rules, &record.network_local, &self.given);
        let given: Vec<_> = local.iter().filter_map(Local::of).collect();
        check_given(&rules, &given, &record.name)?;
        filter.reload(Rules { local: given, ..rules });
        network.map_or(Ok(()), |it| it.services.deny(&plan.deny)).map_err(|it| it.to_string())?;
        let noted = self.entry.update(|record| {
            (record.network, record.network_local) = (plan, local);
        });
        noted.map_err(|error| format!("they hold, but could not be noted: {error}"))
    }

    /// Publishes a port of a component. Later starts of the box publish it, too, because the record has it.
    pub(super) fn publish(
        &mut self,
        PublishPort { host, guest, component }: PublishPort,
    ) -> Result<(), String> {
        if self.kill_at.is_some() || self.successor.is_some() || self.retiring.is_some() {
            return Err("it is being stopped or replaced".to_owned());
        }
        if guest == 0 {
            return Err("a component has no port 0".to_owned());
        }
        let none = "it was started without a network and without ports, so it gets its first one when it is started with `-p`: `run --replace`, or `down` and `up`";
        let network = self.machine.network.as_mut().ok_or(none)?;
        if network.published.len() >= MAX_ATTACHED {
            return Err(format!("it publishes {MAX_ATTACHED} ports, the most that it may"));
        }
        let wanted = Published { host, guest, component, declared: false };
        let published = network.publish(&wanted).map_err(|error| match error {
            NetworkError::Port { at, source } => format!("{at}: {source}"),
            error => error.to_string(),
        })?;
        // A component whose programs need no network is connected now.
        self.machine.tell(&HostMessage::Connect(Connect { component }));
        let noted = self.entry.update(|record| record.published.push(published));
        noted.map_err(|error| format!("it is published, but could not be noted: {error}"))
    }

    /// Counts a denial, and sends it once to the clients that follow the agent's output.
    pub(super) fn tell_denied(&mut self, decision: &Decision) {
        let count = |record: &mut Record| record.denied = record.denied.saturating_add(1);
        self.entry.note(count, Instant::now());
        let (component, what) = (decision.component, decision.to_string());
        if self.clients.are_behind() || self.reported.len() >= MAX_TOLD {
            return;
        }
        if self.reported.insert((component, what.clone())) {
            let denied = GuestMessage::Denied(Denied { component, what });
            self.clients.tell(&[Follow::Output], &denied, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_takes_back_what_was_given_by_hand() {
        let peers = |rules: &[&str]| -> Vec<PeerPlan> {
            let peer = |text: &&str| {
                let (peer, port) = egress_rules::Peer::parse_with_port(text).unwrap();
                PeerPlan { peer: peer.to_string(), port }
            };
            rules.iter().map(peer).collect()
        };
        let after = |allow: &[&str], replace, now: &[&str]| -> Vec<String> {
            let change = RuleChange { allow: peers(allow), deny: Vec::new(), replace };
            let plan = change.clone().of(&box_contract::NetworkPlan::default());
            let rules = Rules::try_from(&plan).unwrap();
            let local = local_after(&change, &rules, &peers(now), &peers(&["10.0.0.0/8"]));
            local.iter().filter_map(Local::of).map(|it| it.to_string()).collect()
        };
        let by_hand = after(&["127.0.0.1:9999", "a.example.com"], false, &["10.0.0.0/8"]);
        assert_eq!(by_hand, ["10.0.0.0/8", "127.0.0.1:9999"]);
        let now = ["10.0.0.0/8", "127.0.0.1:9999"];
        assert_eq!(after(&["a.example.com"], true, &now), ["10.0.0.0/8"]);
        assert_eq!(after(&["127.0.0.1:80"], true, &now), ["10.0.0.0/8"]);
        assert_eq!(after(&["127.0.0.1:9999"], true, &now), now);
        // The addresses of the command line are kept across any reload.
        assert_eq!(after(&["a.example.com"], true, &[]), ["10.0.0.0/8"]);
    }
}
