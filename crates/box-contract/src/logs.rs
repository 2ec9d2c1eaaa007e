//! The logs of a run: the files of `/logs` in the agent's root file system.
//!
//! ```text
//! /logs/stdout.log     the agent's standard output
//! /logs/stderr.log     the agent's standard error
//! /logs/events.jsonl   the events of the box: each line has the time and a GuestEvent
//! /logs/atif/          the agent's trajectories
//! ```
//!
//! The agent can write only to the directory for trajectories. A full file is renamed with the suffix `.1` and replaces
//! the previous `.1` file. The names are from OANIX's `LogsFs`. The format of trajectories is Harbor's Agent Trajectory
//! Interchange Format, which boxbuild does not parse.

/// The directory of the logs in the agent's root file system.
pub const LOGS_PATH: &str = "/logs";
/// The file of the agent's standard output.
pub const STDOUT: &str = "stdout.log";
/// The file of the agent's standard error.
pub const STDERR: &str = "stderr.log";
/// The file of events.
pub const EVENTS: &str = "events.jsonl";
/// The directory of trajectories.
pub const TRAJECTORIES: &str = "atif";
/// The size in bytes at which a log file is full. The next entry starts a new file.
pub const MAX_LOG: usize = 1 << 20;
/// The maximum size of all trajectories together, in bytes.
pub const MAX_TRAJECTORIES: usize = 4 << 20;
/// The maximum number of trajectories.
pub const MAX_TRAJECTORY_FILES: usize = 64;
/// The maximum length of a trajectory's name, in bytes.
const MAX_NAME: usize = 64;

/// Returns whether a trajectory may have this file name: ASCII letters and digits, and `.`, `_` and `-` except at the
/// start. For example, `run-1.json` is accepted and `.run.json` is not.
pub fn is_trajectory_name(name: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    name.len() <= MAX_NAME
        && name.starts_with(|it: char| it.is_ascii_alphanumeric())
        && name.chars().all(is_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        let long = "a".repeat(MAX_NAME);
        assert!(["run-1.json", "a", "0_b.c", &long].into_iter().all(is_trajectory_name));
        let others = ["", ".", "..", ".a", "a/b", "-a", "ä", "a b", "a\n", &(long + "a")];
        assert!(!others.into_iter().any(is_trajectory_name));
    }

    #[test]
    fn the_page_has_these_bounds_and_kinds() {
        let page = include_str!("../../../docs/logs.md").replace('\n', " ");
        let (log, all) = (MAX_LOG >> 20, MAX_TRAJECTORIES >> 20);
        for bound in [
            format!("of at most {MAX_TRAJECTORY_FILES} files and {all} MiB together"),
            format!("A file that has reached {log} MiB is renamed"),
            format!("Anything beyond {all} MiB in total"),
        ] {
            assert!(page.contains(&bound), "{bound}");
        }
        for kind in crate::wire::GuestEventKind::ALL {
            assert!(page.contains(&format!("`{}`", kind.name())), "{kind:?}");
        }
    }
}
