//! The logs of a run: the files of `/logs` in the agent's root.
//!
//! ```text
//! /logs/stdout.log     what the agent writes to standard output
//! /logs/stderr.log     what it writes to standard error
//! /logs/events.jsonl   what happens in the box: on each line the time, and a GuestEvent
//! /logs/atif/          for the agent's trajectories: files of its own
//! ```
//!
//! The agent can write to the directory alone. A file that is full is renamed, with `.1` after its name, and takes the
//! place of the one that was full before. The names are those of OANIX's `LogsFs`; the format of trajectories is the
//! Agent Trajectory Interchange Format of Harbor, which nothing here reads.

/// Where the agent finds its logs.
pub const LOGS_PATH: &str = "/logs";
/// The file there with the agent's standard output.
pub const STDOUT: &str = "stdout.log";
/// The file with its standard error.
pub const STDERR: &str = "stderr.log";
/// The file with events.
pub const EVENTS: &str = "events.jsonl";
/// The directory for trajectories.
pub const TRAJECTORIES: &str = "atif";
/// The size of a file from which on the next entry goes to another, in bytes.
pub const MAX_LOG: usize = 1 << 20;
/// The greatest size of all trajectories together, in bytes.
pub const MAX_TRAJECTORIES: usize = 4 << 20;
/// How many of them there may be.
pub const MAX_TRAJECTORY_FILES: usize = 64;
/// The longest name of one.
const MAX_NAME: usize = 64;

/// Returns whether a trajectory's file is kept under this name: letters and digits of ASCII, and inner `.`, `_` and `-`.
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
