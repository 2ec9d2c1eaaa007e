//! The task: what an agent that reads `/task` is to do.

use serde::{Deserialize, Serialize};

/// What the agent is to do, as `/task/spec.json` and `/task/meta.json` show it. All that has a time
/// (created, started, finished) is written when the box runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TaskPlan {
    /// The task's id.
    pub id: String,
    /// What kind of task it is; a word between the Boxfile and the agent.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is to be done, for people and models.
    pub description: String,
    /// The task's input: one JSON value, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Words to find the task by, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How long it may take, in seconds. Nothing: as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}
