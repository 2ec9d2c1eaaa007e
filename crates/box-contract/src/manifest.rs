//! The documents of a box: an
//! [OCI image layout](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md) with an index and a manifest, and
//! the box's config.

use std::ops::RangeInclusive;

use std::collections::{BTreeMap, HashSet};

use box_digest::{Blake3Digest, Digest};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::RunPlan;
use crate::plan::MAX_PLAN;

/// `artifactType` of a box's manifest.
pub const ARTIFACT_TYPE: &str = "application/vnd.boxbuild.box.v1";
/// Media type of [`BoxConfig`].
pub const CONFIG_TYPE: &str = "application/vnd.boxbuild.config.v1+json";
/// Media type of the rootfs blob of a box of epoch 3: a raw [EROFS](https://docs.kernel.org/filesystems/erofs.html)
/// file system.
pub const ROOTFS_TYPE: &str = "application/vnd.boxbuild.rootfs.v1+erofs";
/// Media type of the metadata blob: the first part of an EROFS file system, with everything but the data of large
/// files. The segments follow it.
pub const METADATA_TYPE: &str = "application/vnd.boxbuild.metadata.v1";
/// Media type of a segment: a part of an EROFS file system with file data.
pub const SEGMENT_TYPE: &str = "application/vnd.boxbuild.segment.v1";
/// Media type of the init blob: a static ELF program.
pub const INIT_TYPE: &str = "application/vnd.boxbuild.init.v1+elf";
/// Media type of the kernel blob: an uncompressed ELF kernel with physical load addresses.
pub const KERNEL_TYPE: &str = "application/vnd.boxbuild.kernel.v1+elf";
/// Media type of the listing blob: the list of all entries of the rootfs with their origins.
pub const LISTING_TYPE: &str = "application/vnd.boxbuild.listing.v1";
/// Media type of an OCI image manifest.
pub const OCI_MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI image index.
pub const OCI_INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of Docker's image manifest.
pub const DOCKER_MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of Docker's image index, the "manifest list".
pub const DOCKER_INDEX_TYPE: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// A reference to a blob by media type, digest and size. See
/// [OCI descriptors](https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The blob's media type.
    pub media_type: String,
    /// The SHA-256 of the blob's bytes.
    pub digest: Digest,
    /// The blob's size in bytes.
    pub size: u64,
    /// `artifactType`, if the descriptor refers to a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Annotations, sorted by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Creates a descriptor without annotations.
    pub fn new(media_type: impl Into<String>, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.into(),
            digest,
            size,
            artifact_type: None,
            annotations: BTreeMap::new(),
        }
    }

    /// Returns the blob's role in a box: `manifest`, `config`, `rootfs`, `metadata`, `segment`, `init`, `kernel` or
    /// `listing`. For an unknown blob, returns its media type, which is untrusted text: see [`safe_text`].
    pub fn role(&self) -> &str {
        match self.media_type.as_str() {
            OCI_MANIFEST_TYPE => "manifest",
            CONFIG_TYPE => "config",
            ROOTFS_TYPE => "rootfs",
            METADATA_TYPE => "metadata",
            SEGMENT_TYPE => "segment",
            INIT_TYPE => "init",
            KERNEL_TYPE => "kernel",
            LISTING_TYPE => "listing",
            other => other,
        }
    }
}

/// The media types of manifests and indexes, in the order of preference in requests to a registry.
pub const MANIFEST_TYPES: [&str; 4] =
    [OCI_INDEX_TYPE, OCI_MANIFEST_TYPE, DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE];

/// The file of an OCI image layout that contains its version.
pub const LAYOUT_FILE: &str = "oci-layout";
/// The supported version of OCI image layouts.
pub const LAYOUT_VERSION: &str = "1.0.0";
/// The file of an OCI image layout that lists its manifests.
pub const INDEX_FILE: &str = "index.json";
/// The directory of an OCI image layout that contains its blobs.
pub const BLOBS: &str = "blobs/sha256";

/// Returns the path of a blob's file in an OCI image layout.
pub fn blob_name(digest: &Digest) -> String {
    format!("{BLOBS}/{}", digest.hex())
}

/// The contents of [`LAYOUT_FILE`].
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

/// The contents of [`INDEX_FILE`], which lists the box's one manifest. See
/// [OCI image index](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md).
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
    /// Creates the index of a box whose manifest has this digest and this size in bytes.
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

/// Returns the names and contents of the two files of a box that are not blobs: [`LAYOUT_FILE`] and [`INDEX_FILE`].
/// `manifest` and `size` are the digest and the size in bytes of the manifest, to which the index refers.
pub fn documents(manifest: Digest, size: u64) -> [(&'static str, Vec<u8>); 2] {
    // Both documents are representable in JSON.
    let layout = serde_json::to_vec(&OciLayout::default()).unwrap_or_default();
    let index = serde_json::to_vec(&Index::of_box(manifest, size)).unwrap_or_default();
    [(LAYOUT_FILE, layout), (INDEX_FILE, index)]
}

/// The manifest of a box. The SHA-256 of its bytes is the box digest. See
/// [OCI image manifest](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md), "Guidelines for Artifact Usage".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: u32,
    /// [`OCI_MANIFEST_TYPE`].
    pub media_type: String,
    /// [`ARTIFACT_TYPE`].
    pub artifact_type: String,
    /// Refers to the [`BoxConfig`].
    pub config: Descriptor,
    /// The parts of the rootfs in order ([`Self::rootfs`]), init, the kernel, and the listing of the rootfs.
    pub layers: Vec<Descriptor>,
}

/// The maximum number of segments of a rootfs. The VMM opens each of them.
pub const MAX_SEGMENTS: usize = 254;
/// The size of a metadata blob is a multiple of this number of bytes.
pub const METADATA_UNIT: u64 = 1 << 20;
/// The size of a segment is a multiple of this number of bytes, the size of an EROFS block.
pub const SEGMENT_UNIT: u64 = 4096;
/// The maximum size in bytes of a rootfs in parts. The EROFS superblock counts blocks with 32 bits.
pub const MAX_ROOTFS: u64 = u32::MAX as u64 * SEGMENT_UNIT;

/// Why the blobs of a manifest form no rootfs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RootfsError {
    /// A rootfs has exactly one blob of this type, and the manifest has none or several.
    #[error("it does not name exactly one {role} ({media_type})")]
    NotOne { role: &'static str, media_type: &'static str },
    /// The manifest has a blob of the rootfs format of another epoch.
    #[error(
        "it names a {role} {digest}, and a box of format epoch {epoch} has {}",
        if *epoch < SEGMENTED_EPOCH { "a rootfs of one blob" } else { "a rootfs of metadata and segments" }
    )]
    OtherEpoch { role: String, digest: Digest, epoch: u32 },
    /// The metadata is not the first layer, or a segment does not follow it without a gap.
    #[error(
        "its {role} {digest} is layer {found}, and the metadata is layer 0 and the segments follow it \
         without a gap"
    )]
    Order { role: String, digest: Digest, found: usize },
    /// The manifest has too many segments.
    #[error("it names {0} segments, and at most {MAX_SEGMENTS} are allowed")]
    Segments(usize),
    /// The size of a part is zero, or not a multiple of [`METADATA_UNIT`] or [`SEGMENT_UNIT`].
    #[error("its {role} {digest} has {size} bytes, and a positive multiple of {unit} is allowed")]
    Size { role: String, digest: Digest, size: u64, unit: u64 },
    /// A part occurs twice.
    #[error(
        "its {role} {digest} is named more than once, and each part of a rootfs is another blob"
    )]
    Repeated { role: String, digest: Digest },
    /// The parts together exceed [`MAX_ROOTFS`].
    #[error("the parts of its rootfs have more than {MAX_ROOTFS} bytes together")]
    TooLarge,
}

impl Manifest {
    /// Creates the manifest of a box from its config and its other blobs.
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: OCI_MANIFEST_TYPE.to_owned(),
            artifact_type: ARTIFACT_TYPE.to_owned(),
            config,
            layers,
        }
    }

    /// Returns the config and the other blobs without duplicates: a hostile manifest may list one large blob a thousand
    /// times.
    pub fn blobs(&self) -> Vec<&Descriptor> {
        let mut seen = HashSet::new();
        let named = [&self.config].into_iter().chain(&self.layers);
        named.filter(|blob| seen.insert((blob.digest, blob.size))).collect()
    }

    /// Returns the only blob of a media type, or `None` if there are none or several.
    pub fn blob(&self, media_type: &str) -> Option<&Descriptor> {
        let mut found = self.layers.iter().filter(|blob| blob.media_type == media_type);
        found.next().filter(|_| found.next().is_none())
    }

    /// Returns the blobs that form the rootfs of a box of `epoch`, in the order of their bytes: one rootfs blob before
    /// [`SEGMENTED_EPOCH`], and otherwise the metadata and its segments.
    ///
    /// # Errors
    /// Returns the first rule that the blobs break.
    pub fn rootfs(&self, epoch: u32) -> Result<Vec<&Descriptor>, RootfsError> {
        let foreign: &[&str] =
            if epoch < SEGMENTED_EPOCH { &[METADATA_TYPE, SEGMENT_TYPE] } else { &[ROOTFS_TYPE] };
        if let Some(other) = self.layers.iter().find(|it| foreign.contains(&&*it.media_type)) {
            let (role, digest) = (other.role().to_owned(), other.digest);
            return Err(RootfsError::OtherEpoch { role, digest, epoch });
        }
        if epoch < SEGMENTED_EPOCH {
            return Ok(vec![self.only("rootfs", ROOTFS_TYPE)?]);
        }
        self.only("metadata", METADATA_TYPE)?;
        let parts = self.parts()?;
        check_sizes(&parts)?;
        Ok(parts)
    }

    /// Returns the only blob of a media type.
    fn only(
        &self,
        role: &'static str,
        media_type: &'static str,
    ) -> Result<&Descriptor, RootfsError> {
        self.blob(media_type).ok_or(RootfsError::NotOne { role, media_type })
    }

    /// Returns the metadata and the segments. They must be the first layers, and distinct.
    fn parts(&self) -> Result<Vec<&Descriptor>, RootfsError> {
        let is_part = |it: &Descriptor| [METADATA_TYPE, SEGMENT_TYPE].contains(&&*it.media_type);
        let named: Vec<_> = self.layers.iter().enumerate().filter(|(_, it)| is_part(it)).collect();
        let segments = named.len().saturating_sub(1);
        if segments > MAX_SEGMENTS {
            return Err(RootfsError::Segments(segments));
        }
        let mut seen = HashSet::new();
        for (place, (found, part)) in named.iter().copied().enumerate() {
            let (role, digest) = (part.role().to_owned(), part.digest);
            if found != place || (place == 0) != (part.media_type == METADATA_TYPE) {
                return Err(RootfsError::Order { role, digest, found });
            }
            if !seen.insert(digest) {
                return Err(RootfsError::Repeated { role, digest });
            }
        }
        Ok(named.into_iter().map(|(_, part)| part).collect())
    }
}

/// Checks the size of each part of a rootfs and their total size.
fn check_sizes(parts: &[&Descriptor]) -> Result<(), RootfsError> {
    let mut total = 0_u64;
    for part in parts {
        let unit = if part.media_type == METADATA_TYPE { METADATA_UNIT } else { SEGMENT_UNIT };
        let size = part.size;
        if size == 0 || !size.is_multiple_of(unit) {
            let (role, digest) = (part.role().to_owned(), part.digest);
            return Err(RootfsError::Size { role, digest, size, unit });
        }
        total = total.saturating_add(size);
    }
    if total > MAX_ROOTFS { Err(RootfsError::TooLarge) } else { Ok(()) }
}

/// The config of a box: its format and its run plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoxConfig {
    /// The format epoch. See [`FORMAT_EPOCH`].
    pub epoch: u32,
    /// The BLAKE3 digest of the canonical form of all entries of the rootfs. It does not depend on the file system's
    /// format.
    pub tree: Blake3Digest,
    /// The run plan. The launcher passes this document to init at [`crate::plan::NONCE_PATH`]. In a box before
    /// [`SEGMENTED_EPOCH`], init reads the plan from the rootfs at [`crate::plan::PLAN_PATH`] instead.
    pub plan: RunPlan,
    /// The guest kernel's version line, for display. It is empty if the kernel has none.
    pub kernel_version: String,
    /// The protocol version of the control channel that the box's init uses ([`crate::wire::PROTOCOL`]). It is absent
    /// in older boxes, in which only the greeting of init contains the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

/// The format epoch that this version writes. The bytes that an epoch produces never change.
pub const FORMAT_EPOCH: u32 = 4;
/// The format epochs of the boxes that this version reads and starts. Each box contains the init of its epoch.
pub const READABLE_EPOCHS: RangeInclusive<u32> = 3..=FORMAT_EPOCH;
/// The first epoch in which the rootfs has metadata and segments, and init reads the plan from the config.
pub const SEGMENTED_EPOCH: u32 = 4;
/// The maximum length of a [`BoxConfig`] in JSON, in bytes. Most of it is the plan.
pub const MAX_CONFIG: u64 = MAX_PLAN + (64 << 10);

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

    fn named(media_type: &str, number: u8, size: u64) -> Descriptor {
        Descriptor::new(media_type, Digest::from_bytes([number; 32]), size)
    }

    /// Returns a manifest of epoch 4 with this number of segments.
    fn segmented(segments: u8) -> Manifest {
        let parts = (1..=segments).map(|it| named(SEGMENT_TYPE, it, 4096 * u64::from(it)));
        let others = [INIT_TYPE, KERNEL_TYPE, LISTING_TYPE].map(|it| named(it, 255, 7));
        let metadata = named(METADATA_TYPE, 0, METADATA_UNIT);
        Manifest::new(
            named(CONFIG_TYPE, 255, 1),
            [metadata].into_iter().chain(parts).chain(others).collect(),
        )
    }

    #[test]
    fn a_rootfs_has_its_parts_in_the_order_of_the_manifest() {
        for segments in [0, 1, 2, 254] {
            let manifest = segmented(segments);
            let parts = manifest.rootfs(4).unwrap();
            assert_eq!(parts, manifest.layers[..=usize::from(segments)].iter().collect::<Vec<_>>());
        }
        let mut old = segmented(0);
        old.layers[0] = named(ROOTFS_TYPE, 0, 1);
        assert_eq!(old.rootfs(3), Ok(vec![&old.layers[0]]));
    }

    /// Returns the error for a manifest of two segments after a change.
    fn refused(epoch: u32, change: impl FnOnce(&mut Vec<Descriptor>)) -> String {
        let mut manifest = segmented(2);
        change(&mut manifest.layers);
        manifest.rootfs(epoch).unwrap_err().to_string()
    }

    #[test]
    fn each_broken_rule_names_the_blob_and_what_is_allowed() {
        let one = format!("sha256:{}", "01".repeat(32));
        let none = format!("sha256:{}", "00".repeat(32));
        assert_eq!(
            refused(4, |it| drop(it.remove(0))),
            format!("it does not name exactly one metadata ({METADATA_TYPE})")
        );
        assert_eq!(
            refused(4, |it| it.push(it[0].clone())),
            format!("it does not name exactly one metadata ({METADATA_TYPE})")
        );
        let order = "and the metadata is layer 0 and the segments follow it without a gap";
        assert_eq!(
            refused(4, |it| it.swap(0, 1)),
            format!("its segment {one} is layer 0, {order}")
        );
        assert_eq!(
            refused(4, |it| it.swap(1, 3)),
            format!("its segment sha256:{} is layer 2, {order}", "02".repeat(32))
        );
        assert_eq!(
            refused(4, |it| it[2] = it[1].clone()),
            format!(
                "its segment {one} is named more than once, and each part of a rootfs is another blob"
            )
        );
        for size in [0, 4095, 4097, u64::MAX] {
            assert_eq!(
                refused(4, |it| it[1].size = size),
                format!(
                    "its segment {one} has {size} bytes, and a positive multiple of 4096 is allowed"
                )
            );
        }
        for size in [0, 4096, METADATA_UNIT - 4096] {
            assert_eq!(
                refused(4, |it| it[0].size = size),
                format!(
                    "its metadata {none} has {size} bytes, and a positive multiple of 1048576 is allowed"
                )
            );
        }
        let large = u64::MAX - 4095;
        let too_large = "the parts of its rootfs have more than 17592186040320 bytes together";
        assert_eq!(refused(4, |it| it[1].size = large), too_large);
        assert_eq!(refused(4, |it| it[1..3].iter_mut().for_each(|it| it.size = large)), too_large);
        assert_eq!(segmented(255).rootfs(4), Err(RootfsError::Segments(255)));
        assert_eq!(
            RootfsError::Segments(255).to_string(),
            "it names 255 segments, and at most 254 are allowed"
        );
    }

    #[test]
    fn a_manifest_of_another_epoch_is_refused() {
        let (none, one) =
            (format!("sha256:{}", "00".repeat(32)), format!("sha256:{}", "01".repeat(32)));
        assert_eq!(
            refused(3, |_| {}),
            format!(
                "it names a metadata {none}, and a box of format epoch 3 has a rootfs of one blob"
            )
        );
        assert_eq!(
            refused(3, |it| it[0].media_type = ROOTFS_TYPE.to_owned()),
            format!(
                "it names a segment {one}, and a box of format epoch 3 has a rootfs of one blob"
            )
        );
        assert_eq!(
            refused(4, |it| it[0].media_type = ROOTFS_TYPE.to_owned()),
            format!(
                "it names a rootfs {none}, and a box of format epoch 4 has a rootfs of metadata and segments"
            )
        );
    }
}
