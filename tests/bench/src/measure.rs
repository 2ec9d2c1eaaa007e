//! Measures a command: wall time, CPU time and memory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use testbed::{KitError, Result, program};

/// The cost of one or more commands.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sample {
    /// Wall time from the start to the end.
    pub(super) wall: Duration,
    /// CPU time in the program.
    pub(super) user: Duration,
    /// CPU time in the kernel for the program.
    pub(super) system: Duration,
    /// The largest resident size of one process, in bytes.
    pub(super) memory: u64,
}

impl Sample {
    /// Returns the cost of both, run one after the other: the sum of the times, and the larger memory.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            wall: self.wall + other.wall,
            user: self.user + other.user,
            system: self.system + other.system,
            memory: self.memory.max(other.memory),
        }
    }
}

/// Runs a command under GNU time, which writes its report into the directory `room`.
pub(super) fn measure(command: &mut Command, room: &Path) -> Result<Sample> {
    let report = room.join("time");
    let mut timed = Command::new("time");
    timed.args(["--format", "%U %S %M", "--output"]).arg(&report);
    timed.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        timed.env(name, value.unwrap_or_default());
    }
    if let Some(directory) = command.get_current_dir() {
        timed.current_dir(directory);
    }
    let started = Instant::now();
    program::run(&mut timed)?;
    let wall = started.elapsed();
    let text = fs::read_to_string(&report).map_err(KitError::file("read", &report))?;
    parse(&text, wall).ok_or_else(|| KitError::malformed("the report of GNU time", text))
}

fn parse(text: &str, wall: Duration) -> Option<Sample> {
    let mut words = text.split_whitespace();
    let mut seconds = || Duration::try_from_secs_f64(words.next()?.parse().ok()?).ok();
    let (user, system) = (seconds()?, seconds()?);
    let memory = words.next()?.parse::<u64>().ok()? << 10;
    Some(Sample { wall, user, system, memory })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads() {
        let sample = parse("1.50 0.25 2048\n", Duration::from_secs(2)).unwrap();
        assert_eq!((sample.user.as_millis(), sample.system.as_millis()), (1500, 250));
        assert_eq!((sample.wall.as_secs(), sample.memory), (2, 2 << 20));
        for bad in ["", "1 2", "x 1 2", "-1 1 2"] {
            assert_eq!(parse(bad, Duration::ZERO), None, "{bad}");
        }
    }

    #[test]
    fn commands_add_up_and_the_largest_memory_counts() {
        let one = Sample { wall: Duration::from_secs(1), memory: 7, ..Sample::default() };
        let two = Sample { wall: Duration::from_secs(2), memory: 5, ..Sample::default() };
        assert_eq!((one.and(two).wall.as_secs(), one.and(two).memory), (3, 7));
    }
}
