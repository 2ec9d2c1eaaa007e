//! The layers that a manifest names, before any of them is fetched or opened.

use std::collections::BTreeMap;

use box_digest::Digest;
use oci_layer::LayerSource;
use oci_spec::image::{Descriptor, ImageConfiguration, ImageManifest};

use super::documents::{Blob, sha256};
use super::error::SourceError;
use super::place::Blobs;
use super::{config, media};

/// Images have some ten layers; Docker makes at most 127.
pub(super) const LAYERS_MAX: usize = 256;
/// Bytes of the blob of one layer. Registries bound it, too: many at 10 GiB.
const LAYER_BYTES_MAX: u64 = 16 << 30;
/// Bytes of the blobs of all layers of an image, each as often as it is named.
const IMAGE_BYTES_MAX: u64 = 64 << 30;

/// Returns the layers of an image, the lowest first.
pub(super) fn layers(
    blobs: &dyn Blobs,
    manifest: &ImageManifest,
    config: &ImageConfiguration,
) -> Result<Vec<LayerSource>, SourceError> {
    let (place, count) = (|| blobs.title(), manifest.layers().len());
    if count > LAYERS_MAX {
        return Err(too_many(&place(), count));
    }
    config::check(config, count).map_err(|why| SourceError::inconsistent(&place(), &why))?;
    check_sizes(blobs, manifest.layers())?;
    let both = manifest.layers().iter().zip(config.rootfs().diff_ids());
    let layers =
        (1..).zip(both).map(|(number, (named, id))| layer(blobs, number, named, sha256(id)));
    let layers = layers.collect::<Result<Vec<_>, _>>()?;
    check_repeats(&layers).map_err(|why| SourceError::inconsistent(&place(), &why))?;
    Ok(layers)
}

fn layer(
    blobs: &dyn Blobs,
    number: usize,
    named: &Descriptor,
    diff_id: Digest,
) -> Result<LayerSource, SourceError> {
    let (Blob { digest, size }, media_type) = (Blob::of(named), named.media_type().as_ref());
    let compression = media::compression(media_type).map_err(|why| {
        let (place, media_type) = (blobs.title(), media_type.to_owned());
        SourceError::LayerType { place, number, media_type, why }
    })?;
    Ok(LayerSource { digest, size, compression, diff_id })
}

/// Returns the error of an image with too many layers.
pub(super) fn too_many(place: &str, layers: usize) -> SourceError {
    SourceError::TooLarge {
        at: format!("the image in {place}"),
        what: "an image",
        found: layers as u64,
        unit: "layers",
        limit: LAYERS_MAX as u64,
    }
}

/// Refuses what would fill a disk: as many bytes are fetched as a manifest names.
fn check_sizes(blobs: &dyn Blobs, layers: &[Descriptor]) -> Result<(), SourceError> {
    for (number, size) in (1..).zip(layers.iter().map(Descriptor::size)) {
        if size > LAYER_BYTES_MAX {
            let at = format!("layer {number} of the image in {}", blobs.title());
            let (what, unit, limit) = ("a layer", "bytes", LAYER_BYTES_MAX);
            return Err(SourceError::TooLarge { at, what, found: size, unit, limit });
        }
    }
    let size = layers.iter().map(Descriptor::size).fold(0, u64::saturating_add);
    if size > IMAGE_BYTES_MAX {
        let at = format!("the image in {}", blobs.title());
        let (what, unit, limit) = ("an image", "bytes of layers", IMAGE_BYTES_MAX);
        return Err(SourceError::TooLarge { at, what, found: size, unit, limit });
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
