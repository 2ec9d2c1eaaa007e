//! The supervisor's part in a task: what the agent leaves as its result, and the verdict.

use box_image::TaskStatus;
use box_image::task::MAX_RESULT;
use box_image::wire::{Exited, TaskResult};

use super::Supervisor;
use crate::LaunchError;
use crate::task::{EndedTask, now};

impl Supervisor {
    /// Takes a part of the result.
    pub(super) fn take_result(&mut self, part: &TaskResult) -> Result<(), LaunchError> {
        if self.result.len() + part.data.len() > MAX_RESULT + 1 {
            return Err(LaunchError::Protocol("the result of the task is too long".to_owned()));
        }
        self.result.extend_from_slice(&part.data);
        Ok(())
    }

    /// Judges the task, if the box has one, by how the agent has ended.
    pub(super) fn end_task(&mut self, exited: Exited) {
        if self.entry.record.task.is_none() {
            return;
        }
        let status = TaskStatus::of_end(exited, &self.result, now());
        if self.result.len() > MAX_RESULT {
            // Half of it is worse than none.
            self.result.clear();
        }
        // Where these fail, the record lacks it.
        drop(self.entry.keep_result(&self.result));
        drop(
            self.entry
                .update(|record| record.task.iter_mut().for_each(|it| it.status = status.clone())),
        );
    }

    /// Returns the task and its result, once the box has ended.
    pub(super) fn ended_task(&mut self) -> Option<EndedTask> {
        let task = self.entry.record.task.as_mut()?;
        task.lose();
        Some(EndedTask { task: task.clone(), result: std::mem::take(&mut self.result) })
    }
}
