//! A box in a registry that is looked at without fetching its blobs.

use box_contract::{DEFAULT_TAG, RemoteName};
use box_digest::Digest;
use box_registry::{BoxRegistryError, FoundAttachments, Remote, attachments};
use box_trust::PublicKey;
use oci_registry::{Reference, Registry, Repository, Tag};

use crate::PullError;

/// A box in a registry.
#[derive(Debug, Clone)]
pub struct Located {
    /// The repository.
    pub repository: Repository,
    /// The documents of the box.
    pub remote: Remote,
}

impl Located {
    /// Reads the documents of a box. If the name has a digest, the box or the registry's manifest must have it.
    ///
    /// # Errors
    /// [`PullError::Registry`] and [`PullError::Other`].
    pub fn read(client: &Registry, name: &RemoteName) -> Result<Self, PullError> {
        let registry = |error| PullError::from(BoxRegistryError::from(error));
        let repository = Repository::new(&name.host, &name.repository).map_err(registry)?;
        let reference = match (&name.tag, name.digest) {
            (Some(tag), _) => Reference::Tag(Tag::new(tag).map_err(registry)?),
            (None, Some(digest)) => Reference::Digest(digest),
            (None, None) => Reference::Tag(Tag::new(DEFAULT_TAG).map_err(registry)?),
        };
        let remote = Remote::read(client, &repository, &reference)?;
        let located = Self { repository, remote };
        match name.digest {
            Some(expected) if !located.has(&expected) => Err(PullError::Other {
                name: Box::new(name.unpinned()),
                expected,
                found: located.remote.digest,
                registry: located.remote.registry_digest,
            }),
            _ => Ok(located),
        }
    }

    /// Returns whether a digest is the box digest or the digest of the registry's manifest.
    fn has(&self, digest: &Digest) -> bool {
        [self.remote.digest, self.remote.registry_digest].contains(digest)
    }

    /// Fetches the attachments of the box. If it has too many, those that the keys `trusted` have signed are left out last.
    ///
    /// # Errors
    /// [`PullError::Registry`].
    pub fn attachments(
        &self,
        client: &Registry,
        trusted: &[PublicKey],
    ) -> Result<FoundAttachments, PullError> {
        Ok(attachments(client, &self.repository, &self.remote, trusted)?)
    }
}
