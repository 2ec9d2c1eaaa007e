//! The task of a run, as the host keeps it.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use box_image::{TaskPlan, TaskStatus};
use host_fs::publish::FileDraft;
use serde::{Deserialize, Serialize};

use crate::LaunchError;
use crate::state::{absent, since_epoch};

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

/// The mode of a result's file, from which the umask takes.
const RESULT_FILE_MODE: u32 = 0o666;

/// Checks that a result can be written to a path: that nothing is there but a file, which it replaces. A link may be one of
/// `/dev`.
///
/// # Errors
/// [`LaunchError::ResultPlace`], and when the directory cannot be written to.
pub fn check_result_place(path: &Path) -> Result<(), LaunchError> {
    if fs::symlink_metadata(path).is_ok_and(|it| !it.is_file()) {
        return Err(LaunchError::ResultPlace(path.to_owned()));
    }
    FileDraft::beside(path, RESULT_FILE_MODE).map(drop).map_err(LaunchError::file("write", path))
}

/// Writes a result in the place of one before. Where the agent has left none, that is removed: it is another run's.
///
/// # Errors
/// The file's.
pub fn write_result(path: &Path, result: &[u8]) -> Result<(), LaunchError> {
    if result.is_empty() {
        return absent(path, |path| fs::remove_file(path));
    }
    let write = || {
        let draft = FileDraft::beside(path, RESULT_FILE_MODE)?;
        draft.file().write_all(result)?;
        draft.finish_over(path)
    };
    write().map_err(LaunchError::file("write", path))
}

/// Returns the seconds since 1970.
pub(crate) fn now() -> u64 {
    since_epoch() / 1000
}
