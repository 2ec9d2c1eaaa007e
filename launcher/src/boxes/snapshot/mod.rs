//! Snapshots: copies of the disks of boxes that have ended. An environment can begin with one, or return to it.
//!
//! ```text
//! <state>/snapshots/                    0700
//! <state>/snapshots/.lock               locked while a snapshot is published, examined or removed
//! <state>/snapshots/NAME/record.json    the box to which it belongs, and when it was made
//! <state>/snapshots/NAME/disk           a copy of the disk of the box
//! <state>/snapshots/NAME/box/           the documents of the box, so that the store keeps it
//! ```
//!
//! A snapshot never changes. It is copied into a draft, whose name is none of a snapshot, and renamed when it is whole. As with a
//! volume, only guests read the content of a disk.

mod error;
mod record;

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use box_cache::{Store, StoreError};
use box_digest::Digest;
use box_prune::{SNAPSHOTS, STARTED};
use host_fs::OsError;
use host_fs::publish::{DirectoryDraft, PublishError, sweep};
use vmm::signals::StopSignals;

use super::startable::copy_documents;
use super::{Boxes, Entry, Record, State};
use crate::host::state_dir::{self, MAX_NAME, absent, is_entry_name, names};
use crate::mounts::roots_disk::{self, DISK, RootsDisk};

pub use error::SnapshotError;
pub use record::Snapshot;
use record::SnapshotRecord;

/// The greatest length of `-` and a running number, in bytes.
const MAX_NUMBER: usize = 11;

/// The snapshots in a state directory.
#[derive(Debug, Clone)]
pub struct Snapshots {
    directory: PathBuf,
}

impl Snapshots {
    /// Uses the snapshots in `<state>/snapshots`, which is created with the first snapshot.
    pub fn new(state: &Path) -> Self {
        Self { directory: state.join(SNAPSHOTS) }
    }

    /// Copies the disk of a box that has ended. Without `name`, the snapshot gets the name of the box with a running number, for
    /// example `page-4a05-1`. The caller has the right to update the box ([`Boxes::updating`]), so no other command starts it
    /// meanwhile.
    ///
    /// # Errors
    /// [`SnapshotError::Running`], [`SnapshotError::NoDisk`], [`SnapshotError::Exists`], [`SnapshotError::BadName`],
    /// [`SnapshotError::Stopped`] by a signal, or errors of the operating system. No snapshot is left.
    pub fn create(
        &self,
        (boxes, of): (&Boxes, &Record),
        name: Option<&str>,
        signals: &StopSignals,
    ) -> Result<Snapshot, SnapshotError> {
        if of.state != State::Ended {
            let (name, is_environment) = (of.name.clone(), of.project.is_some());
            return Err(SnapshotError::Running { name, is_environment });
        }
        let from = boxes.directory.join(&of.name);
        if !roots_disk::is_kept_in(&from) {
            return Err(SnapshotError::NoDisk(of.name.clone()));
        }
        let disk = RootsDisk::open(&from)?;
        let name = self.new_name(&of.name, name)?;
        let directory = self.directory.join(&name);
        let publish = |error: PublishError| {
            OsError::file("make the snapshot", &directory)(io::Error::other(error))
        };
        let draft = DirectoryDraft::beside(&directory, 0o700).map_err(publish)?;
        roots_disk::copy(&from, draft.path(), signals)??;
        keep_documents(&from, draft.path())?;
        SnapshotRecord::new(of, disk.size_bytes()).write(draft.path())?;
        let _guard = state_dir::lock(&self.directory)?;
        match draft.finish_new() {
            Err(PublishError::Exists { .. }) => return Err(SnapshotError::Exists(name)),
            finished => finished.map_err(publish)?,
        }
        self.look(&name)
    }

    /// Returns all snapshots, the newest first, and an error for each snapshot that cannot be read.
    ///
    /// # Errors
    /// If the snapshots cannot be listed.
    pub fn all(&self) -> Result<(Vec<Snapshot>, Vec<SnapshotError>), SnapshotError> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        if self.is_absent()? {
            return Ok((found, unreadable));
        }
        let _guard = state_dir::lock(&self.directory)?;
        for name in names(&self.directory)? {
            match self.look(&name) {
                Ok(snapshot) => found.push(snapshot),
                // The directory is left from an interrupted removal.
                Err(SnapshotError::Missing(_)) => {}
                Err(error) => unreadable.push(error),
            }
        }
        found.sort_by_key(|it: &Snapshot| (Reverse(it.created_ms), it.name.clone()));
        Ok((found, unreadable))
    }

    /// Returns the snapshot with this name.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], [`SnapshotError::Damaged`], or errors of the operating system.
    pub fn find(&self, name: &str) -> Result<Snapshot, SnapshotError> {
        let _guard = self.guard_of(name)?;
        self.look(name)
    }

    /// Removes a snapshot, even if it is damaged. An environment that began with it has a copy of its own.
    ///
    /// # Errors
    /// [`SnapshotError::Missing`], or errors of the operating system.
    pub fn remove(&self, name: &str) -> Result<(), SnapshotError> {
        let _guard = self.guard_of(name)?;
        let directory = self.directory.join(name);
        if !roots_disk::is_kept_in(&directory) {
            return Err(SnapshotError::Missing(name.to_owned()));
        }
        // Remove the disk first. If this command is then killed, what is left is not a snapshot.
        roots_disk::remove(&directory)?;
        Ok(absent(&directory, |path| fs::remove_dir_all(path))?)
    }

    /// Removes the drafts that killed commands have left.
    pub fn sweep(&self) {
        sweep(&self.directory.join(DISK), |_| false);
    }

    /// Makes a store keep the box of a snapshot, if the box came from a store.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn note_in(&self, snapshot: &Snapshot, store: &Path) -> Result<(), StoreError> {
        if !self.directory.join(&snapshot.name).join(STARTED).is_dir() {
            return Ok(());
        }
        Store::open(store)?.add_root(&self.directory)
    }

    /// Returns the name of a new snapshot, which is free: `name`, or else the name of the box with the next number. Removes what an
    /// interrupted removal has left under it.
    fn new_name(&self, of: &str, name: Option<&str>) -> Result<String, SnapshotError> {
        if let Some(name) = name.filter(|it| !is_entry_name(it)) {
            return Err(SnapshotError::BadName(name.to_owned()));
        }
        state_dir::make(&self.directory)?;
        let _guard = state_dir::lock(&self.directory)?;
        let name = name.map_or_else(|| self.next_name(of), |it| Ok(it.to_owned()))?;
        let directory = self.directory.join(&name);
        if roots_disk::is_kept_in(&directory) {
            return Err(SnapshotError::Exists(name));
        }
        absent(&directory, |path| fs::remove_dir_all(path))?;
        Ok(name)
    }

    fn next_name(&self, of: &str) -> Result<String, OsError> {
        let base = &of[..of.len().min(MAX_NAME - MAX_NUMBER)];
        let number = |it: &String| it.strip_prefix(base)?.strip_prefix('-')?.parse::<u32>().ok();
        let last = names(&self.directory)?.iter().filter_map(number).max().unwrap_or(0);
        Ok(format!("{base}-{}", last.saturating_add(1)))
    }

    /// Locks the directory of the snapshots. Returns [`SnapshotError::Missing`] if that directory is absent or `name` is invalid.
    fn guard_of(&self, name: &str) -> Result<File, SnapshotError> {
        if !is_entry_name(name) || self.is_absent()? {
            return Err(SnapshotError::Missing(name.to_owned()));
        }
        Ok(state_dir::lock(&self.directory)?)
    }

    /// Returns whether the directory of the snapshots is absent, as before the first snapshot.
    fn is_absent(&self) -> Result<bool, OsError> {
        let exists = self.directory.try_exists();
        exists.map(|it| !it).map_err(OsError::file("read", &self.directory))
    }

    /// Returns a snapshot. The caller has locked the directory of the snapshots.
    fn look(&self, name: &str) -> Result<Snapshot, SnapshotError> {
        let directory = self.directory.join(name);
        if !roots_disk::is_kept_in(&directory) {
            return Err(SnapshotError::Missing(name.to_owned()));
        }
        let SnapshotRecord { of, project, digest, size_bytes, created_ms } =
            SnapshotRecord::read(&directory, name)?;
        let disk = directory.join(DISK);
        let found = fs::symlink_metadata(&disk).map_err(OsError::file("read", &disk))?;
        if !found.is_file() || found.len() != size_bytes {
            let reason =
                format!("its disk has {} bytes, and was made with {size_bytes}", found.len());
            return Err(SnapshotError::Damaged { name: name.to_owned(), reason });
        }
        let (name, allocated_bytes) = (name.to_owned(), found.blocks().saturating_mul(512));
        Ok(Snapshot { name, of, project, digest, size_bytes, allocated_bytes, disk, created_ms })
    }
}

impl Snapshot {
    /// Checks that the snapshot belongs to the box that is started: its files lie above those of one box.
    ///
    /// # Errors
    /// [`SnapshotError::OtherBox`].
    pub fn check_box(&self, started: Digest) -> Result<(), SnapshotError> {
        if self.digest == started {
            return Ok(());
        }
        Err(SnapshotError::OtherBox { name: self.name.clone(), of: self.digest, started })
    }
}

impl Entry {
    /// Makes the disk of the box a copy of a snapshot. The old disk of the box is replaced when the copy is whole.
    ///
    /// # Errors
    /// [`SnapshotError::Stopped`] by a signal, or errors of the operating system. The old disk is then unchanged.
    pub fn begin_with(
        &mut self,
        snapshot: &Snapshot,
        signals: &StopSignals,
    ) -> Result<(), SnapshotError> {
        let from = snapshot.disk.parent().unwrap_or(&snapshot.disk);
        roots_disk::copy(from, &self.directory, signals)??;
        Ok(self.update(|record| record.disk_bytes = Some(snapshot.size_bytes))?)
    }
}

/// Copies the documents of a box from the directory of its record, if that has them: the box is then in a store.
fn keep_documents(from: &Path, to: &Path) -> Result<(), OsError> {
    let (from, to) = (from.join(STARTED), to.join(STARTED));
    if !from.is_dir() {
        return Ok(());
    }
    copy_documents(&from, &to).map_err(OsError::file("make", &to))
}

#[cfg(test)]
mod tests;
