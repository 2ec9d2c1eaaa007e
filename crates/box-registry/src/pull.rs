//! Pulls a box: what is missing is known first, and then fetched.

use std::collections::BTreeMap;

use box_digest::Digest;
use oci_registry::{Reference, Registry, Repository};

use crate::error::BoxRegistryError;
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Sink;

/// What a pull will do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The box.
    pub remote: Remote,
    /// The blobs that the sink lacks.
    pub missing: Vec<RemoteBlob>,
}

/// What a pull has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pulled {
    /// The sha256 of the registry's manifest.
    pub registry_digest: Digest,
    /// The box digest.
    pub digest: Digest,
    /// How many blobs were fetched.
    pub blobs: usize,
    /// How many bytes of blobs were fetched.
    pub bytes: u64,
}

/// Finds out what a reference leads to, and which of its blobs a sink lacks. No blob is fetched.
///
/// # Errors
/// Those of [`Remote::read`], and [`BoxRegistryError::Sink`].
pub fn plan(
    registry: &Registry,
    repository: &Repository,
    reference: &Reference,
    sink: &dyn Sink,
) -> Result<Plan, BoxRegistryError> {
    let remote = Remote::read(registry, repository, reference)?;
    let mut missing = Vec::new();
    for blob in &remote.blobs {
        let (digest, size) = (blob.plain.digest, blob.plain.size);
        let has = sink.has(&digest, size);
        if !has.map_err(|source| BoxRegistryError::Sink { digest, source })? {
            missing.push(blob.clone());
        }
    }
    Ok(Plan { remote, missing })
}

impl Plan {
    /// Returns how many blobs the box has.
    pub fn blobs(&self) -> usize {
        self.remote.blobs.len()
    }

    /// Returns how many bytes will be fetched.
    pub fn bytes(&self) -> u64 {
        sum(self.missing.iter().map(RemoteBlob::size))
    }

    /// Returns how many bytes would be fetched for all blobs.
    pub fn total_bytes(&self) -> u64 {
        sum(self.remote.blobs.iter().map(RemoteBlob::size))
    }

    /// Returns how many bytes the sink needs for what it lacks.
    pub fn plain_bytes(&self) -> u64 {
        sum(self.missing.iter().map(|it| it.plain.size))
    }

    /// Fetches what the sink lacks, several blobs at once, and last the box's manifest: a sink that has that has the box. What a
    /// pull that was interrupted has completed is not fetched again by the next one.
    ///
    /// # Errors
    /// [`BoxRegistryError::Registry`] and [`BoxRegistryError::Sink`]. What is complete stays in the sink.
    pub fn fetch(&self, registry: &Registry, sink: &dyn Sink) -> Result<Pulled, BoxRegistryError> {
        let Remote { repository, registry_digest, digest, .. } = &self.remote;
        let by_digest: BTreeMap<_, _> = self.missing.iter().map(|it| (it.digest(), it)).collect();
        if by_digest.len() < self.missing.len() {
            let (what, why) = (repository.to_string(), "two of its blobs are one in the registry");
            return Err(BoxRegistryError::Malformed { what, why: why.to_owned() });
        }
        let wanted: Vec<_> = self.missing.iter().map(|it| (it.digest(), it.size())).collect();
        registry.fetch_into(repository, &wanted, |digest| by_digest[digest].inflating(sink))?;
        self.keep_manifest(sink)
            .map_err(|source| BoxRegistryError::Sink { digest: *digest, source })?;
        let (blobs, bytes) = (self.missing.len(), self.bytes());
        Ok(Pulled { registry_digest: *registry_digest, digest: *digest, blobs, bytes })
    }

    fn keep_manifest(&self, sink: &dyn Sink) -> std::io::Result<()> {
        let Remote { digest, manifest_bytes, .. } = &self.remote;
        let size = manifest_bytes.len() as u64;
        if sink.has(digest, size)? {
            return Ok(());
        }
        let mut draft = sink.draft(size)?;
        draft.write_all(manifest_bytes)?;
        draft.commit(digest)
    }
}

fn sum(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}
