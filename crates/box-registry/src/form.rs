//! The registry's manifest (OCI image-spec v1.1.1, manifest.md,
//! <https://github.com/opencontainers/image-spec/blob/v1.1.1/manifest.md>), written and read.

use std::collections::BTreeMap;

use box_contract::Descriptor;
use box_contract::manifest::{ARTIFACT_TYPE, CONFIG_TYPE, OCI_MANIFEST_TYPE};
use box_digest::Digest;
use serde::{Deserialize, Serialize};

/// Media type of the box's own manifest where it is a blob in a registry. It is another one than a manifest's: registries
/// look for what has that among their manifests.
pub const BOX_MANIFEST_TYPE: &str = "application/vnd.boxbuild.manifest.v1+json";
/// The annotation of a layer with the digest of the plain blob, `sha256:` and 64 hexadecimal digits.
pub const PLAIN_DIGEST: &str = "vnd.boxbuild.plain.digest";
/// The annotation of a layer with the size of the plain blob in bytes, in decimal digits.
pub const PLAIN_SIZE: &str = "vnd.boxbuild.plain.size";
/// The label and annotation of [`Form::Image`] with the box digest.
pub const DIGEST_LABEL: &str = "vnd.boxbuild.box.digest";

/// Media type of an OCI image config.
pub(crate) const IMAGE_CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
/// Media type of a layer of an OCI image.
const IMAGE_LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";
/// The end of the media type of what is compressed with zstd.
const ZSTD: &str = "+zstd";
/// The end of the media type of what is compressed with gzip.
const GZIP: &str = "+gzip";

/// How a registry has a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As an artifact whose config is the box's manifest.
    Artifact,
    /// As an image, for registries that take nothing else.
    Image,
    /// As it is: the registry's manifest is the box's.
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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The config of [`Form::Image`] (OCI image-spec, config.md): what tools need to take it for an image.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageConfig {
    pub(crate) architecture: String,
    pub(crate) os: String,
    pub(crate) config: ImageSettings,
    pub(crate) rootfs: ImageRootfs,
}

/// The part of an image's config with its labels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ImageSettings {
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// The part of an image's config with its layers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ImageRootfs {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The digests of the plain layers.
    pub(crate) diff_ids: Vec<Digest>,
}

/// A blob as it is in a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Of the bytes in the registry.
    pub(crate) digest: Digest,
    /// Of the bytes in the registry.
    pub(crate) size: u64,
    /// Whether they are a zstd frame.
    pub(crate) is_zstd: bool,
}

/// A plain blob, and what a registry has of it.
#[derive(Debug, Clone)]
pub(crate) struct Layer<'a> {
    pub(crate) plain: &'a Descriptor,
    pub(crate) sent: Sent,
}

impl Form {
    /// Returns the word for it in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Artifact => "artifact",
            Self::Image => "image",
            Self::Plain => "plain",
        }
    }

    /// Tells by which form a manifest is one of a box; `None` for something else.
    pub(crate) fn of(document: &Document) -> Option<Self> {
        let is_artifact = document.artifact_type.as_deref() == Some(ARTIFACT_TYPE);
        match &*document.config.media_type {
            BOX_MANIFEST_TYPE if is_artifact => Some(Self::Artifact),
            CONFIG_TYPE if is_artifact => Some(Self::Plain),
            IMAGE_CONFIG_TYPE if document.artifact_type.is_none() => Some(Self::Image),
            _ => None,
        }
    }

    /// Names a layer.
    fn descriptor(self, layer: &Layer<'_>) -> Descriptor {
        let plain = match self {
            Self::Image => IMAGE_LAYER_TYPE,
            Self::Artifact | Self::Plain => &*layer.plain.media_type,
        };
        let sent = layer.sent;
        let media_type = format!("{plain}{}", if sent.is_zstd { ZSTD } else { "" });
        let annotations = [
            (PLAIN_DIGEST.to_owned(), layer.plain.digest.to_string()),
            (PLAIN_SIZE.to_owned(), layer.plain.size.to_string()),
        ];
        let named = Descriptor::new(media_type, sent.digest, sent.size);
        Descriptor { annotations: annotations.into(), ..named }
    }
}

impl Document {
    /// Returns the manifest of a box in a form: of layers, of which the first is the box's manifest.
    pub(crate) fn of_box(form: Form, config: Descriptor, layers: &[Layer<'_>]) -> Self {
        let annotations = match (form, layers.first()) {
            (Form::Image, Some(manifest)) => {
                [(DIGEST_LABEL.to_owned(), manifest.plain.digest.to_string())].into()
            }
            _ => BTreeMap::new(),
        };
        // The config of an artifact is the box's manifest.
        let skipped = usize::from(form != Form::Image);
        Self {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST_TYPE.to_owned()),
            artifact_type: (form != Form::Image).then(|| ARTIFACT_TYPE.to_owned()),
            config,
            layers: layers.iter().skip(skipped).map(|it| form.descriptor(it)).collect(),
            annotations,
        }
    }

    /// Returns the plain digest and size of each layer that says so, and how it travels. A digest that several layers name is
    /// that of the first.
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

/// Returns the plain digest and size that a layer is annotated with.
fn annotation(layer: &Descriptor) -> Option<(Digest, u64)> {
    let digest = layer.annotations.get(PLAIN_DIGEST)?.parse().ok()?;
    Some((digest, layer.annotations.get(PLAIN_SIZE)?.parse().ok()?))
}

impl Sent {
    /// Reads how a layer travels.
    pub(crate) fn of(layer: &Descriptor) -> Result<Self, &'static str> {
        if layer.media_type.ends_with(GZIP) {
            return Err("it has a layer that is compressed with gzip, and zstd is known");
        }
        let is_zstd = layer.media_type.ends_with(ZSTD);
        Ok(Self { digest: layer.digest, size: layer.size, is_zstd })
    }

    /// Checks that a plain blob can be in this: no compression makes a blob much larger, so what is larger has something else
    /// in it.
    pub(crate) fn check(&self, plain: &Descriptor) -> Result<(), String> {
        let most = plain.size.saturating_add(plain.size / 128).saturating_add(1024);
        if self.is_zstd && self.size > most {
            let (size, digest) = (self.size, plain.digest);
            return Err(format!("the blob {digest} has {} bytes, and {size} as zstd", plain.size));
        }
        if !self.is_zstd && (self.digest, self.size) != (plain.digest, plain.size) {
            return Err(format!("the layer of the blob {} is another blob", plain.digest));
        }
        Ok(())
    }
}

impl ImageConfig {
    /// Returns the config of an image with these layers, of which the first is the box's manifest.
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
