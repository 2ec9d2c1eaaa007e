//! Declarations of a plan that this version does not enforce.

use std::fmt;

use serde::Serialize;

use crate::capabilities::Grant;

use super::{ComponentName, NetworkMode, NetworkPlan, RunPlan};

/// The reason of most declarations.
const NOT_YET: &str = "not supported yet";

/// A declaration that this version carries from the Boxfile into the plan, and does not enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsupported {
    /// The declaration as the Boxfile spells it.
    pub declaration: String,
    /// Why a box with it is not started.
    pub lacks: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.declaration, self.lacks)
    }
}

impl RunPlan {
    /// Names each declaration that this version does not enforce, in the order of the fields.
    ///
    /// A box whose plan has one must not be started: its author relies on all that it declares.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        // No `..`: whoever adds a field decides here whether it is enforced.
        #[rustfmt::skip]
        let Self {
            network, caps, sandbox,
            tools: _, logs: _, task: _, skills: _, shares: _, scratch: _, secrets: _, name: _, layout: _, agent_kind: _, agent: _, business: _, vm: _, budget: _,
        } = self;
        let one = |declared: bool, declaration: &str, lacks| {
            declared.then(|| Unsupported { declaration: declaration.to_owned(), lacks })
        };
        let mut found = Vec::new();
        found.extend(ComponentName::ALL.into_iter().filter_map(|name| self.unheld(name)));
        found.extend(ComponentName::ALL.into_iter().filter_map(|name| self.unused(name)));
        found.extend(reached(network));
        found.extend(ComponentName::ALL.into_iter().filter_map(|name| self.unshared(name)));
        found.extend(caps.iter().map(|it| named("cap", it.name(), NOT_YET)));
        found.extend(one(sandbox.is_some(), "sandbox", NOT_YET));
        found
    }

    /// Names `rlimits nproc` of a component that runs as root: `copy_process` (kernel/fork.c) holds
    /// every user to `RLIMIT_NPROC` but root.
    fn unheld(&self, name: ComponentName) -> Option<Unsupported> {
        let plan = self.component(name)?;
        (plan.rlimits.nproc.is_some() && plan.user.uid == 0).then(|| Unsupported {
            declaration: format!("{} rlimits nproc", name.name()),
            lacks: "it has no effect on root, and the component runs as root; use `limits pids`, or \
                    another `user`",
        })
    }
}

impl RunPlan {
    /// Names added capabilities of a component whose programs do not run as root: no other user has any.
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
    /// Names the network namespace of a component that the network shared with the host would not reach: the one device is
    /// init's.
    fn unshared(&self, name: ComponentName) -> Option<Unsupported> {
        let plan = self.component(name)?;
        (self.network.mode == NetworkMode::Shared && plan.namespaces.net).then(|| Unsupported {
            declaration: format!("{} namespaces net=true", name.name()),
            lacks: "the network \"shared\" does not reach a network namespace of its own; remove it, or use \
                    `network \"filtered\"`",
        })
    }
}

/// Quotes a name, so that whatever it holds is safe for a terminal.
fn named(declaration: &str, name: &str, lacks: &'static str) -> Unsupported {
    Unsupported { declaration: format!("{declaration} {name:?}"), lacks }
}

fn reached(network: &NetworkPlan) -> Option<Unsupported> {
    let NetworkPlan { mode, allow: _, deny: _, limits: _ } = network;
    let named = |lacks| Some(named("network", mode.name(), lacks));
    let is_bare = *network == NetworkPlan { mode: *mode, ..NetworkPlan::default() };
    match mode {
        NetworkMode::Filtered => None,
        NetworkMode::None | NetworkMode::Shared if is_bare => None,
        NetworkMode::None | NetworkMode::Shared => named("it has rules, and no filter for them"),
        NetworkMode::CapOnly => named(NOT_YET),
    }
}
