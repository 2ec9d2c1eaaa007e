//! The decision on a command, and the rule that made it.

/// Whether a command may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// The command runs, under the fences of the policy.
    Run,
    /// The command runs if a person approves it.
    Ask,
    /// The command never runs.
    Forbid,
}

impl Decision {
    /// Returns the decision as a word: `run`, `ask` or `forbid`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Ask => "ask",
            Self::Forbid => "forbid",
        }
    }
}

/// The decision on a command, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The rule: the name of a built-in rule such as `recursive-delete-root`, or a pattern of the Boxfile. `None` if no
    /// rule matched.
    pub rule: Option<String>,
    /// The reason, as a clause for a person, such as `it deletes the whole file system`. Empty if no rule matched.
    pub reason: String,
}

impl Ruling {
    /// The decision on a command that no rule matches.
    pub(crate) const fn no_rule() -> Self {
        Self { decision: Decision::Run, rule: None, reason: String::new() }
    }

    /// Returns the stricter one. If both are equally strict, the first one that a rule made.
    pub(crate) fn or_stricter(self, other: Self) -> Self {
        let is_equal = self.decision == other.decision;
        if other.decision > self.decision || (is_equal && self.rule.is_none()) {
            other
        } else {
            self
        }
    }
}
