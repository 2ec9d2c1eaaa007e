//! An image, found and resolved to digests.

use std::io::Read;
use std::sync::Arc;

use box_digest::Digest;
use boxfile_spec::Platform;
use oci_layer::LayerSource;
use oci_registry::Repository;

use super::access::Access;
use super::config::ImageConfig;
use super::documents::Manifest;
use super::error::SourceError;
use super::layers::layers;
use super::place::{Blobs, open_blob, parse, read_config};

const CONFIG: &str = "an image config";
const LAYER: &str = "a layer";

/// An image, resolved to digests. Its layers' bytes are not verified yet.
#[derive(Debug, Clone)]
pub struct Image {
    pub(super) home: Home,
    /// The platform that it is for.
    pub platform: Platform,
    /// The image's identity: its manifest's digest, or its config's where it has no manifest, as an
    /// image in an archive of `docker save`.
    pub manifest: Digest,
    /// The manifest's size in bytes; 0 where it has none.
    pub manifest_size: u64,
    /// The config's digest.
    pub config_digest: Digest,
    /// The config's size in bytes.
    pub config_size: u64,
    /// The config.
    pub config: ImageConfig,
    /// The layers, the lowest first. One may be there several times.
    pub layers: Vec<LayerSource>,
}

/// Where the layers of an image lie.
#[derive(Debug, Clone)]
pub(super) enum Home {
    /// In files.
    Local(Arc<dyn Blobs>),
    /// In a repository of a registry, and in the store once they were fetched.
    Registry(Repository),
}

/// What a manifest is named by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) digest: Digest,
    /// The manifest's size in bytes.
    pub(super) size: u64,
}

impl Image {
    /// Reads the config that a manifest names, and checks that it is for the platform and that both
    /// name the same layers.
    pub(super) fn assemble(
        blobs: &dyn Blobs,
        home: Home,
        (identity, manifest): (Identity, &Manifest),
        platform: Platform,
    ) -> Result<Self, SourceError> {
        let named = &manifest.config;
        let bytes = read_config(blobs, (&named.digest, named.size), CONFIG)?;
        let config: ImageConfig = parse(&bytes, || blobs.at(&named.digest), CONFIG)?;
        check_platform(blobs, &config, platform)?;
        Ok(Self {
            layers: layers(blobs, manifest, &config)?,
            home,
            platform,
            manifest: identity.digest,
            manifest_size: identity.size,
            config_digest: named.digest,
            config_size: named.size,
            config,
        })
    }

    /// Returns the bytes of all its blobs: manifest, config and layers.
    pub fn size(&self) -> u64 {
        let sizes = self.layers.iter().map(|layer| layer.size);
        [self.manifest_size, self.config_size].into_iter().chain(sizes).fold(0, u64::saturating_add)
    }

    /// Makes sure that these layers can be opened without a network: those of a registry are fetched
    /// into the store, several at once.
    ///
    /// # Errors
    /// [`SourceError`].
    pub fn fetch_layers(
        &self,
        layers: &[&LayerSource],
        access: &Access<'_>,
    ) -> Result<(), SourceError> {
        match &self.home {
            Home::Local(_) => Ok(()),
            Home::Registry(repository) => access.repo(repository)?.fetch_layers(layers),
        }
    }

    /// Opens a layer's blob, whose size is as the image names it. Its content is not verified.
    ///
    /// # Errors
    /// [`SourceError`] where it is missing, unreadable or of another size.
    pub fn open_layer(
        &self,
        layer: &LayerSource,
        access: &Access<'_>,
    ) -> Result<Box<dyn Read + Send>, SourceError> {
        let LayerSource { digest, size, .. } = layer;
        match &self.home {
            Home::Local(blobs) => open_blob(&**blobs, digest, *size, LAYER),
            Home::Registry(repository) => {
                open_blob(&access.repo(repository)?, digest, *size, LAYER)
            }
        }
        .map(|opened| opened.reader)
    }
}

fn check_platform(
    blobs: &dyn Blobs,
    config: &ImageConfig,
    wanted: Platform,
) -> Result<(), SourceError> {
    let (os, architecture) = (config.os.as_str(), config.architecture.as_str());
    if (os, architecture) == (wanted.os(), wanted.architecture()) {
        return Ok(());
    }
    let found = format!("{os}/{architecture}");
    Err(SourceError::Platform { place: blobs.title(), found, wanted })
}
