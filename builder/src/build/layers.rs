//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::BTreeMap;

use box_cache::{ActionKey, BlobId, KeyHasher, Store, StoreError};
use box_image::{ComponentName, Digest};
use boxfile_spec::Boxfile;
use rayon::prelude::*;

use super::inputs::{Inputs, image_span};
use crate::BuildError;
use crate::layer::{DECODER_EPOCH, LayerIndex, LayerSource, Limits, decode};
use crate::pack::Pack;
use crate::source::Image;

/// What identifies a layer: the blob and what its image's config says of its content.
pub(super) type LayerId = (Digest, Digest);

/// A decoded layer.
pub(super) struct DecodedLayer {
    pub(super) index: LayerIndex,
    pub(super) pack: Pack,
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
    let mut jobs: Vec<Job<'_>> = jobs.into_iter().collect();
    // The largest first and each to the first thread that is free, so that none works on alone.
    jobs.sort_by_key(|(_, (_, _, layer))| std::cmp::Reverse(layer.size));
    let mut decoded: Vec<_> = jobs
        .into_iter()
        .par_bridge()
        .map(|(id, job)| (id, decode_one(job, boxfile, store, limits)))
        .collect();
    decoded.sort_by_key(|(id, _)| *id);
    decoded.into_iter().map(|(id, layer)| Ok((id, layer?))).collect()
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
    let mut data = store.data_writer()?;
    let index = decode(layer, blob, &mut data, limits);
    let index = index.map_err(|source| BuildError::Layer { component, span, source })?;
    data.commit(&key)?;
    let stored = store.put(&index.encode())?;
    store.record_action(&key, &stored.0)?;
    Ok(DecodedLayer { index, pack: Pack::Layer(key) })
}

/// Tells whether a layer was decoded before.
pub(super) fn is_decoded(layer: &LayerSource, store: &Store) -> Result<bool, BuildError> {
    Ok(recall(store, &key(layer))?.is_some())
}

fn key(layer: &LayerSource) -> ActionKey {
    KeyHasher::new("decode", DECODER_EPOCH)
        .part(layer.digest.as_bytes())
        .part(layer.diff_id.as_bytes())
        .part(format!("{:?}", layer.compression).as_bytes())
        .finish()
}

/// Returns a layer that was decoded before, if its index is whole and its data is as long as that
/// says; decoding it again mends what is damaged. The data is verified content by content when it
/// is read.
fn recall(store: &Store, key: &ActionKey) -> Result<Option<DecodedLayer>, BuildError> {
    let Some(record) = store.action(key)? else { return Ok(None) };
    let Ok(index) = <[u8; 32]>::try_from(record) else { return Ok(None) };
    let index = match store.read(&BlobId(index)) {
        Ok(index) => LayerIndex::decode(&index).ok(),
        Err(StoreError::Damaged { .. } | StoreError::Missing(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let size = store.open_data(key).ok().and_then(|data| data.metadata().ok());
    let whole = |index: &LayerIndex| size.is_some_and(|it| it.len() == index.data_size());
    Ok(index.filter(whole).map(|index| DecodedLayer { index, pack: Pack::Layer(*key) }))
}
