//! The record of a volume.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::publish::FileDraft;
use host_fs::read::{Links, read_file};
use serde::{Deserialize, Serialize};

use super::VolumeError;
use crate::streams::log::since_epoch;

const RECORD: &str = "record.json";
/// A record takes less, in bytes.
const MAX_RECORD: u64 = 64 << 10;

/// The facts about a volume that neither its disk nor its directory has. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VolumeRecord {
    /// The size of its disk.
    pub(super) size_bytes: u64,
    /// When it was made.
    pub(super) created_ms: u64,
    /// The name of the box whose machine had it last.
    #[serde(rename = "box")]
    pub(super) user: Option<String>,
    /// When that machine was started.
    pub(super) used_ms: Option<u64>,
    /// The name of the box that took it last, whose machine may not have started.
    pub(super) taker: Option<String>,
}

/// A volume as it is now. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeState {
    /// Its name: that of its directory, of which there may be a copy.
    pub name: String,
    /// The size of its disk.
    pub size_bytes: u64,
    /// When it was made.
    pub created_ms: u64,
    /// The name of the box that has it, or had it last.
    #[serde(rename = "box")]
    pub user: Option<String>,
    /// When the box was started that used it last.
    pub used_ms: Option<u64>,
    /// The file with its disk.
    pub disk: PathBuf,
    /// How much that takes of the host's.
    pub allocated_bytes: u64,
    /// Whether a running box has it.
    pub in_use: bool,
}

impl VolumeRecord {
    /// Describes a volume that is made now.
    pub(super) fn new(size_bytes: u64) -> Self {
        let created_ms = since_epoch();
        Self { size_bytes, created_ms, user: None, used_ms: None, taker: None }
    }

    /// Returns the name of the box that has the volume, as long as one has it.
    pub(super) fn holder(self) -> Option<String> {
        // An earlier boxlaunch has written no taker.
        self.taker.or(self.user)
    }

    /// Reads the record of a volume in its directory.
    ///
    /// # Errors
    /// [`VolumeError::Damaged`].
    pub(super) fn read(directory: &Path, name: &str) -> Result<Self, VolumeError> {
        let bytes = read_file(&directory.join(RECORD), Links::Refuse, MAX_RECORD);
        let damaged = |reason: String| VolumeError::Damaged { name: name.to_owned(), reason };
        let bytes = bytes.map_err(|error| damaged(format!("cannot read its record: {error}")))?;
        let record = serde_json::from_slice(&bytes);
        record.map_err(|error| damaged(format!("its record is malformed: {error}")))
    }

    /// Writes it in place of the one before, so that a crash of the host leaves one of both.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn write(&self, directory: &Path) -> Result<(), OsError> {
        let path = directory.join(RECORD);
        let put = || -> io::Result<()> {
            let draft = FileDraft::beside(&path, 0o600)?;
            draft.file().write_all(&serde_json::to_vec(self)?)?;
            draft.finish_over(&path)
        };
        put().map_err(OsError::file("write", &path))
    }
}
