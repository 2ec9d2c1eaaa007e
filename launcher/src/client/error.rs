//! Errors of a supervisor's client.

use box_contract::SkillMode;
use host_fs::OsError;
use vmm::signals::Stopped;

use crate::streams::StreamError;

/// Why a supervisor has not done what it was asked for.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ClientError {
    /// The operating system refused something.
    #[error(transparent)]
    Os(#[from] OsError),
    /// A signal asked for the end.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// Something did not come through to the box or from it.
    #[error(transparent)]
    Stream(StreamError),
    /// The box with this name does not run.
    #[error("the box {0} is not running")]
    NotRunning(String),
    /// The supervisor of a box does not do what a client asks for.
    #[error("the box's supervisor cannot {step}: {reason}")]
    Refused { step: String, reason: String },
    /// The box ended before what was waited for.
    #[error("the box {0} ended first")]
    BoxEnded(String),
    /// The box did not answer in time.
    #[error("the box does not answer")]
    NoAnswer,
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
}

crate::from_below!(StreamError => ClientError::Stream, Os, Stopped);

/// Ends a sentence about a skill that is part of a box.
const fn fixed(mode: SkillMode) -> &'static str {
    match mode {
        SkillMode::Baked => "baked into the box",
        SkillMode::Mounted => "a directory of the host that the box shows",
    }
}
