//! The record of a volume.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::publish::FileDraft;
use serde::{Deserialize, Serialize};

use super::VolumeError;
use crate::host::state_dir::{RECORD, read_record};
use crate::streams::log::since_epoch;

/// The content of a volume's `record.json`. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VolumeRecord {
    /// The size of the disk, in bytes.
    pub(super) size_bytes: u64,
    /// When the volume was created.
    pub(super) created_ms: u64,
    /// The name of the box whose VM used the volume last; `None` if no VM has used it.
    #[serde(rename = "box")]
    pub(super) user: Option<String>,
    /// When the VM of `user` was started.
    pub(super) used_ms: Option<u64>,
    /// The name of the box that locked the volume last. The VM of that box may not have started.
    pub(super) taker: Option<String>,
    /// The name under which the volume was made because a box declared it: `BOX.VOLUME`. `None` if a user has named it. A copy
    /// of the volume under another name is another volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) declared_as: Option<String>,
    /// The origins and digests of the boxes that have used the volume because they declare it ([`Claim`](super::Claim)), the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) origins: Vec<String>,
}

/// The current state of a volume. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VolumeState {
    /// The name of the volume's directory. If a user copies the directory, the copy is a volume with its directory's
    /// name.
    pub name: String,
    /// The size of the disk, in bytes.
    pub size_bytes: u64,
    /// When the volume was created.
    pub created_ms: u64,
    /// The name of the box that uses the volume, or used it last; `None` if no box has.
    #[serde(rename = "box")]
    pub user: Option<String>,
    /// When the last VM that used the volume was started.
    pub used_ms: Option<u64>,
    /// The disk's file.
    pub disk: PathBuf,
    /// How much space the disk takes on the host. The file is sparse.
    pub allocated_bytes: u64,
    /// Whether a running box uses the volume.
    pub in_use: bool,
    /// The origin of the box that made the volume because it declares it, or its digest if it has no origin; `None` if a user has
    /// made the volume.
    pub origin: Option<String>,
}

impl VolumeRecord {
    /// Returns the record of a new volume.
    pub(super) fn new(size_bytes: u64, declared_as: Option<String>) -> Self {
        let created_ms = since_epoch();
        let (user, used_ms, taker) = (None, None, None);
        Self { size_bytes, created_ms, user, used_ms, taker, declared_as, origins: Vec::new() }
    }

    /// Returns the name of the box that locked the volume last. Meaningful only while the disk is locked.
    pub(super) fn holder(self) -> Option<String> {
        // Fall back to `user`, because earlier versions of boxlaunch do not write `taker`.
        self.taker.or(self.user)
    }

    /// Reads the record in the directory of a volume.
    ///
    /// # Errors
    /// [`VolumeError::Damaged`].
    pub(super) fn read(directory: &Path, name: &str) -> Result<Self, VolumeError> {
        let damaged = |reason| VolumeError::Damaged { name: name.to_owned(), reason };
        read_record(directory).map_err(damaged)
    }

    /// Replaces the record atomically: after a crash of the host, the file has either the old or the new record.
    ///
    /// # Errors
    /// Errors of the operating system.
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
