//! The layers of a manifest, checked before any of them is fetched or opened.

use std::collections::BTreeMap;

use box_digest::Digest;
use oci_layer::LayerSource;
use oci_spec::image::{Descriptor, ImageConfiguration, ImageManifest};

use super::documents::{Blob, sha256};
use super::error::SourceError;
use super::source::{BlobSource, Bound};
use super::{config, media};

/// The maximum number of layers. Most images have about ten, and Docker makes at most 127.
const LAYERS: Bound = Bound { what: "an image", unit: "layers", limit: 256 };
/// The description of a layer in messages.
pub(super) const LAYER: &str = "a layer";
/// The maximum size of a layer's blob. Registries also limit it, many to 10 GiB.
const LAYER_BYTES: Bound = Bound { what: LAYER, unit: "bytes", limit: 16 << 30 };
/// The maximum size of an image's layer blobs together. A layer that occurs twice is added twice.
const IMAGE_BYTES: Bound = Bound { what: "an image", unit: "bytes of layers", limit: 64 << 30 };

/// Returns the layers of an image, the lowest first.
pub(super) fn layers(
    blobs: &dyn BlobSource,
    manifest: &ImageManifest,
    config: &ImageConfiguration,
) -> Result<Vec<LayerSource>, SourceError> {
    let place = || blobs.title();
    check_count(place, config, manifest.layers().len())?;
    check_sizes(blobs, manifest.layers())?;
    let both = manifest.layers().iter().zip(config.rootfs().diff_ids());
    let layers =
        (1..).zip(both).map(|(number, (named, id))| layer(blobs, number, named, sha256(id)));
    let layers = layers.collect::<Result<Vec<_>, _>>()?;
    check_repeats(&layers).map_err(|reason| SourceError::inconsistent(&place(), &reason))?;
    Ok(layers)
}

fn layer(
    blobs: &dyn BlobSource,
    number: usize,
    named: &Descriptor,
    diff_id: Digest,
) -> Result<LayerSource, SourceError> {
    let (Blob { digest, size }, media_type) = (Blob::of(named), named.media_type().as_ref());
    let compression = media::compression(media_type).map_err(|reason| {
        let (place, media_type) = (blobs.title(), media_type.to_owned());
        SourceError::LayerType { place, number, media_type, reason }
    })?;
    Ok(LayerSource { digest, size, compression, diff_id })
}

/// Checks the number of layers against the limit and against the config.
pub(super) fn check_count(
    place: impl Fn() -> String,
    config: &ImageConfiguration,
    layers: usize,
) -> Result<(), SourceError> {
    LAYERS.check(layers as u64, || format!("the image in {}", place()))?;
    config::check(config, layers).map_err(|reason| SourceError::inconsistent(&place(), &reason))
}

/// Rejects layers that would fill a disk. Fetching reads as many bytes as the manifest declares.
fn check_sizes(blobs: &dyn BlobSource, layers: &[Descriptor]) -> Result<(), SourceError> {
    let image = || format!("the image in {}", blobs.title());
    for (number, layer) in (1..).zip(layers) {
        LAYER_BYTES.check(layer.size(), || format!("layer {number} of {}", image()))?;
    }
    let size = layers.iter().map(Descriptor::size).fold(0, u64::saturating_add);
    IMAGE_BYTES.check(size, image)
}

/// Rejects two layers with one blob and different descriptions. The blob is read only once, so the order of the layers would
/// decide which description applies.
fn check_repeats(layers: &[LayerSource]) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for (number, layer) in (1..).zip(layers) {
        let facts = (layer.size, layer.compression, layer.diff_id);
        let (first, earlier) = *seen.entry(layer.digest).or_insert((number, facts));
        if earlier != facts {
            let what = match (earlier.0 == facts.0, earlier.1 == facts.1) {
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
