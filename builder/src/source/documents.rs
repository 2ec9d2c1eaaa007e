//! Index and manifest, as strict as is needed not to take one for the other.

use std::collections::BTreeMap;

use box_image::Digest;
use serde::Deserialize;

/// Names a blob (descriptor.md).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: Digest,
    pub(super) size: u64,
    #[serde(default)]
    pub(super) platform: Option<Platform>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

/// What a manifest of an index runs on (image-index.md).
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Platform {
    pub(super) architecture: String,
    pub(super) os: String,
}

/// `index.json`, or an index within it.
#[derive(Debug, Deserialize)]
pub(super) struct Index {
    pub(super) manifests: Vec<Descriptor>,
    /// Only a manifest has these; a document with both is ambiguous (CVE-2021-41190).
    #[serde(default)]
    pub(super) layers: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    pub(super) config: Option<serde::de::IgnoredAny>,
}

/// The manifest of an image (manifest.md).
#[derive(Debug, Deserialize)]
pub(super) struct Manifest {
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
    /// Only an index has these.
    #[serde(default)]
    pub(super) manifests: Option<serde::de::IgnoredAny>,
}

/// The file `oci-layout`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LayoutVersion {
    pub(super) image_layout_version: String,
}

pub(super) const INDEX_TYPES: [&str; 2] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];
pub(super) const MANIFEST_TYPES: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
pub(super) const REF_NAME: &str = "org.opencontainers.image.ref.name";
