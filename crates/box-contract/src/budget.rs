//! The startup budget: a time limit for each phase of a start, and the measured durations.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// A phase of a box's start. Each phase begins at the end of the previous one, except [`Phase::Jail`] and [`Phase::Total`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Phase {
        /// From the start of the launcher until the virtual CPU runs, without [`Phase::Jail`].
        Vmm "vmm",
        /// The time before the virtual CPU runs in which the launcher confines the VMM process.
        Jail "jail",
        /// From the start of the virtual CPU until init's first instruction.
        Kernel "kernel",
        /// From init's first instruction until the agent's program is executed.
        Init "init",
        /// From the execution of the agent's program until its health check has passed.
        Ready "ready",
        /// From the start of the launcher until the agent is ready: the sum of the other phases.
        Total "total",
    }
}

/// The time limit of each phase, in milliseconds. `None` means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Milliseconds for [`Phase::Vmm`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmm: Option<u64>,
    /// Milliseconds for [`Phase::Jail`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jail: Option<u64>,
    /// Milliseconds for [`Phase::Kernel`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<u64>,
    /// Milliseconds for [`Phase::Init`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<u64>,
    /// Milliseconds for [`Phase::Ready`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<u64>,
    /// Milliseconds for [`Phase::Total`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

impl Budget {
    /// Returns the limit of `phase`, in milliseconds.
    pub const fn limit(&self, phase: Phase) -> Option<u64> {
        match phase {
            Phase::Vmm => self.vmm,
            Phase::Jail => self.jail,
            Phase::Kernel => self.kernel,
            Phase::Init => self.init,
            Phase::Ready => self.ready,
            Phase::Total => self.total,
        }
    }

    /// Returns the phases that exceeded their limits, in order.
    pub fn overruns(&self, taken: &Phases) -> Vec<Overrun> {
        let over = |phase| {
            let limit_ms = self.limit(phase)?;
            let taken_ms = taken.of(phase);
            (taken_ms > to_ms(limit_ms)).then_some(Overrun { phase, limit_ms, taken_ms })
        };
        Phase::ALL.into_iter().filter_map(over).collect()
    }
}

/// Lists the limits in the order of the phases: `kernel 400 ms, total 900 ms`. Prints `none` if there are no limits.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |it: Phase| Some(format!("{} {} ms", it.name(), self.limit(it)?));
        let limits: Vec<String> = Phase::ALL.into_iter().filter_map(limit).collect();
        f.write_str(&if limits.is_empty() { "none".to_owned() } else { limits.join(", ") })
    }
}

/// Converts whole milliseconds to `f64`. This is exact below 2^53 ms, which is 285,000 years.
#[allow(clippy::cast_precision_loss)]
const fn to_ms(ms: u64) -> f64 {
    ms as f64
}

/// A phase that exceeded its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Overrun {
    /// The phase.
    pub phase: Phase,
    /// The limit, in milliseconds.
    pub limit_ms: u64,
    /// The measured duration, in milliseconds.
    pub taken_ms: f64,
}

/// The duration of each phase, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    /// See [`Phase::Vmm`].
    pub vmm: f64,
    /// See [`Phase::Jail`]. Records of earlier versions lack it.
    #[serde(default)]
    pub jail: f64,
    /// See [`Phase::Kernel`].
    pub kernel: f64,
    /// See [`Phase::Init`].
    pub init: f64,
    /// See [`Phase::Ready`].
    pub ready: f64,
    /// See [`Phase::Total`].
    pub total: f64,
}

impl Phases {
    /// Returns the duration of `phase`, in milliseconds.
    pub const fn of(&self, phase: Phase) -> f64 {
        match phase {
            Phase::Vmm => self.vmm,
            Phase::Jail => self.jail,
            Phase::Kernel => self.kernel,
            Phase::Init => self.init,
            Phase::Ready => self.ready,
            Phase::Total => self.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_over_its_limit_is_named() {
        let budget = Budget { kernel: Some(10), total: Some(100), ..Budget::default() };
        let taken = Phases { vmm: 500.0, kernel: 10.0, total: 100.5, ..Phases::default() };
        let over = budget.overruns(&taken);
        assert_eq!(over, [Overrun { phase: Phase::Total, limit_ms: 100, taken_ms: 100.5 }]);
    }

    #[test]
    fn only_what_is_limited_is_shown() {
        assert_eq!(Budget::default().to_string(), "none");
        let some = Budget { kernel: Some(400), total: Some(900), ..Budget::default() };
        assert_eq!(some.to_string(), "kernel 400 ms, total 900 ms");
    }

    #[test]
    fn names_and_fields_agree() {
        let json = serde_json::to_value(Phases::default()).unwrap();
        for phase in Phase::ALL {
            assert!(json.get(phase.name()).is_some());
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.name());
        }
    }
}
