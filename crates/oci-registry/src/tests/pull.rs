//! A pull like the builder's: by tag, then by digest, then the config and the layers.

use serde_json::Value;

use super::*;

/// The error of a pull.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum PullError {
    Registry(#[from] RegistryError),
    /// The manifest names a blob by a malformed digest.
    Digest(#[from] ParseDigestError),
}

/// Pulls an image by its tag.
pub(super) fn pull(registry: &Registry, stage: &Stage) -> Result<(), PullError> {
    let repository = stage.repository();
    // First by the tag, to get the digest for a lock, and then by that digest.
    let tagged = registry.manifest(&repository, &Reference::Tag(Tag::new("v1")?))?;
    let mut manifest = registry.manifest(&repository, &Reference::Digest(tagged.digest))?;
    let mut document: Value = serde_json::from_slice(&manifest.bytes).unwrap();
    if let Some(child) = document["manifests"].get(0) {
        let (digest, _) = descriptor(child)?;
        manifest = registry.manifest(&repository, &Reference::Digest(digest))?;
        document = serde_json::from_slice(&manifest.bytes).unwrap();
    }
    let (config, size) = descriptor(&document["config"])?;
    let layers = document["layers"].as_array().unwrap().iter().map(descriptor);
    let layers = layers.collect::<Result<Vec<_>, _>>()?;
    registry.fetch_blobs(&repository, &[(config, size)], &stage.store)?;
    Ok(registry.fetch_blobs(&repository, &layers, &stage.store)?)
}

fn descriptor(value: &Value) -> Result<(Digest, u64), ParseDigestError> {
    Ok((value["digest"].as_str().unwrap().parse()?, value["size"].as_u64().unwrap()))
}
