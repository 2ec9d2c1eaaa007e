//! Sources of manifests and blobs: a repository of a registry, or a file with boxes.

use std::io;

use box_digest::Digest;
use oci_registry::{Registry, Repository};

use crate::error::BoxRegistryError;
use crate::inflate::Inflating;

/// Returns the target for the digest of a stored blob, or `None` if the blob is no longer needed.
pub type Targets<'t, 's> = &'t (dyn Fn(&Digest) -> io::Result<Option<Inflating<'s>>> + Sync);

/// A source of stored blobs of boxes.
pub trait Origin {
    /// Fetches blobs, each into the target that `target` returns for its digest. The digest and the size of a blob are verified
    /// before its target keeps it.
    ///
    /// # Errors
    /// The first [`BoxRegistryError`]. Complete blobs are kept.
    fn fetch<'s>(
        &self,
        wanted: &[(Digest, u64)],
        target: Targets<'_, 's>,
    ) -> Result<(), BoxRegistryError>;
}

/// A manifest of an origin, verified against the digest that named it.
#[derive(Debug, Clone)]
pub struct Found {
    /// The description of the manifest, for messages.
    pub what: String,
    /// Its media type, if it is a known one.
    pub media_type: Option<&'static str>,
    /// The sha256 of `bytes`.
    pub digest: Digest,
    /// The manifest, as JSON.
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
