//! The names of boxes during an update: the new box gets the name of the old one, and the old one keeps its record and logs
//! under another name.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Instant;

use host_fs::OsError;
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Boxes, Entry, LOCKS, Record, RecordError, is_at, is_free, write};
use crate::host::state_dir::{self, absent, is_entry_name, private_file};

/// The directory of the locks of updates.
const UPDATES: &str = ".updates";

/// The exclusive right to update a box, until this value is dropped.
#[derive(Debug)]
pub struct Updating {
    path: PathBuf,
    _locked: File,
}

impl Drop for Updating {
    fn drop(&mut self) {
        // A file that is left has no effect.
        drop(fs::remove_file(&self.path));
    }
}

impl Boxes {
    /// Takes the right to update the box with this name.
    ///
    /// # Errors
    /// [`RecordError::NoBox`], [`RecordError::BeingUpdated`] if another process has it, or errors of the operating system.
    pub fn updating(&self, name: &str) -> Result<Updating, RecordError> {
        self.find(name)?;
        let directory = self.directory.join(UPDATES);
        state_dir::make(&directory)?;
        let path = directory.join(name);
        loop {
            let file = private_file(&path).map_err(OsError::file("make", &path))?;
            match file.try_lock() {
                // The process that had the lock before may have removed the file since it was opened.
                Ok(()) if is_free(&file, &path) => return Ok(Updating { path, _locked: file }),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(RecordError::BeingUpdated(name.to_owned()));
                }
                Err(TryLockError::Error(error)) => {
                    return Err(OsError::file("lock", &path)(error).into());
                }
            }
        }
    }

    /// Gives a box that has ended another name, so that its own is free. Returns the new name, or `None` if the box has no
    /// record any more.
    ///
    /// # Errors
    /// [`RecordError::StillRunning`], or errors of the operating system.
    pub fn set_aside(&self, name: &str) -> Result<Option<String>, RecordError> {
        let other = self.free_name(name)?;
        match self.rename(name, &other) {
            Err(RecordError::NoBox(_)) => Ok(None),
            renamed => renamed.map(|()| Some(other)),
        }
    }

    /// Gives a box that has ended the name `to`, which must be free.
    ///
    /// # Errors
    /// [`RecordError::NoBox`], [`RecordError::StillRunning`], or errors of the operating system.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), RecordError> {
        let record = self.find(name)?;
        let _guard = state_dir::lock(&self.directory)?;
        if self.lock_of(name).exists() {
            return Err(RecordError::StillRunning(name.to_owned()));
        }
        let (old, new) = (self.directory.join(name), self.directory.join(to));
        let renamed = renameat_with(CWD, &old, CWD, &new, RenameFlags::NOREPLACE);
        renamed.map_err(|error| OsError::file("rename", &old)(error.into()))?;
        Ok(write(&new, &Record { name: to.to_owned(), ..record })?)
    }
}

impl Entry {
    /// Returns the directory of the record and the logs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Exchanges the names of this box and another one that runs. The supervisor of the other box then calls
    /// [`Self::renamed`].
    ///
    /// # Errors
    /// [`RecordError::BadName`], or if the kernel refuses. Both boxes then have their names as before.
    pub(crate) fn exchange(&mut self, name: &str) -> Result<(), RecordError> {
        if !is_entry_name(name) {
            return Err(RecordError::BadName(name.to_owned()));
        }
        let root = self.root().to_owned();
        let _guard = state_dir::lock(&root)?;
        let (directory, lock) = (root.join(name), root.join(LOCKS).join(name));
        exchange(&self.lock, &lock)?;
        if let Err(error) = exchange(&self.directory, &directory) {
            exchange(&self.lock, &lock)?;
            return Err(error.into());
        }
        // The names have been exchanged already. The next change of the record writes it again.
        drop(self.renamed(name));
        Ok(())
    }

    /// Returns whether this box has got the name `name` in an exchange. If it has not, no later exchange can give it that name.
    /// Then the box has to end, because other commands take it for one that has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn settle_name(&mut self, name: &str) -> Result<bool, OsError> {
        let root = self.root().to_owned();
        let _guard = state_dir::lock(&root)?;
        if is_at(&self.locked, &root.join(LOCKS).join(name)) {
            return Ok(true);
        }
        // Names are exchanged together with locks.
        absent(&self.lock, |path| fs::remove_file(path))?;
        Ok(false)
    }

    /// Continues under the name that this box has got in an exchange.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn renamed(&mut self, name: &str) -> Result<(), OsError> {
        let root = self.root().to_owned();
        (self.directory, self.lock) = (root.join(name), root.join(LOCKS).join(name));
        name.clone_into(&mut self.record.name);
        self.write(Instant::now())
    }

    /// Returns the directory of all records.
    fn root(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }
}

/// Exchanges two paths atomically: [renameat2(2)](https://man7.org/linux/man-pages/man2/renameat2.2.html).
fn exchange(one: &Path, other: &Path) -> Result<(), OsError> {
    let exchanged = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
    exchanged.map_err(|error| OsError::file("rename", one)(error.into()))
}
