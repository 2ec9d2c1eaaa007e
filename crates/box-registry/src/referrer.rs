//! The manifest of an attachment: an OCI manifest whose `subject` is the manifest of a box
//! ([OCI image-spec v1.1.1](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#guidelines-for-artifact-usage)).
//!
//! For a sigstore bundle it has the form that
//! [cosign](https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md) specifies, except that it has no annotation with the
//! time: so the same attachment of the same manifest always has the same manifest.

use std::collections::BTreeMap;

use box_cache::AttachmentInfo;
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use serde::{Deserialize, Serialize};

/// Media type of [`EMPTY`].
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// The config of the manifest of an attachment: an empty document.
pub const EMPTY: &[u8] = b"{}";
/// The maximum size of the manifest of an attachment, in bytes. A real one has about a thousand bytes.
pub const MAX_REFERRER: u64 = 64 << 10;

/// The manifest of an attachment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    artifact_type: String,
    config: Descriptor,
    layers: Vec<Descriptor>,
    subject: Descriptor,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// An attachment, as its manifest describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// The digest of the manifest that the attachment is about.
    pub subject: Digest,
    /// The attachment. Its bytes are the only layer of the manifest.
    pub info: AttachmentInfo,
}

impl Referrer {
    /// Reads a manifest. Returns `None` if it is not the manifest of an attachment within the limits of the store: it has one layer,
    /// whose media type is the artifact type.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        let [layer] = document.layers.as_slice() else { return None };
        let (media_type, annotations) = (document.artifact_type, document.annotations);
        let (digest, size) = (layer.digest, layer.size);
        let is_one = layer.media_type == media_type && document.schema_version == 2;
        let info = AttachmentInfo { media_type, annotations, digest, size };
        let is_sound = is_one && info.check().is_ok();
        is_sound.then_some(Self { subject: document.subject.digest, info })
    }

    /// Returns the manifest of an attachment about the manifest `subject`, and the descriptor that lists it.
    pub fn manifest(subject: &Descriptor, info: &AttachmentInfo) -> (Descriptor, Vec<u8>) {
        let AttachmentInfo { media_type, annotations, digest, size } = info;
        let named = |it: &Descriptor| Descriptor::new(&*it.media_type, it.digest, it.size);
        let document = Document {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
            artifact_type: media_type.clone(),
            config: empty(),
            layers: vec![Descriptor::new(&**media_type, *digest, *size)],
            subject: named(subject),
            annotations: annotations.clone(),
        };
        // Every value of this type can be written.
        let bytes = serde_json::to_vec(&document).unwrap_or_default();
        let listed = Descriptor::new(OCI_MANIFEST_TYPE, Digest::of(&bytes), bytes.len() as u64);
        let artifact_type = Some(media_type.clone());
        (Descriptor { artifact_type, annotations: annotations.clone(), ..listed }, bytes)
    }
}

/// Returns the descriptor of [`EMPTY`].
pub fn empty() -> Descriptor {
    Descriptor::new(EMPTY_TYPE, Digest::of(EMPTY), EMPTY.len() as u64)
}
