//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::BTreeMap;

use box_cache::{ActionKey, BlobId, KeyHasher, Store, StoreError};
use box_image::{ComponentName, Digest};
use boxfile_spec::Boxfile;
use rayon::prelude::*;

use super::inputs::{Inputs, image_span};
use crate::BuildError;
use crate::layer::{DECODER_EPOCH, LayerIndex, LayerSource, Limits, decode};
use crate::source::Image;

/// What identifies a layer: the blob and what its image's config says of its content.
pub(super) type LayerId = (Digest, Digest);

/// A decoded layer.
pub(super) struct DecodedLayer {
    pub(super) index: LayerIndex,
    pub(super) pack: BlobId,
}

/// Returns what identifies a layer.
pub(super) const fn id(layer: &LayerSource) -> LayerId {
    (layer.digest, layer.diff_id)
}

/// A layer to decode, and whose it is.
type Job<'a> = (LayerId, (ComponentName, &'a Image, &'a LayerSource));

/// Decodes the layers of all images. Of several errors, the first by layer digest is returned,
/// however many threads there are.
pub(super) fn decode_all(
    inputs: &Inputs,
    boxfile: &Boxfile,
    store: &Store,
    limits: &Limits,
) -> Result<BTreeMap<LayerId, DecodedLayer>, BuildError> {
    let mut jobs = BTreeMap::new();
    for (component, image) in &inputs.images {
        for layer in &image.layers {
            jobs.entry(id(layer)).or_insert((*component, image, layer));
        }
    }
    let jobs: Vec<Job<'_>> = jobs.into_iter().collect();
    let decoded: Vec<_> = jobs
        .par_iter()
        .map(|(id, job)| decode_one(*job, boxfile, store, limits).map(|layer| (*id, layer)))
        .collect();
    decoded.into_iter().collect()
}

fn decode_one(
    (component, image, layer): (ComponentName, &Image, &LayerSource),
    boxfile: &Boxfile,
    store: &Store,
    limits: &Limits,
) -> Result<DecodedLayer, BuildError> {
    let key = key(layer);
    if let Some(decoded) = recall(store, &key)? {
        return Ok(decoded);
    }
    let span = image_span(boxfile, component);
    let blob =
        image.open_layer(layer).map_err(|source| BuildError::Image { component, span, source })?;
    let (index, pack) = decode(layer, blob, store, limits).map_err(|source| BuildError::Layer {
        component,
        span,
        source,
    })?;
    let stored = store.put(&index.encode())?;
    store.record_action(&key, &[stored.0, pack.0].concat())?;
    Ok(DecodedLayer { index, pack })
}

fn key(layer: &LayerSource) -> ActionKey {
    KeyHasher::new("decode", DECODER_EPOCH)
        .part(layer.digest.as_bytes())
        .part(layer.diff_id.as_bytes())
        .part(format!("{:?}", layer.compression).as_bytes())
        .finish()
}

/// Returns a layer that was decoded before, if its index is whole and its pack is there; decoding
/// it again mends a damaged index. The pack is verified content by content when it is read.
fn recall(store: &Store, key: &ActionKey) -> Result<Option<DecodedLayer>, BuildError> {
    let Some(record) = store.action(key)? else { return Ok(None) };
    let (Some(index), Some(pack)) = (blob(&record, 0), blob(&record, 32)) else { return Ok(None) };
    if store.size(&pack).is_none() {
        return Ok(None);
    }
    match store.read(&index) {
        Ok(index) => Ok(LayerIndex::decode(&index).ok().map(|index| DecodedLayer { index, pack })),
        Err(StoreError::Damaged { .. } | StoreError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn blob(record: &[u8], offset: usize) -> Option<BlobId> {
    record.get(offset..)?.first_chunk().map(|bytes| BlobId(*bytes))
}
