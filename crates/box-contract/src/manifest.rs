//! The documents of a box: OCI image layout, index, manifest (OCI image-spec v1.1) and our config.

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
/// Media type of the rootfs blob of a box of epoch 3: a raw EROFS image.
pub const ROOTFS_TYPE: &str = "application/vnd.boxbuild.rootfs.v1+erofs";
/// Media type of the metadata blob: the part of an EROFS image with which it begins, and that has all but the data of
/// large files. The segments follow it.
pub const METADATA_TYPE: &str = "application/vnd.boxbuild.metadata.v1";
/// Media type of a segment: a part of an EROFS image with data of files.
pub const SEGMENT_TYPE: &str = "application/vnd.boxbuild.segment.v1";
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

    /// Returns what the blob is in a box: `manifest`, `config`, `rootfs`, `metadata`, `segment`, `init`,
    /// `kernel` or `listing`. Of a blob that another version added, returns the media type, which is
    /// foreign text: see [`safe_text`].
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

/// The media types of manifests and indexes, in the order in which a registry is asked for them.
pub const MANIFEST_TYPES: [&str; 4] =
    [OCI_INDEX_TYPE, OCI_MANIFEST_TYPE, DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE];

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

/// Returns the two files by which a box is found in a directory, with their names: [`LAYOUT_FILE`] and [`INDEX_FILE`]. The digest and the
/// size in bytes are those of the box's manifest.
pub fn documents(manifest: Digest, size: u64) -> [(&'static str, Vec<u8>); 2] {
    // Neither has anything that JSON lacks.
    let layout = serde_json::to_vec(&OciLayout::default()).unwrap_or_default();
    let index = serde_json::to_vec(&Index::of_box(manifest, size)).unwrap_or_default();
    [(LAYOUT_FILE, layout), (INDEX_FILE, index)]
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
    /// The parts of the rootfs in their order ([`Self::rootfs`]), init, kernel, and the listing of the rootfs's files.
    pub layers: Vec<Descriptor>,
}

/// The most segments that a rootfs has. A machine opens each of them.
pub const MAX_SEGMENTS: usize = 254;
/// The size of a metadata blob is a multiple of so many bytes.
pub const METADATA_UNIT: u64 = 1 << 20;
/// The size of a segment is a multiple of so many bytes: those of an EROFS block.
pub const SEGMENT_UNIT: u64 = 4096;
/// The most bytes of a rootfs in parts: its superblock counts them in blocks, with 32 bits.
pub const MAX_ROOTFS: u64 = u32::MAX as u64 * SEGMENT_UNIT;

/// Why the blobs of a manifest form no rootfs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum RootfsError {
    /// There is no blob of a type that a rootfs has once, or there are several.
    #[error("it does not name exactly one {role} ({media_type})")]
    NotOne { role: &'static str, media_type: &'static str },
    /// There is a blob of another epoch's rootfs.
    #[error(
        "it names a {role} {digest}, and a box of format epoch {epoch} has {}",
        if *epoch < SEGMENTED_EPOCH { "a rootfs of one blob" } else { "a rootfs of metadata and segments" }
    )]
    OtherEpoch { role: String, digest: Digest, epoch: u32 },
    /// A part is elsewhere than the order of the parts says.
    #[error(
        "its {role} {digest} is layer {found}, and the metadata is layer 0 and the segments follow it \
         without a gap"
    )]
    Order { role: String, digest: Digest, found: usize },
    /// There are too many segments.
    #[error("it names {0} segments, and at most {MAX_SEGMENTS} are allowed")]
    Segments(usize),
    /// A part has a size that no part has.
    #[error("its {role} {digest} has {size} bytes, and a positive multiple of {unit} is allowed")]
    Size { role: String, digest: Digest, size: u64, unit: u64 },
    /// A part is named twice.
    #[error(
        "its {role} {digest} is named more than once, and each part of a rootfs is another blob"
    )]
    Repeated { role: String, digest: Digest },
    /// The parts together are larger than any image.
    #[error("the parts of its rootfs have more than {MAX_ROOTFS} bytes together")]
    TooLarge,
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

    /// Returns the blobs that form the rootfs of a box of an epoch, in the order in which they lie one after another:
    /// before [`SEGMENTED_EPOCH`] the one rootfs, and since then the metadata and its segments.
    ///
    /// # Errors
    /// The first rule that they break.
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

    /// Returns the one blob of a media type.
    fn only(
        &self,
        role: &'static str,
        media_type: &'static str,
    ) -> Result<&Descriptor, RootfsError> {
        self.blob(media_type).ok_or(RootfsError::NotOne { role, media_type })
    }

    /// Returns the metadata and the segments, which are the first layers and of which no two are the same.
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

/// Checks the size of each part of a rootfs, and that of all of them.
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

/// The config of a box: what it is and how it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BoxConfig {
    /// The version of the output's bytes; see [`FORMAT_EPOCH`].
    pub epoch: u32,
    /// BLAKE3 over the canonical form of every entry of the rootfs. It does not depend on the image
    /// format.
    pub tree: Blake3Digest,
    /// The run plan. Init reads it from this document, which the launcher gives it at [`crate::plan::NONCE_PATH`]; that of
    /// a box before [`SEGMENTED_EPOCH`] reads it from the rootfs at [`crate::plan::PLAN_PATH`].
    pub plan: RunPlan,
    /// The guest kernel's own version line, for people; empty where it has none.
    pub kernel_version: String,
    /// The version of the control channel's protocol that the box's init speaks ([`crate::wire::PROTOCOL`]). Older
    /// boxes lack it: of those only the greeting of their init says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

/// The epoch that this version writes. The bytes that an epoch produces never change.
pub const FORMAT_EPOCH: u32 = 4;
/// The epochs of the boxes that this version reads and starts. Each has its own init with it.
pub const READABLE_EPOCHS: RangeInclusive<u32> = 3..=FORMAT_EPOCH;
/// The first epoch whose rootfs is metadata and segments, and whose init reads the plan from the config.
pub const SEGMENTED_EPOCH: u32 = 4;
/// The greatest length of a [`BoxConfig`] as JSON, in bytes: a plan and little else.
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

    /// A manifest of epoch 4 with so many segments.
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

    /// Returns what is wrong with a manifest of two segments after a change.
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
