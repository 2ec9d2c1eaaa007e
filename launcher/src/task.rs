//! The task of a run, as the host keeps it.

use box_image::{TaskPlan, TaskStatus};
use serde::{Deserialize, Serialize};

use crate::state::since_epoch;

/// The task of a box that was started, and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The kind of task, in the agent's words.
    #[serde(rename = "type")]
    pub kind: String,
    /// The description for people and models.
    pub description: String,
    /// How far it is. Times are in seconds since 1970.
    #[serde(flatten)]
    pub status: TaskStatus,
}

/// The task of a box that has ended, and what has come of it.
#[derive(Debug, Clone)]
pub struct EndedTask {
    /// The task.
    pub task: Task,
    /// The bytes that the agent has left in `/task/result.json`.
    pub result: Vec<u8>,
}

impl Task {
    /// Describes a task that nobody works on yet.
    pub fn new(plan: &TaskPlan) -> Self {
        let TaskPlan { id, kind, description, .. } = plan.clone();
        Self { id, kind, description, status: TaskStatus::Pending }
    }

    /// Notes that the agent works on it.
    pub(crate) fn start(&mut self) {
        self.status = TaskStatus::Running { started_at: now() };
    }

    /// Notes that the box has ended, where there is no verdict yet.
    pub(crate) fn lose(&mut self) {
        if matches!(self.status, TaskStatus::Pending | TaskStatus::Running { .. }) {
            let error = "the box ended before it was done".to_owned();
            self.status = TaskStatus::Failed { finished_at: now(), error };
        }
    }
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    since_epoch() / 1000
}
