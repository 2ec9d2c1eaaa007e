//! Declarations in a plan that this version does not enforce.

use std::fmt;

use serde::Serialize;

use crate::capabilities::Grant;

use super::{CapPlan, ComponentName, NetworkMode, NetworkPlan, RunPlan};

/// The reasons why no box has these capabilities.
const NO_WEBSOCKETS: &str = "not supported: a program reaches a WebSocket server through `network \"filtered\"`, with the \
                             server's name in `allow`";
const NO_NOSTR: &str = "not supported: the key that signs events would need a place on the host; a program that has its own \
                        key reaches relays through `network \"filtered\"`";
const NO_PAYMENTS: &str = "not supported: no provider of payments is known to boxlaunch; `service` reaches the API of one, with \
                           its key on the host";

/// A declaration that is in the plan but that this version does not enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsupported {
    /// The declaration as the Boxfile spells it.
    pub declaration: String,
    /// The reason why a box with this declaration is not started.
    pub lacks: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.declaration, self.lacks)
    }
}

impl RunPlan {
    /// Returns each declaration that this version does not enforce, in the order of the fields.
    ///
    /// A box with such a declaration must not be started, because its author relies on everything that the Boxfile
    /// declares.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        // The pattern has no `..`, so that a new field requires a decision here.
        #[rustfmt::skip]
        let Self {
            network, caps,
            sandbox: _, tools: _, logs: _, task: _, skills: _, shares: _, scratch: _, volumes: _, publish: _, disk_bytes: _, secrets: _, services: _, ssh_agent: _, mcp: _, agents: _, hooks: _, name: _, layout: _, agent_kind: _, agent: _, business: _, vm: _, budget: _,
        } = self;
        let mut found = Vec::new();
        found.extend(ComponentName::ALL.into_iter().filter_map(|name| self.nproc_for_root(name)));
        found.extend(ComponentName::ALL.into_iter().filter_map(|name| self.unused(name)));
        found.extend(reached(network));
        found.extend(
            ComponentName::ALL.into_iter().filter_map(|name| self.unreachable_network(name)),
        );
        found.extend(caps.iter().filter_map(cap));
        found
    }

    /// Returns an entry for `rlimits nproc` if the component runs as root. The kernel does not apply `RLIMIT_NPROC` to
    /// root (`copy_process` in kernel/fork.c).
    fn nproc_for_root(&self, name: ComponentName) -> Option<Unsupported> {
        let plan = self.component(name)?;
        (plan.rlimits.nproc.is_some() && plan.user.uid == 0).then(|| Unsupported {
            declaration: format!("{} rlimits nproc", name.name()),
            lacks: "it has no effect on root, and the component runs as root; use `limits pids`, or \
                    another `user`",
        })
    }
}

impl RunPlan {
    /// Returns an entry for an added capability if the component does not run as root, because only root has
    /// capabilities.
    fn unused(&self, name: ComponentName) -> Option<Unsupported> {
        let plan = self.component(name)?;
        let added = plan.capabilities.iter().find(|it| it.grant == Grant::Asked)?;
        (plan.user.uid != 0).then(|| Unsupported {
            declaration: format!("{} capabilities add {:?}", name.name(), added.name),
            lacks: "it has an effect on root alone, and the component runs as another user; remove it, \
                    or write `user \"0\"`",
        })
    }
}

impl RunPlan {
    /// Returns an entry for the component's network namespace if the box shares the host's network. The shared
    /// network's one device is in init's namespace, so that the component could not reach it.
    fn unreachable_network(&self, name: ComponentName) -> Option<Unsupported> {
        let plan = self.component(name)?;
        (self.network.mode == NetworkMode::Shared && plan.namespaces.net).then(|| Unsupported {
            declaration: format!("{} namespaces net=true", name.name()),
            lacks: "the network \"shared\" does not reach a network namespace of its own; remove it, or use \
                    `network \"filtered\"`",
        })
    }
}

/// Creates an entry with a quoted name, which is safe for a terminal.
fn named(declaration: &str, name: &str, lacks: &'static str) -> Unsupported {
    Unsupported { declaration: format!("{declaration} {name:?}"), lacks }
}

/// Returns an entry for a capability that no box has.
fn cap(plan: &CapPlan) -> Option<Unsupported> {
    let lacks = match plan {
        CapPlan::Http { .. } => return None,
        CapPlan::Ws { .. } => NO_WEBSOCKETS,
        CapPlan::Nostr { .. } => NO_NOSTR,
        CapPlan::Payments => NO_PAYMENTS,
    };
    Some(named("cap", plan.name(), lacks))
}

fn reached(network: &NetworkPlan) -> Option<Unsupported> {
    let NetworkPlan { mode, allow: _, deny: _, limits: _ } = network;
    let named = |lacks| Some(named("network", mode.name(), lacks));
    let is_bare = *network == NetworkPlan { mode: *mode, ..NetworkPlan::default() };
    match mode {
        NetworkMode::Filtered => None,
        _ if is_bare => None,
        _ => named("it has rules, and no filter for them"),
    }
}
