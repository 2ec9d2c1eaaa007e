//! Reads and writes the registry's manifest
//! ([OCI image-spec v1.1.1](https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md)).

use std::collections::BTreeMap;

use box_contract::Descriptor;
use box_contract::manifest::{ARTIFACT_TYPE, CONFIG_TYPE, OCI_MANIFEST_TYPE};
use box_digest::Digest;
use serde::{Deserialize, Serialize};

/// The media type of the box's manifest as a blob in a registry. It is not the type of an OCI manifest, because registries look
/// for blobs of that type among their manifests.
pub const BOX_MANIFEST_TYPE: &str = "application/vnd.boxbuild.manifest.v1+json";
/// The annotation of a layer with the digest of the plain (uncompressed) blob: `sha256:` and 64 hexadecimal digits.
pub const PLAIN_DIGEST: &str = "vnd.boxbuild.plain.digest";
/// The annotation of a layer with the size of the plain blob in bytes, as decimal digits.
pub const PLAIN_SIZE: &str = "vnd.boxbuild.plain.size";
/// The label and annotation of [`Form::Image`] with the box digest.
pub const DIGEST_LABEL: &str = "vnd.boxbuild.box.digest";

/// Media type of an OCI image config.
pub(crate) const IMAGE_CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer of an OCI image.
pub(crate) const IMAGE_LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
/// The suffix of the media types of zstd-compressed layers.
const ZSTD: &str = "+zstd";
/// The suffix of the media types of gzip-compressed layers.
const GZIP: &str = "+gzip";

/// The form of a box in a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An artifact whose config is the box's manifest.
    Artifact,
    /// An image, for registries that reject artifacts.
    Image,
    /// The box's own manifest and its uncompressed blobs, as another tool copied them, such as `skopeo copy`.
    Plain,
}

/// A manifest in a registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    pub(crate) schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Descriptor>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The config of [`Form::Image`] ([config.md](https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md)), with the
/// fields that tools require.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageConfig {
    pub(crate) architecture: String,
    pub(crate) os: String,
    pub(crate) config: ImageSettings,
    pub(crate) rootfs: ImageRootfs,
}

/// The labels of an image's config.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImageSettings {
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// The layers of an image's config.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageRootfs {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The digests of the plain layers.
    pub(crate) diff_ids: Vec<Digest>,
}

/// A blob as it is stored in a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The digest of the stored bytes.
    pub(crate) digest: Digest,
    /// The size of the stored bytes.
    pub(crate) size: u64,
    /// How the stored bytes make the plain blob.
    pub(crate) coding: Coding,
}

/// How the stored bytes of a blob make the plain blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    /// They are the plain blob.
    Plain,
    /// They are a zstd frame.
    Zstd,
    /// They are a delta, which makes the plain blob of other blobs.
    Delta,
}

/// A plain blob, and the blob in the registry that has its content.
#[derive(Debug, Clone)]
pub(crate) struct Layer<'a> {
    pub(crate) plain: &'a Descriptor,
    pub(crate) sent: Sent,
}

impl Form {
    /// Returns the name of the form in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Artifact => "artifact",
            Self::Image => "image",
            Self::Plain => "plain",
        }
    }

    /// Returns the form of a registry's manifest, or `None` if the manifest is not for a box.
    pub(crate) fn of(document: &Document) -> Option<Self> {
        let is_artifact = document.artifact_type.as_deref() == Some(ARTIFACT_TYPE);
        match &*document.config.media_type {
            BOX_MANIFEST_TYPE if is_artifact => Some(Self::Artifact),
            CONFIG_TYPE if is_artifact => Some(Self::Plain),
            IMAGE_CONFIG_TYPE if document.artifact_type.is_none() => Some(Self::Image),
            _ => None,
        }
    }

    /// Returns the descriptor of a layer.
    fn descriptor(self, layer: &Layer<'_>) -> Descriptor {
        let plain = match self {
            Self::Image => IMAGE_LAYER_TYPE,
            Self::Artifact | Self::Plain => &*layer.plain.media_type,
        };
        layer.sent.descriptor(plain, (layer.plain.digest, layer.plain.size))
    }
}

impl Document {
    /// Returns the registry's manifest of a box in this form. The first element of `layers` must be the box's manifest.
    pub(crate) fn of_box(form: Form, config: Descriptor, layers: &[Layer<'_>]) -> Self {
        let annotations = match (form, layers.first()) {
            (Form::Image, Some(manifest)) => {
                [(DIGEST_LABEL.to_owned(), manifest.plain.digest.to_string())].into()
            }
            _ => BTreeMap::new(),
        };
        // The config of an artifact is the box's manifest, so do not store the manifest as a layer, too.
        let skipped = usize::from(form != Form::Image);
        Self {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
            artifact_type: (form != Form::Image).then(|| ARTIFACT_TYPE.to_owned()),
            config,
            layers: layers.iter().skip(skipped).map(|it| form.descriptor(it)).collect(),
            subject: None,
            annotations,
        }
    }

    /// Returns the descriptor that lists the manifest, and the bytes of the manifest.
    pub(crate) fn listed(self) -> (Descriptor, Vec<u8>) {
        let bytes = json(&self);
        let listed = Descriptor::new(OCI_MANIFEST_TYPE, Digest::of(&bytes), bytes.len() as u64);
        let Self { artifact_type, annotations, .. } = self;
        (Descriptor { artifact_type, annotations, ..listed }, bytes)
    }

    /// Returns the plain size and the stored blob of each layer with the annotations [`PLAIN_DIGEST`] and [`PLAIN_SIZE`], by its
    /// plain digest. Of several layers with the same plain digest, returns the first.
    pub(crate) fn annotated(&self) -> BTreeMap<Digest, (u64, Sent)> {
        let mut found = BTreeMap::new();
        for layer in &self.layers {
            if let Some((digest, size)) = annotation(layer)
                && let Ok(sent) = Sent::of(layer)
            {
                found.entry(digest).or_insert((size, sent));
            }
        }
        found
    }
}

/// Serializes a document. The documents of this crate have no value that JSON cannot express, so this does not fail.
pub(crate) fn json(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// Returns the plain digest and size in a layer's annotations.
pub(crate) fn annotation(layer: &Descriptor) -> Option<(Digest, u64)> {
    let digest = layer.annotations.get(PLAIN_DIGEST)?.parse().ok()?;
    Some((digest, layer.annotations.get(PLAIN_SIZE)?.parse().ok()?))
}

impl Sent {
    /// Describes a blob that is stored as it is.
    pub(crate) const fn plain(digest: Digest, size: u64) -> Self {
        Self { digest, size, coding: Coding::Plain }
    }

    /// Returns the stored blob of a layer.
    pub(crate) fn of(layer: &Descriptor) -> Result<Self, &'static str> {
        if layer.media_type.ends_with(GZIP) {
            return Err("it has a layer that is compressed with gzip, and only zstd is supported");
        }
        let is_zstd = layer.media_type.ends_with(ZSTD);
        let coding = if is_zstd { Coding::Zstd } else { Coding::Plain };
        Ok(Self { digest: layer.digest, size: layer.size, coding })
    }

    /// Returns the descriptor of the stored blob: `plain_type` is the media type of the plain blob, `plain` its digest and size.
    pub(crate) fn descriptor(self, plain_type: &str, plain: (Digest, u64)) -> Descriptor {
        let suffix = if self.coding == Coding::Zstd { ZSTD } else { "" };
        let media_type = format!("{plain_type}{suffix}");
        let annotations = [
            (PLAIN_DIGEST.to_owned(), plain.0.to_string()),
            (PLAIN_SIZE.to_owned(), plain.1.to_string()),
        ];
        let named = Descriptor::new(media_type, self.digest, self.size);
        Descriptor { annotations: annotations.into(), ..named }
    }

    /// Checks that this can be the stored blob of `plain`. Compression makes a blob hardly larger, so a much larger blob has
    /// other content.
    pub(crate) fn check(&self, plain: &Descriptor) -> Result<(), String> {
        let most = plain.size.saturating_add(plain.size / 128).saturating_add(1024);
        let is_plain = self.coding == Coding::Plain;
        if !is_plain && self.size > most {
            let (size, digest) = (self.size, plain.digest);
            let form = if self.coding == Coding::Zstd { "zstd" } else { "a delta" };
            return Err(format!(
                "the blob {digest} has {} bytes, and {size} as {form}",
                plain.size
            ));
        }
        if is_plain && (self.digest, self.size) != (plain.digest, plain.size) {
            return Err(format!("the layer of the blob {} is another blob", plain.digest));
        }
        Ok(())
    }
}

impl ImageConfig {
    /// Returns the config of an image with one layer.
    pub(crate) fn of_one(layer: &Digest) -> Self {
        Self {
            architecture: "amd64".to_owned(),
            os: "linux".to_owned(),
            config: ImageSettings { labels: BTreeMap::new() },
            rootfs: ImageRootfs { kind: "layers".to_owned(), diff_ids: vec![*layer] },
        }
    }

    /// Returns the config of an image with these layers. The first element must be the box's manifest.
    pub(crate) fn of_box(layers: &[Layer<'_>]) -> Self {
        let digests = || layers.iter().map(|it| it.plain.digest);
        let labels = digests().take(1).map(|it| (DIGEST_LABEL.to_owned(), it.to_string()));
        Self {
            architecture: "amd64".to_owned(),
            os: "linux".to_owned(),
            config: ImageSettings { labels: labels.collect() },
            rootfs: ImageRootfs { kind: "layers".to_owned(), diff_ids: digests().collect() },
        }
    }
}
