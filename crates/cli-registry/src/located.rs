//! Finds a box in a registry. Fetches the documents that lead to the box, and none of its blobs.

use box_contract::RemoteName;
use box_digest::Digest;
use box_registry::{BoxRegistryError, Form, FoundAttachments, Remote, attachments};
use box_trust::PublicKey;
use oci_registry::{Reference, Registry, RegistryError, Repository};

use crate::PullError;

/// A box in a registry.
#[derive(Debug, Clone)]
pub struct Located {
    /// The repository.
    pub repository: Repository,
    /// The documents of the box.
    pub remote: Remote,
    /// The name under which a store records the box: HOST/NAME:TAG, or HOST/NAME@DIGEST if there is no tag or the tag now means
    /// another box.
    pub found_by: RemoteName,
}

impl Located {
    /// Reads the documents of a box. If the name has a digest, the box or the registry's manifest must have it.
    ///
    /// # Errors
    /// [`PullError::Registry`] and [`PullError::Other`].
    pub fn read(client: &Registry, name: &RemoteName) -> Result<Self, PullError> {
        let registry = |error| PullError::from(BoxRegistryError::from(error));
        let repository = Repository::of(name).map_err(registry)?;
        let reference = Reference::of(name).map_err(registry)?;
        let remote = Remote::read(client, &repository, &reference)?;
        let located = Self { repository, remote, found_by: name.unpinned() };
        let Some(pin) = name.digest.filter(|pin| !located.has(pin)) else { return Ok(located) };
        // The tag has moved. The registry may still have the manifest with the digest.
        match by_digest(client, &located.repository, pin)? {
            Some(remote) => {
                Ok(Self { remote, found_by: RemoteName { tag: None, ..name.clone() }, ..located })
            }
            None => Err(located.other(pin)),
        }
    }

    /// Returns whether a digest is the box digest or the digest of the registry's manifest.
    fn has(&self, digest: &Digest) -> bool {
        [self.remote.digest, self.remote.registry_digest].contains(digest)
    }

    /// Returns the error of a box that does not have the requested digest.
    pub(crate) fn other(&self, expected: Digest) -> PullError {
        PullError::Other {
            name: Box::new(self.found_by.clone()),
            expected,
            found: self.remote.digest,
            registry: self.remote.registry_digest,
        }
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

/// Returns the box of the registry's manifest with this digest, or `None` if it does not exist or is not for a box.
fn by_digest(
    client: &Registry,
    repository: &Repository,
    pin: Digest,
) -> Result<Option<Remote>, PullError> {
    match Remote::read(client, repository, &Reference::Digest(pin)) {
        // Ignore a box of `Form::Plain`: for a box digest, some registries return the box's own manifest, but do not have its
        // uncompressed blobs.
        Ok(remote) => Ok(Some(remote).filter(|it| it.form != Form::Plain)),
        Err(
            BoxRegistryError::Registry(RegistryError::NotFound { .. })
            | BoxRegistryError::NotABox { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
