//! Stops a box while its agent writes output and ignores SIGTERM. A test does this a few times, and
//! `cargo run -p boxbuild-soak -- --stops` many times.

/// The seconds between SIGTERM and SIGKILL.
const GRACE: u32 = 1;
/// The tolerance for the duration of a stop, in milliseconds.
const MARGIN: u32 = 500;
/// The agent's entrypoint. At SIGUSR1 the agent writes output that fits into a pipe, so that it does not block without a reader.
const AGENT: &str = r#"entrypoint "/bin/sh" "-c" "trap '' TERM; trap 'seq 5000; echo written' USR1; echo begun; while :; do sleep 1000 & wait; done""#;
/// A command of the virtual host's shell with the same output as the agent.
const WRITTEN: &str = "{ echo begun; seq 5000; echo written; }";

/// A function of the virtual host's shell that runs a command, and prints its duration in milliseconds.
pub const TIMED: &str = "timed() { local start=$EPOCHREALTIME; \"$@\"; local end=$EPOCHREALTIME; \
    echo $(((${end%.*}${end#*.} - ${start%.*}${start#*.}) / 1000)); }";

/// One measured stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The duration of the stop in milliseconds.
    pub taken_ms: u32,
    /// Whether the log contains the complete output of the agent.
    pub is_complete: bool,
}

impl Stop {
    /// Returns whether the agent was killed at most half a second after the grace period, and no output was lost.
    pub fn is_good(self) -> bool {
        let grace = GRACE * 1000;
        self.is_complete && (grace..grace + MARGIN).contains(&self.taken_ms)
    }
}

/// Changes `example`, the Boxfile of examples/hello: its agent ignores SIGTERM, and it has no health check and no skills.
pub fn boxfile(example: &str) -> String {
    let image = "image \"oci:images/agent\"";
    let deaf = format!("image \"oci:images/business\"\n    {AGENT}");
    example
        .replace(image, &deaf)
        .replace("health \"http\" path=\"/health\"", "health \"none\"")
        .replace("skill \"greet\" path=\"skills/greet\"", "")
}

/// Returns a script for the virtual host's shell. It starts the box at `path` `times` times, and stops it each time
/// while its agent writes.
pub fn script(path: &str, times: u32) -> String {
    format!(
        "{TIMED}
        echo $({WRITTEN} | md5sum)
        i=0; while [ $i -lt {times} ]; do i=$((i + 1))
            boxlaunch run -d --name deaf {path} >/dev/null
            while ! boxlaunch logs deaf | grep -q begun; do usleep 10000; done
            boxlaunch kill -s USR1 deaf >/dev/null
            echo $(timed boxlaunch stop --grace {GRACE} deaf | grep -v deaf) $(boxlaunch logs deaf | md5sum)
            boxlaunch rm deaf >/dev/null
        done"
    )
}

/// Parses the script's output. A stop without a valid line is missing from the result.
pub fn stops(output: &str) -> Vec<Stop> {
    let mut lines = output.lines();
    let Some(written) = lines.next() else { return Vec::new() };
    let stop = |line: &str| {
        let (taken, log) = line.split_once(' ')?;
        Some(Stop { taken_ms: taken.parse().ok()?, is_complete: log == written })
    };
    lines.filter_map(stop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_box_is_of_the_example() {
        let example = include_str!("../../../examples/hello/Boxfile");
        let text = boxfile(example);
        assert!(text.contains(AGENT) && text.contains("health \"none\""), "{text}");
        assert!(!text.contains("images/agent") && !text.contains("\nskill "), "{text}");
    }

    #[test]
    fn a_stop_is_judged_by_its_time_and_its_log() {
        let output = "17 23\n1012 17 23\n999 17 23\n1500 17 23\n1012 18 22\n17 23\nno such box\n";
        let good: Vec<bool> = stops(output).into_iter().map(Stop::is_good).collect();
        assert_eq!(good, [true, false, false, false, false]);
        assert_eq!(stops(""), []);
    }
}
