//! What the policy of a box lets commands reach, for the record of the box and the results of commands.

use std::collections::{BTreeMap, BTreeSet};

use box_contract::wire::{Exited, Fenced, Refused};
use box_contract::{ComponentName, NetworkMode, RunPlan, SandboxPreset, Scope};
use command_policy::{Fences, Subject, Surroundings};
use egress_proxy::{Decision, Verdict};
use serde::{Deserialize, Serialize};

use super::{Boxes, Record};

/// What the policy of a box (`sandbox`) lets commands of one component reach. Everything that is not denied can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandPolicy {
    /// The preset, which denies further paths: credentials, and files that other programs obey.
    pub preset: SandboxPreset,
    /// The files and directories that commands can write to.
    pub writable: Vec<String>,
    /// The files and directories that commands see empty, as the Boxfile declares them.
    pub deny_read: Vec<String>,
    /// The files and directories that commands cannot write to, as the Boxfile declares them.
    pub deny_write: Vec<String>,
    /// Whether commands have the network of their component.
    pub network: bool,
    /// The maximum number of bytes of each output stream in the result of a command.
    pub max_output_bytes: u64,
}

impl CommandPolicy {
    /// Returns the policy of a box for each component. `mounts` are the paths at which its start mounts something writable.
    pub fn of_start<'m>(
        plan: &RunPlan,
        mounts: impl Iterator<Item = (Scope, &'m str)> + Clone,
    ) -> BTreeMap<ComponentName, Self> {
        let of = |(name, _)| {
            let mut policy = Self::of(plan, name)?;
            let own = mounts.clone().filter(|(scope, _)| scope.includes(name));
            own.for_each(|(_, path)| policy.also_writable(path));
            Some((name, policy))
        };
        plan.components().filter_map(of).collect()
    }

    /// Returns the policy of a plan for a component. `None` if the plan has no policy, or no such component.
    fn of(plan: &RunPlan, name: ComponentName) -> Option<Self> {
        let sandbox = plan.sandbox.as_ref()?;
        let around = Surroundings::of(plan, name, plan.component(name)?);
        let Fences { writable, has_network, .. } = Fences::of(sandbox, Subject::Command, &around);
        Some(Self {
            preset: sandbox.preset,
            writable,
            deny_read: sandbox.deny_read.clone(),
            deny_write: sandbox.deny_write.clone(),
            network: has_network,
            max_output_bytes: sandbox.max_output_bytes,
        })
    }

    /// Adds a path at which a start mounts something writable.
    fn also_writable(&mut self, path: &str) {
        if let Err(at) = self.writable.binary_search_by(|it| it.as_str().cmp(path)) {
            self.writable.insert(at, path.to_owned());
        }
    }
}

/// How the policy of the box applied to a command.
#[derive(Debug, Clone, Serialize)]
pub struct CommandSandbox {
    /// How much of the policy was applied.
    pub state: Fenced,
    /// The policy.
    #[serde(flatten)]
    pub policy: CommandPolicy,
    /// What was denied to the command, at most 100 entries. Landlock and read-only mounts report no denials: the command gets
    /// the error `EACCES` or `EROFS`.
    pub denied: Vec<DeniedAccess>,
}

/// The maximum number of denials in the result of a command.
const MAX_DENIED: usize = 100;

/// Something that was denied to a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeniedAccess {
    /// What was denied.
    pub kind: DeniedKind,
    /// The host and port, or the command.
    pub subject: String,
    /// The rule of the policy, if one is known.
    pub rule: Option<String>,
    /// The reason, in words.
    pub reason: String,
}

/// The kinds of denials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeniedKind {
    /// The start of the command.
    Process,
    /// A connection. It can be of another program of the component that ran at the same time.
    Network,
}

impl DeniedAccess {
    fn of_command(refused: Refused, argv: &str) -> Self {
        let reason = match refused.reason.as_str() {
            "" => refused.denial.name().to_owned(),
            reason => format!("{}: {reason}", refused.denial.name()),
        };
        Self { kind: DeniedKind::Process, subject: argv.to_owned(), rule: refused.rule, reason }
    }

    fn of_connection(decision: &Decision) -> Option<Self> {
        let Verdict::Denied { reason, .. } = &decision.verdict else { return None };
        let host = decision.host.as_deref().unwrap_or("?");
        let port = decision.port.map_or_else(String::new, |it| format!(":{it}"));
        let subject = format!("{host}{port}");
        Some(Self { kind: DeniedKind::Network, subject, rule: None, reason: reason.clone() })
    }
}

impl CommandSandbox {
    /// Returns how the policy applied to a command that has ended. `since_ms` is when it was started. `None` if no policy applied to it.
    pub fn of_exit(
        (boxes, record): (&Boxes, &Record),
        (component, argv): (ComponentName, &str),
        (exit, refusal): (Exited, Option<Refused>),
        since_ms: u64,
    ) -> Option<Self> {
        let state = if refusal.is_some() { Fenced::NotStarted } else { exit.fenced? };
        let policy = record.policy.get(&component)?.clone();
        let mut denied: Vec<_> = connections(boxes, record, component, since_ms);
        denied.extend(refusal.map(|it| DeniedAccess::of_command(it, argv)));
        denied.sort();
        denied.dedup();
        denied.truncate(MAX_DENIED);
        Some(Self { state, policy, denied })
    }
}

/// Returns the connections of a component that were denied since a time. A log that cannot be read has none.
fn connections(
    boxes: &Boxes,
    record: &Record,
    name: ComponentName,
    since_ms: u64,
) -> Vec<DeniedAccess> {
    if record.network.mode != NetworkMode::Filtered {
        return Vec::new();
    }
    let mut log = boxes.network_log(&record.name);
    let mut denied = BTreeSet::new();
    while let Ok(Some((time_ms, decision))) = log.next_decision() {
        if time_ms >= since_ms && decision.component == name && denied.len() < MAX_DENIED {
            denied.extend(DeniedAccess::of_connection(&decision));
        }
    }
    denied.into_iter().collect()
}
