//! Where manifests and blobs come from: a repository of a registry, or a file with boxes.

use std::io;

use box_digest::Digest;
use oci_registry::{Registry, Repository};

use crate::error::BoxRegistryError;
use crate::inflate::Inflating;

/// Makes of the digest of a blob what it goes into; `None` if it is not needed any more.
pub type Targets<'t, 's> = &'t (dyn Fn(&Digest) -> io::Result<Option<Inflating<'s>>> + Sync);

/// A place with the blobs of boxes, as they travel.
pub trait Origin {
    /// Fetches blobs, each into what `target` makes of its digest. A blob has the digest and the size that it was asked for by
    /// before its target keeps it.
    ///
    /// # Errors
    /// [`BoxRegistryError`]: the first one. What is complete is kept.
    fn fetch<'s>(
        &self,
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError>;
}

/// A manifest of an origin: verified against what named it.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its name, for messages.
    pub what: String,
    /// Its media type as a known one, if it is known.
    pub media_type: Option<&'static str>,
    /// The sha256 of its bytes.
    pub digest: Digest,
    /// The manifest.
    pub bytes: Vec<u8>,
}

/// A repository of a registry.
pub(crate) struct Repo<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) repository: &'a Repository,
}

impl Origin for Repo<'_> {
    fn fetch<'s>(
        &self,
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError> {
        let target = |digest: &Digest| Ok(target(digest)?);
        Ok(self.registry.fetch_into(self.repository, wanted, target)?)
    }
}
