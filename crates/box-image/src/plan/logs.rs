//! What is kept of a run in `/logs`.

use serde::{Deserialize, Serialize};

/// What `/logs` holds while the box runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogsPlan {
    /// `stdout.log`: the agent's standard output.
    pub stdout: bool,
    /// `stderr.log`: its standard error.
    pub stderr: bool,
    /// `events.jsonl`: what happened in the box, one JSON object per line.
    pub events: bool,
    /// `atif/`: a directory for the agent's trajectories (Agent Trajectory Interchange Format).
    pub atif: bool,
}
