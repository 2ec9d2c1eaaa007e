//! Compares the permissions of two boxes.

mod rules;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::Serialize;

use super::Permission;
use crate::capabilities::CAPABILITIES;
use crate::{
    Access, Capabilities, ComponentName, ComponentPlan, Namespaces, NetworkMode, NetworkPlan,
    RunPlan, SystemDirectories,
};

/// A permission in which two boxes differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PermissionChange {
    /// The subject, as in [`Permission::field`].
    pub field: String,
    /// Whether the second box may do more.
    pub effect: Effect,
    /// The permission of the first box. `None` if it has none.
    pub a: Option<String>,
    /// The permission of the second box. `None` if it has none.
    pub b: Option<String>,
}

/// Whether a change of a permission lets a box do more. The order is the order in which changes are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The box may do something that it may not do before.
    More,
    /// Neither of the others, or unknown.
    Other,
    /// The box may no longer do something, and may do nothing new.
    Less,
}

impl Effect {
    /// Describes the effect in two words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::More => "allows more",
            Self::Other => "changed",
            Self::Less => "allows less",
        }
    }

    /// Returns the effect of the change back.
    const fn reversed(self) -> Self {
        match self {
            Self::More => Self::Less,
            Self::Other => Self::Other,
            Self::Less => Self::More,
        }
    }

    /// Returns the effect of a value that grows or shrinks.
    const fn of(order: Ordering) -> Self {
        match order {
            Ordering::Less => Self::More,
            Ordering::Equal => Self::Other,
            Ordering::Greater => Self::Less,
        }
    }
}

impl RunPlan {
    /// Returns the permissions that differ between this box and a later one, those that allow more first. The texts are safe for a
    /// terminal.
    pub fn permission_changes(&self, later: &Self) -> Vec<PermissionChange> {
        let (mut fields, mut order) = (BTreeMap::<String, [Vec<String>; 2]>::new(), Vec::new());
        for (side, plan) in [self, later].into_iter().enumerate() {
            for Permission { field, value } in plan.permissions() {
                if !fields.contains_key(&field) {
                    order.push(field.clone());
                }
                fields.entry(field).or_default()[side].push(value);
            }
        }
        let values = |field: String| fields.remove(&field).map(|values| (field, values));
        let changes = order.into_iter().filter_map(values).flat_map(|(field, [a, b])| {
            let pairs = pairs(a, b);
            pairs.into_iter().map(move |[a, b]| (field.clone(), a, b)).collect::<Vec<_>>()
        });
        let mut all: Vec<_> = changes
            .map(|(field, a, b)| {
                let effect = effect(&field, [self, later], a.is_some(), b.is_some());
                PermissionChange { field, effect, a, b }
            })
            .collect();
        all.extend(rules::changes(self, later));
        all.sort_by_key(|it| it.effect);
        all
    }
}

/// Removes the values that both boxes have, and pairs the rest if each box has one.
fn pairs(mut a: Vec<String>, mut b: Vec<String>) -> Vec<[Option<String>; 2]> {
    a.retain(|value| match b.iter().position(|it| it == value) {
        Some(at) => {
            b.remove(at);
            false
        }
        None => true,
    });
    if let ([one], [other]) = (&a[..], &b[..]) {
        return vec![[Some(one.clone()), Some(other.clone())]];
    }
    let removed = a.into_iter().map(|it| [Some(it), None]);
    removed.chain(b.into_iter().map(|it| [None, Some(it)])).collect()
}

/// Returns the effect of a change of the permission `field`, which the boxes have or lack.
fn effect(field: &str, plans: [&RunPlan; 2], has_a: bool, has_b: bool) -> Effect {
    let presence = Effect::of(has_a.cmp(&has_b));
    let of_share = field.strip_prefix("share ").and_then(|name| share(name, plans));
    match field {
        "network" => network(plans.map(|it| &it.network)),
        // Another host in the list is a new one, whichever host it replaces.
        "network allow" if has_b => Effect::More,
        "network deny" if has_a => Effect::More,
        "network deny" => Effect::Less,
        // Another service, or another header with a secret, is a new one, whichever it replaces.
        _ if has_b && field.starts_with("service ") => Effect::More,
        // So is another MCP server.
        _ if has_b && field.starts_with("mcp ") => Effect::More,
        // A program of an event can refuse what the agent does, so a box without it may do more, too.
        _ if field.starts_with("hook ") => Effect::More,
        // So may a box whose work nobody verifies or records.
        "task verify" | "logs" if !has_b => Effect::More,
        // What these change depends on the rest of the plan.
        "network limits" | "sandbox" | "vm" => Effect::Other,
        _ if of_share.is_some() => of_share.unwrap_or(presence),
        _ => component(field, plans).unwrap_or(presence),
    }
}

/// Returns the effect of a change of the mode, or of whether a filtered network has hosts at all. Each host has its own permission.
fn network(plans: [&NetworkPlan; 2]) -> Effect {
    let rank = |plan: &NetworkPlan| match plan.mode {
        NetworkMode::None => 0,
        // The hosts of one of these are not the hosts of the other.
        NetworkMode::Filtered | NetworkMode::CapOnly => 1,
        NetworkMode::Shared => 2,
    };
    let [a, b] = plans;
    let order = rank(a).cmp(&rank(b));
    let hosts = || (!a.allow.is_empty()).cmp(&!b.allow.is_empty());
    Effect::of(if a.mode == b.mode { hosts() } else { order })
}

/// Returns the effect of a change of a share that both boxes have.
fn share(name: &str, plans: [&RunPlan; 2]) -> Option<Effect> {
    let [a, b] = plans.map(|it| it.shares.iter().find(|it| it.name == name));
    let is_writable = |access| access == Access::ReadWrite;
    let order = is_writable(a?.access).cmp(&is_writable(b?.access));
    let rest = |it: &crate::SharePlan| (it.guest.clone(), it.scope, it.host.clone());
    // A change of another field can allow more, even if the share is no longer writable.
    Some(if order.is_gt() && rest(a?) != rest(b?) { Effect::Other } else { Effect::of(order) })
}

/// Returns the effect of a change of a component's capabilities, namespaces, user or system, which a list of the differences from the
/// defaults does not show. `None` for another field, or if a box lacks the component.
fn component(field: &str, plans: [&RunPlan; 2]) -> Option<Effect> {
    let (name, field) = field.split_once(' ')?;
    let name = ComponentName::ALL.into_iter().find(|it| it.name() == name)?;
    let [a, b] = plans.map(|it| it.component(name));
    let (a, b): (&ComponentPlan, &ComponentPlan) = (a?, b?);
    Some(match field {
        "capabilities" => of_sets(capabilities(a.capabilities), capabilities(b.capabilities)),
        // A component without a namespace of its own sees the other component's.
        "namespaces" => of_sets(missing(a.namespaces), missing(b.namespaces)),
        "user" => Effect::of((a.user.uid == 0).cmp(&(b.user.uid == 0))),
        // It is a restriction: a component without it may do more.
        "system" => Effect::of(is_writable(a).cmp(&is_writable(b))),
        _ => return None,
    })
}

fn is_writable(plan: &ComponentPlan) -> bool {
    plan.system == SystemDirectories::Writable
}

/// Returns the effect of a set that grows, shrinks, or does both.
fn of_sets<const N: usize>(a: [bool; N], b: [bool; N]) -> Effect {
    let adds = a.iter().zip(&b).any(|(a, b)| !a & b);
    let removes = a.iter().zip(&b).any(|(a, b)| a & !b);
    if adds { Effect::More } else { Effect::of(removes.cmp(&false)) }
}

fn capabilities(of: Capabilities) -> [bool; CAPABILITIES.len()] {
    std::array::from_fn(|at| of.contains(&CAPABILITIES[at]))
}

fn missing(Namespaces { mount, pid, ipc, uts, net }: Namespaces) -> [bool; 5] {
    [!mount, !pid, !ipc, !uts, !net]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;
    use crate::plan::tests::{GROWN, grown};

    fn lines(a: &RunPlan, b: &RunPlan) -> Vec<String> {
        let value = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
        let line = |it: PermissionChange| {
            format!("{}: {}: {} → {}", it.effect.text(), it.field, value(it.a), value(it.b))
        };
        a.permission_changes(b).into_iter().map(line).collect()
    }

    #[test]
    fn what_allows_more_is_first_and_its_reversal_allows_less() {
        let a = grown(r#"{"network": {"mode": "filtered", "deny": [{"peer": "example.net"}]}}"#);
        let mut b = grown(r#"{"network": {"mode": "shared"}}"#);
        b.agent.capabilities = serde_json::from_str(r#"["CHOWN","NET_RAW"]"#).unwrap();
        b.agent.namespaces.pid = false;
        b.agent.user = User { uid: 0, ..b.agent.user };
        b.agent.port = None;
        b.vm.cpus = 2;
        let removed = "-DAC_OVERRIDE -FOWNER -FSETID -KILL -SETGID -SETUID -NET_BIND_SERVICE";
        let expected = [
            "allows more: network: filtered: no host is allowed → shared: everything that the host reaches",
            "allows more: network deny: example.net, all ports → -",
            "allows more: agent user: 7:8, group 9 → 0:8, root of the box, group 9",
            &format!("allows more: agent capabilities: - → {removed} +NET_RAW"),
            "allows more: agent namespaces: - → -pid",
            "changed: vm: 1 CPU, 512 MiB of memory → 2 CPUs, 512 MiB of memory",
            "allows less: agent port: 4088, offered to the host → -",
        ];
        assert_eq!(lines(&a, &b), expected);
        b.agent.capabilities = serde_json::from_str(r#"["CHOWN"]"#).unwrap();
        let back = b.permission_changes(&a);
        let effect = |field| back.iter().find(|it| it.field == field).unwrap().effect;
        for field in ["network", "network deny", "agent user", "agent namespaces"] {
            assert_eq!(effect(field), Effect::Less, "{field}");
        }
        assert_eq!(effect("agent capabilities"), Effect::More);
        assert_eq!(lines(&a, &a), [""; 0]);
    }

    #[test]
    fn a_network_that_loses_its_last_host_allows_less() {
        let of = |network: &str| grown(&format!(r#"{{"network": {network}}}"#));
        let some = of(r#"{"mode": "filtered", "allow": [{"peer": "a.example"}]}"#);
        let none = of(r#"{"mode": "filtered"}"#);
        let effects = |a: &RunPlan, b: &RunPlan| -> Vec<_> {
            a.permission_changes(b).iter().map(|it| it.effect).collect()
        };
        assert_eq!(effects(&some, &none), [Effect::Less; 2]);
        assert_eq!(effects(&none, &some), [Effect::More; 2]);
        let services = of(r#"{"mode": "cap-only"}"#);
        assert_eq!(effects(&none, &services), [Effect::Other]);
    }

    #[test]
    fn a_system_that_becomes_read_only_allows_less() {
        let a = grown("{}");
        let mut b = a.clone();
        b.agent.system = SystemDirectories::ReadOnly;
        let value = "read-only: its programs do not change the system's directories";
        assert_eq!(lines(&a, &b), [format!("allows less: agent system: - → {value}")]);
        assert_eq!(lines(&b, &a), [format!("allows more: agent system: {value} → -")]);
    }

    /// The permissions that restrict a box.
    const MORE_IF_GONE: [&str; 5] =
        ["network deny", "task verify", "logs", "hook before-command", "tools"];

    #[test]
    fn every_permission_of_a_box_that_another_lacks_is_a_change() {
        let (bare, full) = (grown("{}"), grown(GROWN));
        let added = bare.permission_changes(&full);
        let (common, all) = (bare.permissions(), full.permissions());
        let is_listed = |it: &&Permission| !common.contains(it);
        // The tools are no permission of the list.
        assert_eq!(added.len(), all.iter().filter(is_listed).count() + 1);
        let less = |it: &&PermissionChange| it.effect == Effect::Less;
        assert_eq!(
            added.iter().filter(less).map(|it| &*it.field).collect::<Vec<_>>(),
            ["network deny", "tools"]
        );
        let gone = full.permission_changes(&bare);
        assert_eq!(gone.len(), added.len());
        let more = gone.iter().filter(|it| it.effect == Effect::More).map(|it| &*it.field);
        assert_eq!(more.collect::<Vec<_>>(), MORE_IF_GONE);
    }

    #[test]
    fn a_share_that_becomes_writable_allows_more() {
        let a = grown(GROWN);
        let effect = |change: &dyn Fn(&mut RunPlan)| {
            let mut b = a.clone();
            change(&mut b);
            let all = a.permission_changes(&b);
            assert_eq!(all.len(), 1, "{all:?}");
            all[0].effect
        };
        assert_eq!(effect(&|it| it.shares[0].access = Access::ReadWrite), Effect::More);
        assert_eq!(effect(&|it| it.shares[1].access = Access::ReadOnly), Effect::Less);
        assert_eq!(effect(&|it| it.shares[1].guest = "/x".to_owned()), Effect::Other);
        let both = |it: &mut RunPlan| {
            it.shares[1].access = Access::ReadOnly;
            it.shares[1].guest = "/x".to_owned();
        };
        assert_eq!(effect(&both), Effect::Other);
        // The hosts of a list are no pair: one is allowed, and another no longer.
        let mut b = a.clone();
        b.network.allow[0].peer = "b.example".to_owned();
        b.network.allow[1].peer = "c.example".to_owned();
        let effects: Vec<_> = a.permission_changes(&b).iter().map(|it| it.effect).collect();
        assert_eq!(effects, [Effect::More, Effect::More, Effect::Less, Effect::Less]);
        for list in ["allow", "deny"] {
            let of = |host| {
                grown(&format!(
                    r#"{{"network": {{"mode": "filtered", "{list}": [{{"peer": "{host}"}}]}}}}"#
                ))
            };
            let changes = of("a.example").permission_changes(&of("b.example"));
            assert_eq!(
                changes.iter().find(|it| it.field.ends_with(list)).unwrap().effect,
                Effect::More
            );
        }
    }
}
