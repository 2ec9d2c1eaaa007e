//! The documents of a box: OCI image layout, index, manifest (OCI image-spec v1.1) and our config.

use std::ops::RangeInclusive;

use std::collections::{BTreeMap, HashSet};

use box_digest::{Blake3Digest, Digest};
use serde::{Deserialize, Serialize};

use crate::RunPlan;

/// `artifactType` of a box's manifest.
pub const ARTIFACT_TYPE: &str = "application/vnd.boxbuild.box.v1";
/// Media type of [`BoxConfig`].
pub const CONFIG_TYPE: &str = "application/vnd.boxbuild.config.v1+json";
/// Media type of the rootfs blob: a raw EROFS image.
pub const ROOTFS_TYPE: &str = "application/vnd.boxbuild.rootfs.v1+erofs";
/// Media type of the init blob: a static ELF program.
pub const INIT_TYPE: &str = "application/vnd.boxbuild.init.v1+elf";
/// Media type of the kernel blob: an uncompressed ELF kernel with physical load addresses.
pub const KERNEL_TYPE: &str = "application/vnd.boxbuild.kernel.v1+elf";
/// Media type of the listing blob: every entry of the rootfs, and where it came from.
pub const LISTING_TYPE: &str = "application/vnd.boxbuild.listing.v1";
/// Media type of an OCI image manifest.
pub const OCI_MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI image index.
pub const OCI_INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of Docker's image manifest.
pub const DOCKER_MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of Docker's image index, the "manifest list".
pub const DOCKER_INDEX_TYPE: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Names a blob: media type, digest and size in bytes (OCI descriptor.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The blob's media type.
    pub media_type: String,
    /// sha256 of the blob's bytes.
    pub digest: Digest,
    /// The blob's size in bytes.
    pub size: u64,
    /// `artifactType`, where the descriptor names a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Free-form annotations, sorted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Names a blob by media type, digest and size.
    pub fn new(media_type: impl Into<String>, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.into(),
            digest,
            size,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns what the blob is in a box: `manifest`, `config`, `rootfs`, `init`, `kernel` or
    /// `listing`. Of a blob that another version added, returns the media type, which is
    /// foreign text: see [`crate::text`].
    pub fn role(&self) -> &str {
        match self.media_type.as_str() {
            OCI_MANIFEST_TYPE => "manifest",
            CONFIG_TYPE => "config",
            ROOTFS_TYPE => "rootfs",
            INIT_TYPE => "init",
            KERNEL_TYPE => "kernel",
            LISTING_TYPE => "listing",
            other => other,
        }
    }
}

/// The file of an OCI image layout with its version (OCI image-layout.md).
pub const LAYOUT_FILE: &str = "oci-layout";
/// The version of OCI image layouts that is read and written.
pub const LAYOUT_VERSION: &str = "1.0.0";
/// The file of an OCI image layout that names its manifests.
pub const INDEX_FILE: &str = "index.json";
/// The directory of an OCI image layout with its blobs.
pub const BLOBS: &str = "blobs/sha256";

/// Returns the name of a blob's file in an OCI image layout.
pub fn blob_name(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
}

/// The file [`LAYOUT_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OciLayout {
    /// Always [`LAYOUT_VERSION`].
    pub image_layout_version: String,
}

impl Default for OciLayout {
    fn default() -> Self {
        Self { image_layout_version: LAYOUT_VERSION.to_owned() }
    }
}

/// The file [`INDEX_FILE`] of a box: names its one manifest (OCI image-index.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: u32,
    /// [`OCI_INDEX_TYPE`].
    pub media_type: String,
    /// One entry: the box's manifest.
    pub manifests: Vec<Descriptor>,
}

impl Index {
    /// Returns the index of a box whose manifest has this digest and size.
    pub fn of_box(manifest: Digest, size: u64) -> Self {
        let mut descriptor = Descriptor::new(OCI_MANIFEST_TYPE, manifest, size);
        descriptor.artifact_type = Some(ARTIFACT_TYPE.to_owned());
        Self {
            schema_version: 2,
            media_type: OCI_INDEX_TYPE.to_owned(),
            manifests: vec![descriptor],
        }
    }
}

/// The manifest of a box. The sha256 of its bytes is the box digest (OCI manifest.md, "artifacts").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// [`OCI_MANIFEST_TYPE`].
    pub media_type: String,
    /// [`ARTIFACT_TYPE`].
    pub artifact_type: String,
    /// Names the [`BoxConfig`].
    pub config: Descriptor,
    /// The blobs that boot, rootfs, init and kernel, then the listing of its files.
    pub layers: Vec<Descriptor>,
}

impl Manifest {
    /// Returns the manifest over a config and the box's other blobs.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: OCI_MANIFEST_TYPE.to_owned(),
            artifact_type: ARTIFACT_TYPE.to_owned(),
            config,
            layers,
        }
    }

    /// Returns the config and the other blobs, each once: one large blob may be named a thousand times.
    pub fn blobs(&self) -> Vec<&Descriptor> {
        let mut seen = HashSet::new();
        let named = [&self.config].into_iter().chain(&self.layers);
        named.filter(|blob| seen.insert((blob.digest, blob.size))).collect()
    }

    /// Returns the one blob of a media type, or `None` if there is not exactly one.
    pub fn blob(&self, media_type: &str) -> Option<&Descriptor> {
        let mut found = self.layers.iter().filter(|blob| blob.media_type == media_type);
        found.next().filter(|_| found.next().is_none())
    }
}

/// The config of a box: what it is and how it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoxConfig {
    /// The version of the output's bytes; see [`FORMAT_EPOCH`].
    pub epoch: u32,
    /// BLAKE3 over the canonical form of every entry of the rootfs. It does not depend on the image
    /// format.
    pub tree: Blake3Digest,
    /// The run plan. The same bytes are in the rootfs at [`crate::plan::PLAN_PATH`].
    pub plan: RunPlan,
    /// The guest kernel's own version line, for people; empty where it has none.
    pub kernel_version: String,
    /// The version of the control channel's protocol that the box's init speaks ([`crate::wire::PROTOCOL`]). Older
    /// boxes lack it: of those only the greeting of their init says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

/// The epoch that this version writes. The bytes that an epoch produces never change.
pub const FORMAT_EPOCH: u32 = 3;
/// The epochs of the boxes that this version reads and starts. Each has its own init with it.
pub const READABLE_EPOCHS: RangeInclusive<u32> = FORMAT_EPOCH - 1..=FORMAT_EPOCH;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_found_only_where_it_is_unambiguous() {
        let blob = |kind| Descriptor::new(kind, Digest::from_bytes([7; 32]), 1);
        let mut manifest = Manifest::new(
            blob(CONFIG_TYPE),
            [ROOTFS_TYPE, INIT_TYPE, KERNEL_TYPE].map(blob).into(),
        );
        assert_eq!(manifest.blob(INIT_TYPE), Some(&blob(INIT_TYPE)));
        assert_eq!(manifest.blob(CONFIG_TYPE), None);
        manifest.layers.push(blob(INIT_TYPE));
        assert_eq!(manifest.blob(INIT_TYPE), None);
    }
}
