//! The errors of commands: all errors of the library, and the errors of the command line itself.

use box_contract::ComponentName;
use box_layout::OpenError;
use boxlaunch::agent::AgentError;
use boxlaunch::boxes::{RecordError, SnapshotError};
use boxlaunch::client::ClientError;
use boxlaunch::from_below;
use boxlaunch::host::error::{KvmError, PolicyError};
use boxlaunch::machine::{LastOutput, MachineError, RunFailure};
use boxlaunch::mounts::shares::ShareError;
use boxlaunch::mounts::volumes::VolumeError;
use boxlaunch::network::{NetworkError, Published};
use boxlaunch::opened::OpenBoxError;
use boxlaunch::project::{GitError, ProjectError};
use boxlaunch::streams::StreamError;
use checkout::skill::SkillError;
use host_fs::OsError;
use vmm::VmmError;
use vmm::signals::Stopped;

/// Why a command failed. [`explain`](super::explain::explain) has a row for each variant.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    #[error(transparent)]
    Os(#[from] OsError),
    #[error(transparent)]
    Stopped(#[from] Stopped),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Kvm(#[from] KvmError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error(transparent)]
    Project(ProjectError),
    #[error(transparent)]
    Skill(#[from] SkillError),
    #[error(transparent)]
    Vmm(VmmError),
    #[error(transparent)]
    Stream(StreamError),
    #[error(transparent)]
    Opened(OpenBoxError),
    #[error(transparent)]
    Volume(VolumeError),
    #[error(transparent)]
    Network(NetworkError),
    #[error(transparent)]
    Agent(AgentError),
    #[error(transparent)]
    Machine(MachineError),
    #[error(transparent)]
    Record(RecordError),
    #[error(transparent)]
    Snapshot(SnapshotError),
    #[error(transparent)]
    Client(ClientError),
    /// The box lacks the component that a command is to run in.
    #[error("the box has no {} component to run the command in", .0.name())]
    NoComponent(ComponentName),
    /// A component declares no health check.
    #[error("the {} component declares no health check", .0.name())]
    NoHealthCheck(ComponentName),
    /// The agent of the box offers no port.
    #[error("the agent of the box {0} offers no port")]
    NoPort(String),
    /// The box is not ready yet.
    #[error("the box {0} is still starting")]
    StillStarting(String),
    /// The port's component is not in the box.
    #[error("cannot publish {published}: the box has no {} component", published.component.name())]
    NoSuchPort { published: Published },
    /// No skill of this name was loaded into a box.
    #[error("no skill {0:?} was loaded into the box")]
    NoSkill(String),
}

from_below!(ProjectError => LaunchError::Project, Os);
from_below!(VmmError => LaunchError::Vmm, Os, Stopped, Open);
from_below!(StreamError => LaunchError::Stream, Os, Stopped);
from_below!(OpenBoxError => LaunchError::Opened, Os, Stopped, Open, Stream);
from_below!(VolumeError => LaunchError::Volume, Os);
from_below!(NetworkError => LaunchError::Network, Os, Vmm);
from_below!(AgentError => LaunchError::Agent, Os, Stream);
from_below!(MachineError => LaunchError::Machine, Os, Stopped, Opened, Vmm, Network, Stream, Kvm);
from_below!(RecordError => LaunchError::Record, Os);
from_below!(SnapshotError => LaunchError::Snapshot, Os, Stopped);
from_below!(ClientError => LaunchError::Client, Os, Stopped, Stream);

impl From<GitError> for LaunchError {
    fn from(error: GitError) -> Self {
        Self::Project(error.into())
    }
}

/// Why a run failed, and the last output of its VM.
#[derive(Debug)]
pub(crate) struct FailedRun {
    pub(crate) error: LaunchError,
    /// Empty if the VM was not started.
    pub(crate) last_output: Vec<LastOutput>,
}

impl From<RunFailure> for FailedRun {
    fn from(RunFailure { error, last_output }: RunFailure) -> Self {
        Self { error: error.into(), last_output }
    }
}

impl<E: Into<LaunchError>> From<E> for FailedRun {
    fn from(error: E) -> Self {
        Self { error: error.into(), last_output: Vec::new() }
    }
}
