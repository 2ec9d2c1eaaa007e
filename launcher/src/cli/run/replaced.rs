//! `--replace`: the box whose name a run takes.

use std::time::Duration;

use boxlaunch::boxes::{Boxes, RecordError, State, Updating};

use crate::cli::error::{Failure, usage};
use crate::cli::lifecycle;

/// The box whose name `--replace` has taken. It is removed when the new one has started.
pub(super) struct Replaced {
    boxes: Boxes,
    name: String,
    /// The name that it has meanwhile.
    other: String,
    _alone: Updating,
}

impl Replaced {
    /// Stops the box with this name, and gives it another name. `None` if there is none.
    pub(super) fn set_aside(
        boxes: &Boxes,
        name: &str,
        grace: Duration,
    ) -> Result<Option<Self>, Failure> {
        let alone = match boxes.updating(name) {
            Err(RecordError::NoBox(_)) => return Ok(None),
            alone => alone?,
        };
        let record = boxes.find(name)?;
        if record.project.is_some() {
            let message = format!("{name} is the environment of a project");
            return Err(usage(
                &message,
                "choose another name; `boxlaunch rm --all-data` removes an environment",
            ));
        }
        if record.state != State::Ended {
            lifecycle::end(boxes, &record, grace)?;
        }
        let other = boxes.set_aside(name)?;
        let (boxes, name) = (boxes.clone(), name.to_owned());
        Ok(other.map(|other| Self { boxes, name, other, _alone: alone }))
    }

    /// Removes the box, now that the new one has started.
    pub(super) fn remove(self) -> Result<(), Failure> {
        Ok(self.boxes.remove(&self.other)?)
    }

    /// Removes the record of the start that has failed, and gives the box its name back.
    pub(super) fn restore(self) -> Result<(), Failure> {
        // With `--rm`, that start has left no record.
        lifecycle::remove(&self.boxes, &self.name, Duration::ZERO)?;
        self.give_back()
    }

    /// Gives the box its name back.
    pub(super) fn give_back(self) -> Result<(), Failure> {
        Ok(self.boxes.rename(&self.other, &self.name)?)
    }
}
