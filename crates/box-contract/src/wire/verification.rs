//! The verification of a task, as init reports it.

use serde::{Deserialize, Serialize};

/// The maximum length of the output in a [`VerificationEnd`], in bytes. Its JSON fits into a frame, even if each byte is escaped.
pub const MAX_VERIFICATION_OUTPUT: usize = 8 << 10;
/// The maximum length of the reason in a [`VerificationEnd`], in bytes.
pub const MAX_VERIFICATION_REASON: usize = 1 << 10;

/// A step of the verification of the task. Init sends both steps before the agent's [`GuestMessage::Exited`](super::GuestMessage::Exited).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// The agent has ended with success, and its result permits that the task is completed. The verification begins.
    Started,
    /// The verification has ended.
    Ended(VerificationEnd),
}

/// The end of the verification of a task. The fields of a plan and of a record are around these in one object, so unknown fields
/// are not refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationEnd {
    /// The exit status of the command, as in [`Exited::status`](super::Exited::status).
    pub status: u8,
    /// Whether the command was killed after its time limit.
    pub timed_out: bool,
    /// Whether the kernel's out-of-memory killer has ended a process of the verification.
    pub oom_killed: bool,
    /// From the agent's end until the end of the command, in milliseconds.
    pub duration_ms: u64,
    /// The end of what the command wrote to its standard output and its standard error, at most [`MAX_VERIFICATION_OUTPUT`] bytes.
    /// Bytes that are not UTF-8 are replaced by U+FFFD.
    pub output: String,
    /// Why the command was not started, at most [`MAX_VERIFICATION_REASON`] bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl VerificationEnd {
    /// Returns whether the command has succeeded.
    pub const fn has_passed(&self) -> bool {
        self.status == 0 && !self.timed_out && self.reason.is_none()
    }

    /// Returns whether the texts are as long as the protocol permits.
    pub fn is_bounded(&self) -> bool {
        self.output.len() <= MAX_VERIFICATION_OUTPUT
            && self.reason.as_ref().is_none_or(|it| it.len() <= MAX_VERIFICATION_REASON)
    }
}
