//! The task of a served box: the agent's result, and the verdict.

use box_contract::TaskStatus;
use box_contract::task::{MAX_RESULT, MAX_SENT_RESULT};
use box_contract::wire::{Exited, Follow, GuestMessage, TaskResult, Verification};
use host_fs::OsError;

use super::Supervisor;
use crate::boxes::task::{EndedTask, now, write_result};
use crate::streams::StreamError;

impl Supervisor {
    /// Adds a part of the result. Ignores the part if the box has no task, or if its agent has ended.
    pub(super) fn take_result(&mut self, part: &TaskResult) -> Result<(), StreamError> {
        if self.entry.record.task.is_none() || self.agent_exit.is_some() {
            return Ok(());
        }
        if self.result.len() + part.data.len() > MAX_SENT_RESULT {
            return Err(StreamError::Protocol("the result of the task is too long".to_owned()));
        }
        self.result.extend_from_slice(&part.data);
        Ok(())
    }

    /// Records a step of the verification of the task, and passes it on to the clients that follow the agent. Ignores the step if the
    /// box is ending, because the task then gets no verdict.
    pub(super) fn take_verification(&mut self, step: Verification) -> Result<(), StreamError> {
        if self.kill_at.is_some() || self.has_failed {
            return Ok(());
        }
        let task = self.entry.record.task.as_mut().filter(|_| self.agent_exit.is_none());
        let recorded =
            task.ok_or("a verification without a task").and_then(|it| it.verify(step.clone()));
        recorded.map_err(|fault| StreamError::Protocol(fault.to_owned()))?;
        // Ignore a failed write, as for the verdict.
        drop(self.entry.update(|_| {}));
        self.clients.tell(&[Follow::Output], &GuestMessage::Verification(step), None);
        Ok(())
    }

    /// Judges the box's task, if any, by the agent's exit status and by its verification. A task that the box's shutdown interrupts gets no
    /// verdict.
    pub(super) fn end_task(&mut self, exited: Exited) {
        if self.kill_at.is_some() || self.has_failed {
            return;
        }
        let Some(task) = &self.entry.record.task else { return };
        let verification = task.verification.as_ref();
        let status = TaskStatus::of_end(exited, &self.result, verification, now());
        // Ignore a failed write: only the file of the record then lacks the verdict.
        drop(
            self.entry
                .update(|record| record.task.iter_mut().for_each(|it| it.status = status.clone())),
        );
    }

    /// Stores the result after the box has ended. Returns the task, and the first error of storing its result.
    pub(super) fn ended_task(&mut self) -> (Option<EndedTask>, Result<(), OsError>) {
        if self.result.len() > MAX_RESULT {
            // An incomplete result is worse than none.
            self.result.clear();
        }
        let result = std::mem::take(&mut self.result);
        let Some(task) = &mut self.entry.record.task else { return (None, Ok(())) };
        task.lose();
        let task = task.clone();
        let written = self.terms.result.as_deref().map(|place| write_result(place, &result));
        let kept = self.entry.keep_result(&result);
        (Some(EndedTask { task, result }), written.unwrap_or(Ok(())).and(kept))
    }
}
