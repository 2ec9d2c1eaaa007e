//! Errors from opening, verifying and running a box.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

use box_contract::wire::{OLDEST_PROTOCOL, PROTOCOL};
use box_contract::{ComponentName, SkillMode, Unsupported};
use box_layout::OpenError;
use checkout::skill::SkillError;
use egress_rules::PeerError;
use host_fs::OsError;
use safe_text::{readable, shown, shown_lines};
use serde::Serialize;
use vmm::VmmError;
use vmm::krun::KrunError;
use vmm::signals::Stopped;

use crate::agent::AgentError;
use crate::host::kvm_error::KvmError;
use crate::host::programs::NETWORK;
use crate::mounts::volumes::VolumeError;
use crate::network::Published;
use crate::streams::output::Route;

/// Why a box could not be opened, verified or run.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum LaunchError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The box could not be opened, or a blob of it is not the one that it names.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Somebody else could change a blob while it is verified or running.
    #[error("{} can be changed by another user", .0.display())]
    Writable(PathBuf),
    /// The box's init speaks another version of the control channel's protocol.
    #[error(
        "the box's init speaks protocol {0}, but this boxlaunch speaks {OLDEST_PROTOCOL} to {PROTOCOL}"
    )]
    OtherProtocol(u32),
    /// The box's init speaks an older protocol, which has no word for what is asked of it.
    #[error("this box cannot do that: its init speaks protocol {0}")]
    OlderBox(u32),
    /// The box declares what this version does not enforce.
    #[error("this version of boxlaunch cannot run a box with these declarations:{}", list(.0))]
    Unsupported(Vec<Unsupported>),
    /// A command is to run in a component that the box does not have, or with no program.
    #[error("the box has no {} component to run the command in", .0.name())]
    NoComponent(ComponentName),
    /// A component declares no health check.
    #[error("the {} component declares no health check", .0.name())]
    NoHealthCheck(ComponentName),
    /// The agent of the box offers no port.
    #[error("the agent of the box {0} offers no port")]
    NoPort(String),
    /// The box is not that far yet.
    #[error("the box {0} is still starting")]
    StillStarting(String),
    /// The hardware virtualization of the host cannot be used.
    #[error(transparent)]
    Kvm(#[from] KvmError),
    /// The box asks for more of the host than it may take.
    #[error("the box asks for {0}")]
    TooMuch(String),
    /// The scratch disks of the box may hold more than it may take, in bytes.
    #[error("the box asks for scratch disks of {}, and may have {}", readable(*asked), readable(*most))]
    TooMuchScratch { asked: u64, most: u64 },
    /// A port of the host cannot be published at.
    #[error("cannot publish a port at {at}: {source}")]
    Port {
        at: SocketAddr,
        #[source]
        source: io::Error,
    },
    /// A port of a component that the box does not have.
    #[error("cannot publish {published}: the box has no {} component", published.component.name())]
    NoSuchPort { published: Published },
    /// The plan of a box names hosts in a malformed form.
    #[error("the box's network: {0}")]
    Peer(#[from] PeerError),
    /// The box shares the host's network, and what carries that is not installed.
    #[error(
        "the box needs {NETWORK} for its network \"shared\", and there is no {NETWORK} in PATH"
    )]
    NoPasst,
    /// passt could not start; holds its own words.
    #[error("{NETWORK} could not start: {0}")]
    Passt(String),
    /// The process of the machine could not be started or confined.
    #[error(transparent)]
    Vmm(VmmError),
    /// Init reported that a step of the start, or of a request, failed.
    #[error("the guest failed to {step}: {message}")]
    Guest { step: String, message: String },
    /// Something came over the control channel that init does not send.
    #[error("the control channel was misused: {0}")]
    Protocol(String),
    /// The virtual machine ended by itself.
    #[error("the virtual machine ended ({status}) {when}")]
    VmmEnded { status: ExitStatus, when: &'static str },
    /// The VMM process has hidden from its supervisor, as only one does that a guest has taken over.
    #[error("the VMM process closed its log and did not end, so it was killed")]
    HiddenVmm,
    /// The agent ended before its health check passed.
    #[error("the agent ({argv}) ended with status {status} before it was ready")]
    AgentEnded {
        status: u8,
        /// The agent's program and its arguments, without secrets.
        argv: String,
        /// Whether it has written nothing.
        was_silent: bool,
        /// Whether the kernel has ended something in its component for lack of memory.
        lacked_memory: bool,
    },
    /// The agent was not ready in time.
    #[error("the agent was not ready after {seconds} s{}", because(why.as_deref()))]
    Timeout {
        seconds: u64,
        /// Why its health check did not pass then.
        why: Option<String>,
    },
    /// A signal asked for the end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// No box has this name.
    #[error("there is no box with the name {0:?}")]
    NoBox(String),
    /// Something other than a file is where a task's result is to be written.
    #[error("--result {}: there is something other than a file", .0.display())]
    ResultPlace(PathBuf),
    /// The box with this name does not run.
    #[error("the box {0} is not running")]
    NotRunning(String),
    /// The box with this name runs.
    #[error("the box {0} is running")]
    StillRunning(String),
    /// A box with this name exists already.
    #[error("the name {0} is taken by another box")]
    NameTaken(String),
    /// A name that no box can have.
    #[error("{0:?} cannot be the name of a box")]
    BadName(String),
    /// A volume cannot be made, used or removed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// The supervisor of a box does not do what a client asks for.
    #[error("the box's supervisor cannot {step}: {reason}")]
    Refused { step: String, reason: String },
    /// The box ended before what was waited for.
    #[error("the box {0} ended first")]
    BoxEnded(String),
    /// The directories of the host that a box shows, and its task, do not fit into one message to init.
    #[error("its directories and its task are too many and too long for one message")]
    TooManyMounts,
    /// The agent of a box could not be asked.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A copy from or to a box failed at one of its ends.
    #[error("cannot copy: {0}")]
    Copy(String),
    /// A task about the skills of a box failed there.
    #[error("cannot {action}: {reason}")]
    Skills {
        /// As a verb: `load the skill notes`.
        action: String,
        reason: String,
    },
    /// The skill with this name is part of the box.
    #[error("the skill {name} is {}", fixed(*mode))]
    FixedSkill { name: String, mode: SkillMode },
    /// No skill of this name was loaded into a box.
    #[error("no skill {0:?} was loaded into the box")]
    NoSkill(String),
    /// A directory is no skill.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// The box did not answer in time.
    #[error("the box does not answer")]
    NoAnswer,
    /// The input of a command could not be read.
    #[error("cannot read the standard input: {0}")]
    Input(#[source] io::Error),
    /// A program's output could not be passed on.
    #[error("cannot pass on the program's output: {0}")]
    Output(#[source] io::Error),
}

impl LaunchError {
    /// Returns whether the machine has said all that it will about this already.
    pub(crate) const fn is_an_end(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::VmmEnded { .. } | Self::Kvm(_))
    }
}

/// Ends a sentence about a skill that is part of a box.
const fn fixed(mode: SkillMode) -> &'static str {
    match mode {
        SkillMode::Baked => "baked into the box",
        SkillMode::Mounted => "a directory of the host that the box shows",
    }
}

/// Ends a sentence about an agent that is not ready with what is known of its health check.
pub fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |why| format!("; its health check: {why}"))
}

/// Lists declarations, each on a line of its own.
fn list(unsupported: &[Unsupported]) -> String {
    let line = |it: &Unsupported| format!("\n  {}", shown(&it.to_string()));
    unsupported.iter().map(line).collect()
}

/// Why a run failed, and what the machine said last.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// The error.
    #[source]
    pub error: LaunchError,
    /// The last words before that; empty before the machine started.
    pub said: Vec<Said>,
}

impl RunFailure {
    /// Adds the agent's output, where it was captured.
    #[must_use]
    pub fn with_output(mut self, output: &Route) -> Self {
        self.said.insert(0, Said::output(output));
        self
    }
}

/// Words from the machine, safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Where they come from, for people.
    pub source: &'static str,
    /// The words; may be empty.
    pub words: String,
}

impl Said {
    /// Returns the captured output of an agent.
    pub(crate) fn output(output: &Route) -> Self {
        let captured = output.captured();
        let words = shown_lines(&(captured.stdout() + &captured.stderr()));
        Self { source: "the agent's output", words }
    }
}

impl<E: Into<LaunchError>> From<E> for RunFailure {
    fn from(error: E) -> Self {
        Self { error: error.into(), said: Vec::new() }
    }
}

/// A failure that others have, too, is one error, whoever it came to.
impl From<VmmError> for LaunchError {
    fn from(error: VmmError) -> Self {
        match error {
            VmmError::Stopped(stopped) => stopped.into(),
            VmmError::Os(error) => error.into(),
            VmmError::Open(error) => error.into(),
            error => Self::Vmm(error),
        }
    }
}

impl From<KrunError> for LaunchError {
    fn from(error: KrunError) -> Self {
        VmmError::from(error).into()
    }
}
