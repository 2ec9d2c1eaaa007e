//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use box_cache::{ActionKey, BlobId, KeyHasher, Store, StoreError};
use box_image::{ComponentName, Digest};
use rayon::prelude::*;

use super::Request;
use super::inputs::{Inputs, access, image_span};
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

impl DecodedLayer {
    fn entries(&self) -> usize {
        self.index.changes.len()
    }
}

/// How many entries the layers may have together. Real images have a tenth of it.
const ENTRIES_MAX: usize = 1 << 20;

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
    request: &Request<'_>,
    stale: Option<ActionKey>,
    store: &Store,
) -> Result<BTreeMap<LayerId, DecodedLayer>, BuildError> {
    let mut jobs = BTreeMap::new();
    for (component, image) in &inputs.images {
        for layer in &image.layers {
            jobs.entry(id(layer)).or_insert((*component, image, layer));
        }
    }
    let jobs: Vec<Job<'_>> = jobs.into_iter().collect();
    let known = |layer: &LayerSource| match key(layer) {
        key if Some(key) == stale => Ok(None),
        key => recall(store, &key),
    };
    let recalled: Vec<_> = jobs.par_iter().map(|(_, (.., layer))| known(layer)).collect();
    let (mut decoded, mut missing) = (BTreeMap::new(), Vec::new());
    for ((id, job), recalled) in jobs.into_iter().zip(recalled) {
        match recalled? {
            Some(layer) => drop(decoded.insert(id, layer)),
            None => missing.push((id, job)),
        }
    }
    fetch(inputs, &missing, request, store)?;
    // The largest first and each to the first thread that is free, so that none works on alone.
    missing.sort_by_key(|(_, (_, _, layer))| std::cmp::Reverse(layer.size));
    let entries = AtomicUsize::new(decoded.values().map(DecodedLayer::entries).sum());
    let mut new: Vec<_> = missing
        .into_iter()
        .par_bridge()
        .map(|(id, job)| {
            check_entries(entries.load(Ordering::Relaxed))?;
            let layer = decode_one(job, request, store);
            entries.fetch_add(layer.as_ref().map_or(0, DecodedLayer::entries), Ordering::Relaxed);
            Ok((id, layer))
        })
        .collect::<Result<_, BuildError>>()?;
    new.sort_by_key(|(id, _)| *id);
    for (id, layer) in new {
        decoded.insert(id, layer?);
    }
    for (_, image) in &inputs.images {
        // A layer may be there several times.
        check_entries(image.layers.iter().map(|layer| decoded[&id(layer)].entries()).sum())?;
    }
    Ok(decoded)
}

/// Refuses what would take more memory than a build may: the layers' entries are all held at once.
const fn check_entries(entries: usize) -> Result<(), BuildError> {
    if entries > ENTRIES_MAX { Err(BuildError::Entries { limit: ENTRIES_MAX }) } else { Ok(()) }
}

/// Fetches the layers that are to be decoded and lie in a registry: those of an image at once.
fn fetch(
    inputs: &Inputs,
    missing: &[Job<'_>],
    request: &Request<'_>,
    store: &Store,
) -> Result<(), BuildError> {
    for (component, image) in &inputs.images {
        let its = missing.iter().filter(|(_, (owner, ..))| owner == component);
        let layers: Vec<_> = its.map(|(_, (.., layer))| *layer).collect();
        if !layers.is_empty() {
            let (component, span) = (*component, image_span(request.boxfile, *component));
            let fetched = image.fetch_layers(&layers, &access(request, store));
            fetched.map_err(|source| BuildError::Image { component, span, source })?;
        }
    }
    Ok(())
}

fn decode_one(
    (component, image, layer): (ComponentName, &Image, &LayerSource),
    request: &Request<'_>,
    store: &Store,
) -> Result<DecodedLayer, BuildError> {
    let key = key(layer);
    let span = image_span(request.boxfile, component);
    let blob = image
        .open_layer(layer, &access(request, store))
        .map_err(|source| BuildError::Image { component, span, source })?;
    let mut data = store.data_writer()?;
    let index = decode(layer, blob, &mut data, &Limits::default());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_bounded_over_all_layers() {
        assert!(check_entries(ENTRIES_MAX).is_ok());
        let error = check_entries(ENTRIES_MAX + 1).unwrap_err();
        insta::assert_snapshot!(
            error,
            @"the layers of the images have more than 1048576 entries together"
        );
    }
}
