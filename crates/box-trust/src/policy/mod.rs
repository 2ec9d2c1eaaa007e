//! The policy of a host: which boxes run, and whose signatures they need.

mod decide;
mod pattern;
mod read;

use crate::PublicKey;
use pattern::Pattern;

pub use decide::{Decision, Origin, Refusal, Requirement};

/// The maximum size of a policy's text, in bytes.
pub const MAX_POLICY_BYTES: usize = 1 << 20;

/// The policy of a host. [`Policy::parse`] reads it, and [`Policy::decide`] applies it.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The answer for a repository that no rule matches.
    default: Field,
    /// The answer for boxes that were built on the host.
    local: Field,
    /// The answer for boxes in files whose names no rule matches.
    file: Field,
    /// The most specific first.
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Allow,
    Refuse,
}

/// An answer, and the line of the policy that has it.
#[derive(Debug, Clone, Copy)]
struct Field {
    answer: Answer,
    /// Beginning with 1. `None` if the policy has no such field.
    line: Option<usize>,
}

#[derive(Debug, Clone)]
struct Rule {
    pattern: Pattern,
    /// The line of the pattern, beginning with 1.
    line: usize,
    /// Whether a reference in a registry must have a digest.
    digest_only: bool,
    condition: Condition,
}

#[derive(Debug, Clone)]
enum Condition {
    Always(Answer),
    Signed { keys: Vec<PublicKey>, provenance: bool, refuse_older: bool },
}
