//! What is known about a box that was started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use box_contract::{
    ComponentName, NetworkPlan, PeerPlan, Phases, ServicePlan, SkillPlan, Vm, named_enum, wire,
};
use box_digest::Digest;
use box_layout::OpenBox;
use serde::{Deserialize, Serialize};

use crate::boxes::CommandPolicy;
use crate::boxes::task::Task;
use crate::machine::Machine;
use crate::machine::variables::GivenVariable;
use crate::mounts::shares::ShareRecord;
use crate::mounts::volumes::VolumePlace;
use crate::network::Published;
use crate::network::given::Choice;
use crate::streams::log::since_epoch;
use vmm::jail::Missing;

/// The record of a box that was started. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The name of the box, unique for this user.
    pub name: String,
    /// The digest of the box.
    #[serde(rename = "box")]
    pub digest: Digest,
    /// The directory of the box.
    pub directory: String,
    /// The components of the box.
    pub components: Vec<ComponentName>,
    /// The components that declare a health check.
    #[serde(default)]
    pub checked: Vec<ComponentName>,
    /// The skills that the box has from its start, sorted by name: those of its plan, and those of `--skills`.
    #[serde(default)]
    pub skills: Vec<SkillPlan>,
    /// The HTTP APIs that the box reaches through the host, sorted by name.
    #[serde(default)]
    pub services: Vec<ServicePlan>,
    /// The size of the VM.
    pub vm: Vm,
    /// The state of the box.
    pub state: State,
    /// The process id of the supervisor.
    pub supervisor: u32,
    /// The process id of the VMM; `None` before the VM has started and after it has ended.
    pub vmm: Option<u32>,
    /// The version of the protocol that the box's init speaks; `None` until the agent is ready.
    pub protocol: Option<u32>,
    /// The run's private directory, which has its sockets.
    pub runtime: PathBuf,
    /// The socket through which clients reach the agent's port.
    pub agent_socket: Option<PathBuf>,
    /// The port on which the agent listens in the guest.
    #[serde(default)]
    pub agent_port: Option<u16>,
    /// When the start began.
    pub created_ms: u64,
    /// When the agent was ready.
    pub ready_ms: Option<u64>,
    /// When the box ended.
    pub ended_ms: Option<u64>,
    /// The duration of each phase of the start, in milliseconds; `None` if the agent was never ready.
    pub phases_ms: Option<Phases>,
    /// The exit status of the agent.
    pub status: Option<u8>,
    /// The last exit status of the business application's main program, if that has ended.
    #[serde(default)]
    pub business_status: Option<u8>,
    /// The components in which the kernel's out-of-memory killer has killed a process.
    #[serde(default)]
    pub oom_killed: Vec<ComponentName>,
    /// The variables that were set for components at launch. Values that look like secrets are masked.
    #[serde(default)]
    pub env: Vec<GivenVariable>,
    /// The memory limit of each component, in bytes.
    #[serde(default)]
    pub memory_limits: BTreeMap<ComponentName, u64>,
    /// The shares of the box.
    #[serde(default)]
    pub shares: Vec<ShareRecord>,
    /// The volumes of the box, and the paths at which its components see them.
    #[serde(default)]
    pub volumes: Vec<VolumePlace>,
    /// The size in bytes of the disk for the files that components write to their roots. `None` if they are in memory.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
    /// The policy for commands in each component. Empty if the box has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy: BTreeMap<ComponentName, CommandPolicy>,
    /// The current rules of the box's network.
    #[serde(default)]
    pub network: NetworkPlan,
    /// The network that the command line permits.
    #[serde(default)]
    pub network_given: Choice,
    /// The addresses outside the internet to which the user permits connections, if the rules also allow them.
    #[serde(default)]
    pub network_local: Vec<PeerPlan>,
    /// How many connections of the box its filter has denied, of those that the supervisor was told about: at most 100 a
    /// second.
    #[serde(default)]
    pub denied: u64,
    /// The task of the box.
    #[serde(default)]
    pub task: Option<Task>,
    /// The published ports of the box.
    #[serde(default)]
    pub published: Vec<Published>,
    /// The layers of the jail that are missing on this host.
    #[serde(default)]
    pub jail_missing: Vec<Missing>,
    /// Why the box ended. `None` if its agent ended, or a user or a rule of the run stopped it.
    pub error: Option<String>,
    /// The rule of the run that stopped the box. `None` for every other end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<StoppedBy>,
    /// Whether the record is removed when the box ends (`--rm`).
    pub remove: bool,
    /// The options of `boxlaunch run` with which the box can be started again, without those that other fields have:
    /// `published`, `volumes` and `remove`. `None` if the run cannot be repeated, because it was in the foreground.
    #[serde(default)]
    pub options: Option<Vec<String>>,
    /// Whether the supervisor is the main process of a service, so that the service manager has to start its updates.
    #[serde(default)]
    pub service: bool,
    /// Whether this run continues an earlier one of the same box: `boxlaunch start` has begun it.
    #[serde(default)]
    pub continues: bool,
    /// The directory of the project whose environment the box is: `boxlaunch up` has started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
    /// The digest of the declaration, as a user has permitted it, if the project's Boxfile declares the box: the Boxfile and what it
    /// names that decides about the box's rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boxfile: Option<Digest>,
    /// The box that this one has replaced.
    #[serde(default)]
    pub updated: Option<Updated>,
    /// The last restart of the box by `--restart`. While the state is [`State::Starting`], that restart has yet to succeed.
    #[serde(default)]
    pub restarted: Option<Restarted>,
}

/// The last restart of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// How often the box was restarted.
    pub count: u32,
    /// How many of these restarts followed each other at short intervals.
    pub in_row: u32,
    /// When the box had ended.
    pub time_ms: u64,
    /// Why the box had ended.
    pub reason: String,
}

/// The box that another one has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updated {
    /// When it was replaced.
    pub time_ms: u64,
    /// The digest of the replaced box.
    pub from: Digest,
    /// The name under which the record and the logs of the replaced box are, unless they were removed. `None` if it was
    /// started with `--rm`.
    pub previous: Option<String>,
}

/// The state of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The agent is not ready yet.
    Starting,
    /// The agent is ready, or the start no longer waits for that.
    Running,
    /// The box has ended.
    Ended,
}

named_enum! {
    /// A rule of a run that stops a box.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum StoppedBy {
        /// Nobody has used the box for the time of `--idle`.
        Idle "idle",
    }
}

impl StoppedBy {
    /// Returns the reason of the end, as a clause.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Idle => "nobody used it",
        }
    }
}

impl Record {
    /// Returns whether the program of a component failed for lack of memory.
    pub fn lacked_memory(&self, component: ComponentName) -> bool {
        let status = match component {
            ComponentName::Agent => self.status,
            ComponentName::Business => self.business_status,
        };
        wire::lacked_memory(self.oom_killed.contains(&component), status)
    }

    /// Returns the record of a box that is about to start. The record has the plan's name until
    /// [`Boxes::create`](super::Boxes::create) sets the name of the box.
    pub fn new(opened: &OpenBox, vm: Vm, runtime: &Path) -> Self {
        let plan = opened.plan();
        Self {
            name: plan.name.clone(),
            digest: opened.digest,
            directory: opened.places.directory.to_string_lossy().into_owned(),
            components: plan.components().map(|(name, _)| name).collect(),
            checked: plan.components().filter(|it| it.1.health.is_some()).map(|it| it.0).collect(),
            skills: plan.skills.clone(),
            services: plan.services.clone(),
            vm,
            state: State::Starting,
            supervisor: std::process::id(),
            vmm: None,
            protocol: None,
            runtime: runtime.to_owned(),
            agent_socket: None,
            agent_port: plan.agent.port,
            created_ms: since_epoch(),
            ready_ms: None,
            ended_ms: None,
            phases_ms: None,
            status: None,
            business_status: None,
            oom_killed: Vec::new(),
            env: Vec::new(),
            memory_limits: plan
                .components()
                .map(|(name, it)| (name, it.limits.memory_bytes))
                .collect(),
            shares: Vec::new(),
            volumes: Vec::new(),
            disk_bytes: None,
            policy: CommandPolicy::of_start(plan, std::iter::empty()),
            network: plan.network.clone(),
            network_given: Choice::Box,
            network_local: Vec::new(),
            denied: 0,
            task: plan.task.as_ref().map(Task::new),
            published: Vec::new(),
            jail_missing: Vec::new(),
            error: None,
            stopped_by: None,
            remove: false,
            options: None,
            service: false,
            continues: false,
            project: None,
            boxfile: None,
            updated: None,
            restarted: None,
        }
    }

    /// Records that the agent is ready, or that the start no longer waits for that.
    pub fn start(&mut self, machine: &Machine) {
        let (vmm, protocol) = (Some(machine.vmm()), Some(machine.protocol()));
        let ready_ms = machine.facts.is_ready.then(since_epoch);
        let phases_ms = machine.facts.is_ready.then_some(machine.facts.phases);
        let agent_socket = machine.agent_socket().map(Path::to_owned);
        self.published = machine.published().to_vec();
        self.task.iter_mut().for_each(Task::start);
        let state = State::Running;
        self.jail_missing.clone_from(&machine.facts.jail.missing);
        *self = Self { state, vmm, protocol, ready_ms, phases_ms, agent_socket, ..self.clone() };
    }

    /// Records that the start exceeded its budget. Such a start has failed, even if its agent was ready in the end.
    pub fn exceed_budget(&mut self, reason: String) {
        (self.ready_ms, self.error) = (None, Some(reason));
    }

    /// Records that the box has ended, and will be started again.
    pub(super) fn rest(&mut self, status: Option<u8>, restarted: Restarted) {
        *self = Self {
            state: State::Starting,
            vmm: None,
            agent_socket: None,
            ready_ms: None,
            phases_ms: None,
            status,
            restarted: Some(restarted),
            ..self.clone()
        };
    }

    /// Records that the box ended when its supervisor was killed.
    pub(super) fn lose(&mut self) {
        self.end(None, Some("its supervisor was killed".to_owned()));
    }

    /// Records the end of the box. A task without a verdict fails.
    pub(super) fn end(&mut self, status: Option<u8>, error: Option<String>) {
        self.task.iter_mut().for_each(Task::lose);
        let (state, ended_ms) = (State::Ended, Some(since_epoch()));
        let error = error.or_else(|| self.error.take());
        *self =
            Self { state, ended_ms, status, error, vmm: None, agent_socket: None, ..self.clone() };
    }
}
