//! An image, resolved to digests.

use std::io::Read;
use std::sync::Arc;

use box_contract::Platform;
use box_digest::Digest;
use oci_layer::{Compression, LayerSource, START};
use oci_spec::image::{self, Config, ImageConfiguration, ImageManifest};

use super::config;
use super::documents::Blob;
use super::error::SourceError;
use super::layers::{LAYER, layers};
use super::platform;
use super::source::{BlobSource, open_blob, read_config};

/// An image, resolved to digests. The layers' content is not verified yet.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    /// The source of the layers.
    pub(super) source: Arc<dyn BlobSource + 'a>,
    /// The platform of the image.
    pub platform: Platform,
    /// The image's identity: the digest of its manifest, or of its config if it has no manifest, as in an archive of
    /// `docker save`.
    pub manifest: Digest,
    /// The manifest's size in bytes; 0 if there is no manifest.
    pub manifest_size: u64,
    /// The sha256 of the config, which Docker calls the image ID.
    pub config_digest: Digest,
    /// The config's size in bytes.
    pub config_size: u64,
    /// The fields about the image's program, with sorted ports. Fields that the config does not have are empty.
    pub process: Config,
    /// The layers, the lowest first. A layer may occur several times.
    pub layers: Vec<LayerSource>,
}

impl<'a> Image<'a> {
    /// Reads the config that a manifest names. Checks the config's platform, and the config and the manifest against each other.
    pub(super) fn assemble(
        source: Arc<dyn BlobSource + 'a>,
        identity: Blob,
        manifest: &ImageManifest,
        platform: Platform,
    ) -> Result<Self, SourceError> {
        let named = Blob::of(manifest.config());
        let config: ImageConfiguration = read_config(&*source, named)?;
        check_platform(&*source, &config, platform)?;
        Ok(Self {
            layers: layers(&*source, manifest, &config)?,
            source,
            platform,
            manifest: identity.digest,
            manifest_size: identity.size,
            config_digest: named.digest,
            config_size: named.size,
            process: config::process(&config),
        })
    }

    /// Returns the size of manifest, config and layers together, in bytes. A repeated layer is added each time.
    pub fn size(&self) -> u64 {
        let sizes = self.layers.iter().map(|layer| layer.size);
        [self.manifest_size, self.config_size].into_iter().chain(sizes).fold(0, u64::saturating_add)
    }

    /// Makes layers available without a network. Fetches the layers of an image in a registry into the store, in parallel.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn fetch_layers(&self, layers: &[&LayerSource]) -> Result<(), SourceError> {
        let blobs: Vec<_> = layers.iter().map(|layer| blob(layer)).collect();
        self.source.fetch(&blobs)
    }

    /// Opens the blob of a layer and checks its size. The content is not verified.
    ///
    /// # Errors
    /// [`SourceError`] if the blob is missing or unreadable, or does not have the declared size.
    pub fn open_layer(&self, layer: &LayerSource) -> Result<Box<dyn Read + Send>, SourceError> {
        open_blob(&*self.source, blob(layer), LAYER).map(|opened| opened.reader)
    }
}

/// Returns the blob of a layer.
const fn blob(layer: &LayerSource) -> Blob {
    Blob { digest: layer.digest, size: layer.size }
}

/// A layer whose compression differs from its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mislabelled {
    /// The number of the layer; the lowest has 1.
    pub number: usize,
    /// The compression that the layer's media type declares.
    pub label: Compression,
    /// The compression that the first bytes of the layer show.
    pub found: Compression,
}

impl Image<'_> {
    /// Returns the layers whose compression differs from their media type. Skips layers that are not on this host yet.
    pub fn mislabelled(&self) -> Vec<Mislabelled> {
        let layers = (1..).zip(&self.layers);
        let found = layers.filter_map(|(number, layer)| {
            let found = Compression::of_start(&self.start(layer)?);
            let label = layer.compression;
            (found != label && layer.size > 0).then_some(Mislabelled { number, label, found })
        });
        found.collect()
    }

    /// Returns the first bytes of a layer, or `None` if the layer is not on this host yet.
    fn start(&self, layer: &LayerSource) -> Option<Vec<u8>> {
        let opened = self.source.open_present(blob(layer))?;
        let mut start = Vec::new();
        opened.reader.take(START as u64).read_to_end(&mut start).ok()?;
        Some(start)
    }
}

fn check_platform(
    blobs: &dyn BlobSource,
    config: &ImageConfiguration,
    wanted: Platform,
) -> Result<(), SourceError> {
    let mut found = image::Platform::default();
    found.set_os(config.os().clone());
    found.set_architecture(config.architecture().clone());
    found.set_variant(config.variant().clone());
    if platform::fits(&found, wanted) {
        return Ok(());
    }
    let found = platform::listed([&found].into_iter());
    Err(SourceError::Platform { place: blobs.title(), found, wanted })
}
