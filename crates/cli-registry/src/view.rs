//! A box in a registry that is looked at.

use box_cache::Store;
use box_contract::Descriptor;
use box_layout::{Blob, Documents};
use box_registry::{BoxRegistryError, Plan};
use oci_registry::Registry;

use crate::PullError;

/// A box in a registry that is looked at: its blobs are fetched when they are read. They are kept in the store, where a collection
/// removes them, because no box of the store has them.
#[derive(Debug)]
pub struct View {
    /// The manifest and the config of the box.
    pub documents: Documents,
    plan: Plan,
    store: Store,
    client: Registry,
}

impl View {
    /// Fetches the config and the listing.
    pub(crate) fn new(plan: Plan, store: Store, client: Registry) -> Result<Self, PullError> {
        let documents = plan.documents(&client, &store)?;
        Ok(Self { documents, plan, store, client })
    }

    /// Opens a blob of the box. Fetches and verifies it first if the store lacks it.
    ///
    /// # Errors
    /// [`PullError::Registry`].
    pub fn open(&self, blob: &Descriptor) -> Result<Blob, PullError> {
        self.plan.fetch_only(&[blob.digest], (&self.client, &self.store))?;
        Ok(self.documents.open_blob(blob).map_err(BoxRegistryError::from)?)
    }
}
