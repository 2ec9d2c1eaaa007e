//! The box that did not become ready in place of one that runs.

use std::path::PathBuf;
use std::str::FromStr as _;

use box_digest::Digest;
use host_fs::OsError;
use host_fs::read::{Links, read_file};

use super::{Boxes, write_file};
use crate::host::state_dir;

/// The directory with the digests. A digest outlives the record of the box that goes on, because that box may be started with
/// `--rm`, and again under the same name.
const REFUSED: &str = ".refused";
/// The greatest size of a file, in bytes.
const MAX_REFUSED: u64 = 128;

impl Boxes {
    /// Records that the box with this digest did not become ready in place of the box with this name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn refuse(&self, name: &str, digest: &Digest) -> Result<(), OsError> {
        state_dir::make(&self.directory.join(REFUSED))?;
        write_file(&self.refused_path(name), digest.to_string().as_bytes())
    }

    /// Returns the digest of the last box that did not become ready in place of the box with this name. `None` if there is none, or
    /// if the file cannot be read.
    pub fn refused(&self, name: &str) -> Option<Digest> {
        let text = read_file(&self.refused_path(name), Links::Refuse, MAX_REFUSED).ok()?;
        Digest::from_str(std::str::from_utf8(&text).ok()?).ok()
    }

    fn refused_path(&self, name: &str) -> PathBuf {
        self.directory.join(REFUSED).join(name)
    }
}
