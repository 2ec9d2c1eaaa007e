//! The record of a snapshot.

use std::path::{Path, PathBuf};

use box_digest::Digest;
use host_fs::OsError;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use crate::boxes::{Record, write_file};
use crate::host::state_dir::{RECORD, read_record};
use crate::streams::log::since_epoch;

/// The content of a snapshot's `record.json`. A snapshot has no map of user ids: the owners of files are those of the guest, and the
/// same box gives its files the same owners everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SnapshotRecord {
    /// The name of the box whose disk was copied.
    pub(super) of: String,
    /// The project whose environment that box was.
    pub(super) project: Option<PathBuf>,
    /// The digest of the box. What its programs wrote lies above the files of this box alone.
    #[serde(rename = "box")]
    pub(super) digest: Digest,
    /// The size of the disk, in bytes.
    pub(super) size_bytes: u64,
    /// When the snapshot was made, in milliseconds since 1970.
    pub(super) created_ms: u64,
}

/// A snapshot: a copy of the disk of a box, and the box to which it belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// The name of the snapshot's directory.
    pub name: String,
    /// The name of the box whose disk was copied.
    pub of: String,
    /// The project whose environment that box was; `None` for another box.
    pub project: Option<PathBuf>,
    /// The digest of the box.
    #[serde(rename = "box")]
    pub digest: Digest,
    /// The size of the disk, in bytes.
    pub size_bytes: u64,
    /// How much space the disk takes on the host. Bytes that it shares with other disks count, too.
    pub allocated_bytes: u64,
    /// The disk's file.
    pub disk: PathBuf,
    /// When the snapshot was made, in milliseconds since 1970.
    pub created_ms: u64,
}

impl SnapshotRecord {
    /// Returns the record of a new snapshot of a box.
    pub(super) fn new(of: &Record, size_bytes: u64) -> Self {
        let Record { name, project, digest, .. } = of;
        let (of, project, created_ms) = (name.clone(), project.clone(), since_epoch());
        Self { of, project, digest: *digest, size_bytes, created_ms }
    }

    /// Reads the record in the directory of a snapshot.
    ///
    /// # Errors
    /// [`SnapshotError::Damaged`].
    pub(super) fn read(directory: &Path, name: &str) -> Result<Self, SnapshotError> {
        let damaged = |reason| SnapshotError::Damaged { name: name.to_owned(), reason };
        read_record(directory).map_err(damaged)
    }

    /// Writes the record into the directory of a snapshot that is being made.
    ///
    /// # Errors
    /// Errors of the operating system.
    pub(super) fn write(&self, directory: &Path) -> Result<(), OsError> {
        let text = serde_json::to_vec(self).map_err(OsError::system("write a record"))?;
        write_file(&directory.join(RECORD), &text)
    }
}
