//! Boxes that are started again: the record of the new run takes the place of the old one's, beside the box's disk.

use box_contract::task::RESULT;
use host_fs::OsError;

use super::{Boxes, Entry, RECORD, Record, RecordError, State, starts};
use crate::host::state_dir::absent;
use crate::mounts::roots_disk;
use crate::streams::log::Logs;

impl Boxes {
    /// Begins the record of a new run of a box that has ended. The box keeps its name and its disk, and the logs of the old run
    /// become the older files of the logs of the new one. With `afresh`, the new run has none of the ports of the old one.
    ///
    /// # Errors
    /// [`RecordError::NoBox`], [`RecordError::StillRunning`], or errors of the operating system.
    pub fn resume(&self, name: &str, record: Record, afresh: bool) -> Result<Entry, RecordError> {
        self.find(name)?;
        let _guard = self.lock()?;
        if self.lock_of(name).exists() {
            return Err(RecordError::StillRunning(name.to_owned()));
        }
        // Another command may have removed the box since it was found.
        let old = self.record(name)?.ok_or_else(|| RecordError::NoBox(name.to_owned()))?;
        let directory = self.directory.join(name);
        drop(Logs::set_aside(&directory));
        absent(&directory.join(RESULT), |path| std::fs::remove_file(path))?;
        // If the start fails, the next one needs the ports again.
        let Record { name, disk_bytes, mut published, updated, .. } = old;
        if afresh {
            published.clear();
        }
        let continues = true;
        let record =
            Record { name: name.clone(), disk_bytes, published, updated, continues, ..record };
        let entry = Entry::begin(directory, self.lock_of(&name), record)?;
        starts::count(&self.directory);
        Ok(entry)
    }

    /// Removes the disk of a box that has ended, so that the box takes little space.
    ///
    /// # Errors
    /// [`RecordError::NoBox`], [`RecordError::StillRunning`], or errors of the operating system.
    pub fn remove_disk(&self, name: &str) -> Result<(), RecordError> {
        let record = self.find(name)?;
        let _guard = self.lock()?;
        if self.lock_of(name).exists() {
            return Err(RecordError::StillRunning(record.name));
        }
        Ok(roots_disk::remove(&self.directory.join(name))?)
    }

    /// Returns whether the name of a box is free although the box has a record: its start has failed, and there is nothing to
    /// start again.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn is_spent(&self, name: &str) -> Result<bool, OsError> {
        let directory = self.directory.join(name);
        if !directory.join(RECORD).exists() {
            return Ok(true);
        }
        let has_failed =
            |it: Record| it.state == State::Ended && it.ready_ms.is_none() && it.error.is_some();
        let is_over = !self.lock_of(name).exists() && !roots_disk::is_kept_in(&directory);
        Ok(is_over && self.record(name)?.is_some_and(has_failed))
    }
}

impl Entry {
    /// Records a start that has failed. A disk that this start has made is removed, because nothing has used it.
    ///
    /// # Errors
    /// If the record cannot be written or removed.
    pub fn fail(
        self,
        status: Option<u8>,
        error: String,
        has_old_disk: bool,
    ) -> Result<(), OsError> {
        if !has_old_disk {
            roots_disk::remove(&self.directory)?;
        }
        self.end(status, Some(error))
    }
}
