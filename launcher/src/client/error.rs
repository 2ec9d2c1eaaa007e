//! Errors of a supervisor's client.

use box_contract::SkillMode;
use host_fs::OsError;
use vmm::signals::Stopped;

use crate::streams::StreamError;

/// Why a request to a supervisor failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ClientError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal requested the end of this command.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Data could not be passed to the box or from it.
    #[error(transparent)]
    Stream(StreamError),
    /// The box with this name is not running.
    #[error("the box {0} is not running")]
    NotRunning(String),
    /// The supervisor of a box refuses a client's request.
    #[error("the box's supervisor cannot {step}: {reason}")]
    Refused { step: String, reason: String },
    /// The box ended before the event that the client waits for.
    #[error("the box {0} ended first")]
    BoxEnded(String),
    /// The command's words exceed a limit, which the reason names.
    #[error("cannot run the command: {0}")]
    Command(String),
    /// The box did not answer in time.
    #[error("the box does not answer")]
    NoAnswer,
    /// A copy from or to a box failed, on the host or in the box.
    #[error("cannot copy: {0}")]
    Copy(String),
    /// A directory of a box could not be listed.
    #[error("cannot list the directory: {0}")]
    List(String),
    /// An operation on the skills of a box failed in the box.
    #[error("cannot {action}: {reason}")]
    Skills {
        /// A verb phrase, for example `load the skill notes`.
        action: String,
        reason: String,
    },
    /// The box has the skill with this name from its start.
    #[error("the skill {name} is {}", fixed(*mode))]
    FixedSkill { name: String, mode: SkillMode },
}

crate::from_below!(StreamError => ClientError::Stream, Os, Stopped);

/// Returns the end of a sentence about a skill that a box has from its start.
const fn fixed(mode: SkillMode) -> &'static str {
    match mode {
        SkillMode::Baked => "baked into the box",
        SkillMode::Mounted => "a directory of the host that is mounted in the box",
    }
}
