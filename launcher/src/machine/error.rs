//! Errors of a box's machine, and its last words.

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

/// Why a machine did not start, or has ended.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum MachineError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal asked for the end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The box could not be verified, or cannot be run.
    #[error(transparent)]
    Opened(OpenBoxError),
    /// The process of the machine could not be started or confined.
    #[error(transparent)]
    Vmm(VmmError),
    /// The box has no network.
    #[error(transparent)]
    Network(NetworkError),
    /// Something did not come through to the box or from it.
    #[error(transparent)]
    Stream(StreamError),
    /// The hardware virtualization of the host cannot be used.
    #[error(transparent)]
    Kvm(#[from] KvmError),
    /// The directories of the host that a box shows, and its task, do not fit into one message to init.
    #[error("its directories and its task are too many and too long for one message")]
    TooManyMounts,
    /// Init reported that a step of the start, or of a request, failed.
    #[error("the guest failed to {step}: {message}")]
    Guest { step: String, message: String },
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
    #[error("the agent was not ready after {seconds} s{}", because(reason.as_deref()))]
    Timeout {
        seconds: u64,
        /// Why its health check did not pass then.
        reason: Option<String>,
    },
}

crate::from_below!(VmmError => MachineError::Vmm, Os, Stopped);
crate::from_below!(OpenBoxError => MachineError::Opened, Os, Stopped, Stream);
crate::from_below!(NetworkError => MachineError::Network, Os, Vmm);
crate::from_below!(StreamError => MachineError::Stream, Os, Stopped);

impl MachineError {
    /// Returns whether the machine has said all that it will about this already.
    pub(crate) const fn is_an_end(&self) -> bool {
        matches!(self, Self::Stopped(_) | Self::VmmEnded { .. } | Self::Kvm(_))
    }
}

/// Ends a sentence about an agent that is not ready with what is known of its health check.
pub fn because(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |why| format!("; its health check: {why}"))
}

/// Why a run failed, and what the machine said last.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct RunFailure {
    /// The error.
    #[source]
    pub error: MachineError,
    /// The last words before that; empty before the machine started.
    pub last_output: Vec<LastOutput>,
}

impl RunFailure {
    /// Adds the agent's output, where it was captured.
    #[must_use]
    pub fn with_output(mut self, output: &Route) -> Self {
        self.last_output.insert(0, LastOutput::output(output));
        self
    }
}

/// Output of the machine, safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastOutput {
    /// Where they come from, for people.
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
