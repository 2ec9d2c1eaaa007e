//! Publishing a box: from the look at its blobs to the names that keep them, nothing is deleted.

use box_digest::Digest;

use crate::session::Publishing;
use crate::{Store, StoreError};

impl Store {
    /// Begins to publish a box: checks that all its blobs are there, by their sizes, and keeps them until the names are written that
    /// keep them from then on. A box whose blobs are missing has to be made again: they were deleted while it was made.
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
