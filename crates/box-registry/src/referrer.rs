//! The manifest of an attachment: an OCI manifest whose `subject` is the manifest of a box
//! ([OCI image-spec v1.1.1](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md#guidelines-for-artifact-usage)).
//!
//! For a sigstore bundle it has the form that
//! [cosign](https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md) specifies, except that it has no annotation with
//! the time: so the same attachment of the same manifest always has the same manifest.
//!
//! A registry that refuses artifacts gets an image with the attachment as its only layer. The annotation
//! `vnd.boxbuild.attachment.type` then has the media type.

use std::collections::BTreeMap;

use box_cache::AttachmentInfo;
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use oci_registry::{Pusher, Reference};

use crate::error::BoxRegistryError;
use crate::form::{Document, IMAGE_CONFIG_TYPE, IMAGE_LAYER_TYPE, ImageConfig, json};

/// Media type of [`EMPTY`].
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// The annotation of an image with the media type of the attachment.
const TYPE: &str = "vnd.boxbuild.attachment.type";
/// The config of the manifest of an attachment: an empty document.
pub const EMPTY: &[u8] = b"{}";
/// The maximum size of the manifest of an attachment, in bytes. A real one has about a thousand bytes.
pub const MAX_REFERRER: u64 = 64 << 10;

/// An attachment, as its manifest describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// The digest of the manifest that the attachment is about.
    pub subject: Digest,
    /// The attachment. Its bytes are the only layer of the manifest.
    pub info: AttachmentInfo,
}

impl Referrer {
    /// Reads a manifest. Returns `None` if it is not the manifest of an attachment within the limits of the store. Such a manifest
    /// has one layer, whose media type is the artifact type, or the form for registries that refuse artifacts.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(bytes).ok()?;
        let [layer] = document.layers.as_slice() else { return None };
        let mut annotations = document.annotations;
        let types = [&*document.config.media_type, &*layer.media_type];
        let media_type = match document.artifact_type {
            Some(media_type) if layer.media_type == media_type => media_type,
            None if types == [IMAGE_CONFIG_TYPE, IMAGE_LAYER_TYPE] => annotations.remove(TYPE)?,
            _ => return None,
        };
        let info =
            AttachmentInfo { media_type, annotations, digest: layer.digest, size: layer.size };
        let is_sound = document.schema_version == 2 && info.check().is_ok();
        is_sound.then_some(Self { subject: document.subject?.digest, info })
    }

    /// Returns the manifest of an attachment about the manifest `subject`, and the descriptor that lists it.
    pub fn manifest(subject: &Descriptor, info: &AttachmentInfo) -> (Descriptor, Vec<u8>) {
        let AttachmentInfo { media_type, annotations, digest, size } = info;
        let layer = Descriptor::new(&**media_type, *digest, *size);
        let artifact_type = Some(media_type.clone());
        about(subject, artifact_type, (empty(), layer), annotations.clone()).listed()
    }

    /// Returns the manifest of an attachment for a registry that refuses artifacts, as [`Self::manifest`] does, and the config of
    /// the image.
    pub(crate) fn image(
        subject: &Descriptor,
        info: &AttachmentInfo,
    ) -> ((Descriptor, Vec<u8>), (Descriptor, Vec<u8>)) {
        let AttachmentInfo { media_type, annotations, digest, size } = info;
        let bytes = json(&ImageConfig::of_one(digest));
        let config = Descriptor::new(IMAGE_CONFIG_TYPE, Digest::of(&bytes), bytes.len() as u64);
        let layer = Descriptor::new(IMAGE_LAYER_TYPE, *digest, *size);
        let mut annotations = annotations.clone();
        annotations.insert(TYPE.to_owned(), media_type.clone());
        let document = about(subject, None, (config.clone(), layer), annotations);
        (document.listed(), (config, bytes))
    }
}

/// Returns the manifest of an attachment about `subject`.
fn about(
    subject: &Descriptor,
    artifact_type: Option<String>,
    (config, layer): (Descriptor, Descriptor),
    annotations: BTreeMap<String, String>,
) -> Document {
    Document {
        schema_version: 2,
        media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
        artifact_type,
        config,
        layers: vec![layer],
        subject: Some(Descriptor::new(&*subject.media_type, subject.digest, subject.size)),
        annotations,
    }
}

/// Returns the descriptor of [`EMPTY`].
pub fn empty() -> Descriptor {
    Descriptor::new(EMPTY_TYPE, Digest::of(EMPTY), EMPTY.len() as u64)
}

/// Returns the descriptor of a manifest of a box in the registry. `None` if the registry does not have it.
pub(crate) fn described(
    pusher: &Pusher,
    digest: &Digest,
) -> Result<Option<Descriptor>, BoxRegistryError> {
    let manifest = pusher.manifest(&Reference::Digest(*digest))?;
    Ok(manifest.map(|it| Descriptor::new(OCI_MANIFEST_TYPE, *digest, it.bytes.len() as u64)))
}
