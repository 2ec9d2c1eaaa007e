//! Publishing a box: nothing is deleted between the check of its blobs and the names that keep them.

use box_digest::Digest;

use crate::session::Publishing;
use crate::{Store, StoreError};

impl Store {
    /// Begins to publish a box. Checks that all its blobs exist, by their sizes, and keeps them until the caller has written the
    /// names that keep them afterwards. If blobs are missing, they were deleted during the build, and the box has to be built
    /// again.
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
