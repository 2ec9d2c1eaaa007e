//! The processor time of the steps of a run.

use std::fs;
use std::time::Duration;

/// The ticks in a second of the times in `/proc/self/stat`, on all architectures of Linux that this project supports
/// ([proc(5)](https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html), `_SC_CLK_TCK`).
const TICKS: u64 = 100;

/// The steps that have ended, with their processor time.
#[derive(Debug, Default)]
pub(super) struct Processor {
    steps: Vec<(String, Duration)>,
}

impl Processor {
    /// Runs a step, and adds the time that this process and its ended children take meanwhile.
    pub(super) fn step<T>(&mut self, name: &str, work: impl FnOnce() -> T) -> T {
        let before = used();
        let result = work();
        self.steps.push((name.to_owned(), used().saturating_sub(before)));
        result
    }

    /// Returns the summary's line.
    pub(super) fn line(&self) -> String {
        let shown = |(name, time): &(String, Duration)| format!("{name} {:.0}", time.as_secs_f64());
        let sum: Duration = self.steps.iter().map(|(_, time)| *time).sum();
        let steps: Vec<_> = self.steps.iter().map(shown).collect();
        format!("seconds of processor: {:.0} ({})", sum.as_secs_f64(), steps.join(", "))
    }
}

/// Returns the processor time of this process and of its children that have ended. Zero without `/proc`.
fn used() -> Duration {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Duration::from_millis(ticks(&text).unwrap_or_default() * 1000 / TICKS)
}

/// Returns the sum of `utime`, `stime`, `cutime` and `cstime`, the fields 14 to 17. The second field is a name in parentheses, which may
/// contain spaces.
fn ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_after_the_name_are_added() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0";
        assert_eq!(ticks(stat), Some(127));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn the_steps_are_listed_with_their_time() {
        let mut processor = Processor::default();
        assert_eq!(processor.step("compiling", || 7), 7);
        processor.steps[0].1 = Duration::from_millis(61_400);
        processor.steps.push(("tests".to_owned(), Duration::from_secs(5)));
        assert_eq!(processor.line(), "seconds of processor: 66 (compiling 61, tests 5)");
    }
}
