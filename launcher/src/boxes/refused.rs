//! The box that did not become ready in place of one that runs.

use std::str::FromStr as _;

use box_digest::Digest;
use host_fs::OsError;
use host_fs::read::{Links, read_file};

use super::{Boxes, write_file};

/// The file with the digest, beside the record of the box that goes on.
const REFUSED: &str = "refused";
/// The greatest size of that file, in bytes.
const MAX_REFUSED: u64 = 128;

impl Boxes {
    /// Records that the box with this digest did not become ready in place of the box with this name.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn refuse(&self, name: &str, digest: &Digest) -> Result<(), OsError> {
        write_file(&self.directory.join(name).join(REFUSED), digest.to_string().as_bytes())
    }

    /// Returns the digest of the last box that did not become ready in place of the box with this name. `None` if there is none, or
    /// if the file cannot be read.
    pub fn refused(&self, name: &str) -> Option<Digest> {
        let path = self.directory.join(name).join(REFUSED);
        let text = read_file(&path, Links::Refuse, MAX_REFUSED).ok()?;
        Digest::from_str(std::str::from_utf8(&text).ok()?).ok()
    }
}
