//! The figures of one box.

use box_contract::{Budget, Overrun, Phase, Phases};
use box_digest::Digest;
use serde::Serialize;
use virtual_host::Machine;

/// The figures of one box, measured in one start of the virtual host.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The box digest.
    pub digest: Digest,
    /// The box's name.
    pub name: String,
    /// The number of the box's CPUs.
    pub cpus: u8,
    /// The limits of the phases.
    pub budget: Budget,
    /// The time that a start takes with the box's kernel and an init that only connects to boxlaunch, in milliseconds.
    pub floor_ms: f64,
    /// The times that the phases took, for each start; never empty.
    pub runs: Vec<Phases>,
    /// The machine that was emulated.
    pub machine: Machine,
}

/// The times that one phase took over all runs, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// The median. With an even number of runs, it is the mean of the middle two.
    pub median: f64,
    /// The shortest time.
    pub min: f64,
    /// The longest time.
    pub max: f64,
}

impl Measurement {
    /// Returns the figures of a phase.
    pub fn figures(&self, phase: Phase) -> Figures {
        let mut times: Vec<f64> = self.runs.iter().map(|run| run.of(phase)).collect();
        times.sort_by(f64::total_cmp);
        let (min, max) = (times[0], times[times.len() - 1]);
        let middle = f64::midpoint(times[(times.len() - 1) / 2], times[times.len() / 2]);
        Figures { median: middle, min, max }
    }

    /// Returns the median of each phase. The median of the total need not be the sum of the other medians.
    pub fn medians(&self) -> Phases {
        let median = |phase| self.figures(phase).median;
        Phases {
            vmm: median(Phase::Vmm),
            jail: median(Phase::Jail),
            kernel: median(Phase::Kernel),
            init: median(Phase::Init),
            ready: median(Phase::Ready),
            total: median(Phase::Total),
        }
    }

    /// Returns the phases whose median is over the box's budget.
    pub fn excess(&self) -> Vec<Overrun> {
        self.budget.overruns(&self.medians())
    }

    /// Returns the median of the total as a multiple of the floor.
    pub fn over_floor(&self) -> f64 {
        self.figures(Phase::Total).median / self.floor_ms
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a measurement with one run for each total. Each phase is a fixed fraction of the total.
    pub(crate) fn measurement(budget: Budget, totals: &[f64]) -> Measurement {
        let run = |total: &f64| Phases {
            vmm: total * 0.1,
            jail: 0.0,
            kernel: total * 0.5,
            init: total * 0.15,
            ready: total * 0.25,
            total: *total,
        };
        let machine = Machine {
            qemu: "7.2.22 (Debian 1:7.2+dfsg-7)".into(),
            machine: "q35".into(),
            cpu: "EPYC".into(),
            cpus: 1,
            kernel: "6.1.0-56-cloud-amd64".into(),
        };
        Measurement {
            digest: Digest::from_bytes([7; 32]),
            name: "hello".into(),
            cpus: 1,
            budget,
            floor_ms: 250.0,
            runs: totals.iter().map(run).collect(),
            machine,
        }
    }

    #[test]
    fn a_median_is_the_middle_of_the_runs() {
        let of = |totals: &[f64]| measurement(Budget::default(), totals).figures(Phase::Total);
        assert_eq!(of(&[300.0]), Figures { median: 300.0, min: 300.0, max: 300.0 });
        assert_eq!(of(&[900.0, 310.0, 300.0]), Figures { median: 310.0, min: 300.0, max: 900.0 });
        assert_eq!(of(&[300.0, 310.0]).median, 305.0);
    }

    #[test]
    fn one_slow_run_does_not_exceed_the_budget() {
        let budget = Budget { total: Some(305), ..Budget::default() };
        assert_eq!(measurement(budget, &[300.0, 900.0, 301.0]).excess(), []);
        let over = measurement(budget, &[300.0, 306.0, 307.0]).excess();
        assert_eq!(over, [Overrun { phase: Phase::Total, limit_ms: 305, taken_ms: 306.0 }]);
    }
}
