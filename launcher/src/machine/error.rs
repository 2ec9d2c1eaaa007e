//! Errors of a box's VM, and the VM's last output.

use std::process::ExitStatus;

use host_fs::OsError;
use safe_text::shown_lines;
use serde::Serialize;
use vmm::VmmError;
use vmm::signals::Stopped;

use crate::host::error::KvmError;
use crate::network::NetworkError;
use crate::opened::OpenBoxError;
use crate::streams::StreamError;
use crate::streams::output::Route;

/// Why a VM did not start, or has ended.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum MachineError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal requested the end of the run.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The box could not be verified, or cannot be run.
    #[error(transparent)]
    Opened(OpenBoxError),
    /// The VMM process could not be started or confined.
    #[error(transparent)]
    Vmm(VmmError),
    /// The box's network could not be set up, or failed.
    #[error(transparent)]
    Network(NetworkError),
    /// Data could not be passed to the box or from it.
    #[error(transparent)]
    Stream(StreamError),
    /// The host's hardware virtualization is not usable.
    #[error(transparent)]
    Kvm(#[from] KvmError),
    /// The shares, the volumes and the task of the box do not fit into one message to init.
    #[error("its directories and its task do not fit into one message")]
    TooManyMounts,
    /// Init reported that a step of the start, or of a request, failed.
    #[error("the guest failed to {step}: {message}")]
    Guest { step: String, message: String },
    /// The VM ended by itself.
    #[error("the VM ended ({status}) {when}")]
    VmmEnded { status: ExitStatus, when: &'static str },
    /// The VMM process closed its log and lived on, which only a compromised process does.
    #[error("the VMM process closed its log and did not end, so it was killed")]
    HiddenVmm,
    /// The agent ended before its health check passed.
    #[error("the agent ({argv}) ended with status {status} before it was ready")]
    AgentEnded {
        status: u8,
        /// The agent's program and arguments, with secrets masked.
        argv: String,
        /// Whether the agent wrote nothing.
        was_silent: bool,
        /// Whether the kernel killed a process of the agent's component for lack of memory.
        lacked_memory: bool,
    },
    /// The agent failed several health checks in a row, and the box was stopped for that.
    #[error("the agent was unhealthy: {0}")]
    Unhealthy(String),
    /// The agent was not ready in time.
    #[error("the agent was not ready after {seconds} s{}", because(reason.as_deref()))]
    Timeout {
        seconds: u64,
        /// Why the last health check failed, if the guest reported that in time.
        reason: Option<String>,
    },
}

crate::from_below!(VmmError => MachineError::Vmm, Os, Stopped);
crate::from_below!(OpenBoxError => MachineError::Opened, Os, Stopped, Stream);
crate::from_below!(NetworkError => MachineError::Network, Os, Vmm);
crate::from_below!(StreamError => MachineError::Stream, Os, Stopped);

impl MachineError {
    /// Returns whether no further output of the VM can explain this error.
    pub(crate) const fn is_an_end(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::VmmEnded { .. } | Self::Kvm(_))
    }
}

/// Returns the end of a sentence about an agent that is not ready: why its health check failed, if `reason` is known.
pub fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |why| format!("; its health check: {why}"))
}

/// Why a run failed, and the VM's last output.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// The error.
    #[source]
    pub error: MachineError,
    /// The VM's last output before the error. Empty if the VM had not started.
    pub last_output: Vec<LastOutput>,
}

impl RunFailure {
    /// Adds the agent's captured output.
    #[must_use]
    pub fn with_output(mut self, output: &Route) -> Self {
        self.last_output.insert(0, LastOutput::output(output));
        self
    }
}

/// The last output from one source in the VM, safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastOutput {
    /// A description of the source, for example `the agent's output`.
    pub source: &'static str,
    /// The text; may be empty.
    #[serde(rename = "words")]
    pub text: String,
}

impl LastOutput {
    /// Returns the captured output of an agent.
    pub(crate) fn output(output: &Route) -> Self {
        let captured = output.captured();
        let text = shown_lines(&(captured.stdout() + &captured.stderr()));
        Self { source: "the agent's output", text }
    }
}

impl<E: Into<MachineError>> From<E> for RunFailure {
    fn from(error: E) -> Self {
        Self { error: error.into(), last_output: Vec::new() }
    }
}
