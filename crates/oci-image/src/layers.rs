//! The layers that a manifest names, before any of them is fetched or opened.

use std::collections::BTreeMap;

use box_digest::Digest;
use oci_layer::LayerSource;

use super::config::ImageConfig;
use super::documents::{Descriptor, Manifest};
use super::error::SourceError;
use super::media;
use super::place::Blobs;

/// Images have some ten layers; Docker makes at most 127.
pub(super) const LAYERS_MAX: usize = 256;
/// Bytes of the blob of one layer. Registries bound it, too: many at 10 GiB.
const LAYER_BYTES_MAX: u64 = 16 << 30;
/// Bytes of the blobs of all layers of an image, each as often as it is named.
const IMAGE_BYTES_MAX: u64 = 64 << 30;

/// Returns the layers of an image, the lowest first.
pub(super) fn layers(
    blobs: &dyn Blobs,
    manifest: &Manifest,
    config: &ImageConfig,
) -> Result<Vec<LayerSource>, SourceError> {
    let (place, count) = (|| blobs.title(), manifest.layers.len());
    if count > LAYERS_MAX {
        let (place, layers, limit) = (place(), count, LAYERS_MAX);
        return Err(SourceError::TooManyLayers { place, layers, limit });
    }
    config.check(count).map_err(|why| SourceError::Inconsistent { place: place(), why })?;
    check_sizes(blobs, &manifest.layers)?;
    let both = manifest.layers.iter().zip(&config.rootfs.diff_ids).enumerate();
    let layers = both.map(|(index, both)| layer(blobs, index + 1, both));
    let layers = layers.collect::<Result<Vec<_>, _>>()?;
    check_repeats(&layers).map_err(|why| SourceError::Inconsistent { place: place(), why })?;
    Ok(layers)
}

fn layer(
    blobs: &dyn Blobs,
    number: usize,
    (named, diff_id): (&Descriptor, &Digest),
) -> Result<LayerSource, SourceError> {
    let Descriptor { media_type, digest, size, .. } = named;
    let compression = media::compression(media_type).map_err(|why| {
        let (place, media_type) = (blobs.title(), media_type.clone());
        SourceError::LayerType { place, number, media_type, why }
    })?;
    Ok(LayerSource { digest: *digest, size: *size, compression, diff_id: *diff_id })
}

/// Refuses what would fill a disk: as many bytes are fetched as a manifest names.
fn check_sizes(blobs: &dyn Blobs, layers: &[Descriptor]) -> Result<(), SourceError> {
    for (number, size) in (1..).zip(layers.iter().map(|it| it.size)) {
        if size > LAYER_BYTES_MAX {
            let (place, limit) = (blobs.title(), LAYER_BYTES_MAX);
            return Err(SourceError::LayerTooLarge { place, number, size, limit });
        }
    }
    let size = layers.iter().map(|it| it.size).fold(0, u64::saturating_add);
    if size > IMAGE_BYTES_MAX {
        let (place, limit) = (blobs.title(), IMAGE_BYTES_MAX);
        return Err(SourceError::LayersTooLarge { place, size, limit });
    }
    Ok(())
}

/// Refuses a blob that is named in two ways. It is read only once, and then as one of them: which of
/// them that is would decide what the image is.
fn check_repeats(layers: &[LayerSource]) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (number, layer) in (1..).zip(layers) {
        let facts = (layer.size, layer.compression, layer.diff_id);
        let (first, said) = *seen.entry(layer.digest).or_insert((number, facts));
        if said != facts {
            let what = match (said.0 == facts.0, said.1 == facts.1) {
                (false, _) => "sizes",
                (_, false) => "compressions",
                _ => "diff_ids",
            };
            let digest = layer.digest;
            return Err(format!(
                "its layers {first} and {number} are both {digest}, but of different {what}"
            ));
        }
    }
    Ok(())
}
