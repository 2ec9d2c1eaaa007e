//! Publishing a box: nothing is deleted between the check that its blobs exist and the write of a name that keeps them.

use box_digest::Digest;

use crate::session::Publishing;
use crate::{Store, StoreError};

impl Store {
    /// Begins to publish a box. Checks that all its blobs exist with the right sizes, and prevents deletions until the returned
    /// value is dropped. By then, the caller must have written the names that keep the blobs. A missing blob was deleted during
    /// the build, and the box must be built again.
    ///
    /// # Errors
    /// [`StoreError::Missing`] and [`StoreError::File`].
    pub fn publish(&self, blobs: &[(Digest, u64)]) -> Result<Publishing<'_>, StoreError> {
        let publishing = self.session().publish()?;
        match blobs.iter().find(|(blob, size)| self.size(blob) != Some(*size)) {
            Some((blob, _)) => Err(StoreError::Missing(*blob)),
            None => Ok(publishing),
        }
    }
}
