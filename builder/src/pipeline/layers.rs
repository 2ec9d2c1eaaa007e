//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::BTreeMap;

use box_cache::{ActionKey, KeyHasher, Store, StoreError};
use box_digest::Digest;
use box_image::ComponentName;
use oci_image::Image;
use oci_layer::{DECODER_EPOCH, LayerIndex, LayerSource, Limits, Total, decode};
use rayon::prelude::*;

use super::declared::image_span;
use super::inputs::access;
use super::request::Request;
use super::resolved::Resolved;
use crate::BuildError;
use crate::pack::Pack;

/// A decoded layer.
pub(super) struct DecodedLayer {
    pub(super) index: LayerIndex,
    pub(super) pack: Pack,
}

/// A layer to decode by its diff_id, and whose it is.
type Job<'a> = (Digest, (ComponentName, &'a Image, &'a LayerSource));

/// Decodes the layers of all images. Of several refused layers, the first by digest is named, however
/// many threads there are, unless there is too much of all of them.
pub(super) fn decode_all(
    resolved: &Resolved<'_>,
) -> Result<BTreeMap<Digest, DecodedLayer>, BuildError> {
    let Resolved { request, store, inputs } = resolved;
    let mut jobs = BTreeMap::new();
    for (component, image) in &inputs.images {
        for layer in &image.layers {
            jobs.entry(layer.diff_id).or_insert((*component, image, layer));
        }
    }
    let jobs: Vec<Job<'_>> = jobs.into_iter().collect();
    let held = Total::default();
    let known = |layer: &LayerSource| {
        held.check()?;
        let layer = recall(store, &key(layer))?;
        layer.iter().for_each(|layer| held.add(&layer.index));
        Ok::<_, BuildError>(layer)
    };
    let recalled: Vec<_> = jobs.par_iter().map(|(_, (.., layer))| known(layer)).collect();
    let (mut decoded, mut missing) = (BTreeMap::new(), Vec::new());
    for ((id, job), recalled) in jobs.into_iter().zip(recalled) {
        match recalled? {
            Some(layer) => drop(decoded.insert(id, layer)),
            None => missing.push((id, job)),
        }
    }
    fetch(resolved, &missing)?;
    // The largest first and each to the first thread that is free, so that none works on alone.
    missing.sort_by_key(|(_, (_, _, layer))| std::cmp::Reverse(layer.size));
    let mut new: Vec<_> = missing
        .into_iter()
        .par_bridge()
        .map(|(id, job)| {
            held.check()?;
            let layer = decode_one(job, request, store);
            layer.iter().for_each(|layer| held.add(&layer.index));
            Ok((id, layer))
        })
        .collect::<Result<_, BuildError>>()?;
    new.sort_by_key(|(id, _)| *id);
    for (id, layer) in new {
        decoded.insert(id, layer?);
    }
    // A layer may be there several times.
    let applied = inputs.images.iter().flat_map(|(_, image)| &image.layers);
    Total::of(applied.map(|layer| &decoded[&layer.diff_id].index)).check()?;
    Ok(decoded)
}

/// Fetches the layers that are to be decoded and lie in a registry: those of an image at once.
fn fetch(resolved: &Resolved<'_>, missing: &[Job<'_>]) -> Result<(), BuildError> {
    let Resolved { request, store, inputs } = resolved;
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
    store.record_action(&key, stored.as_bytes())?;
    Ok(DecodedLayer { index, pack: Pack::Layer(key) })
}

/// Returns `true` if the store has the layer decoded.
pub(super) fn is_decoded(layer: &LayerSource, store: &Store) -> Result<bool, BuildError> {
    Ok(recall(store, &key(layer))?.is_some())
}

/// Returns the key under which the store has a decoded layer: what it decodes to follows from its
/// uncompressed bytes alone, however they were compressed.
fn key(layer: &LayerSource) -> ActionKey {
    KeyHasher::new("decode", DECODER_EPOCH).part(layer.diff_id.as_bytes()).finish()
}

/// Returns a layer that was decoded before, if its index is whole and its data is as long as that
/// says; decoding it again mends what is damaged. The data is verified content by content when it
/// is read.
fn recall(store: &Store, key: &ActionKey) -> Result<Option<DecodedLayer>, BuildError> {
    let Some(record) = store.action(key)? else { return Ok(None) };
    let Ok(index) = <[u8; 32]>::try_from(record) else { return Ok(None) };
    let index = match store.read(&Digest::from_bytes(index)) {
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
    use box_tree::listing::METADATA_BYTES_MAX;
    use oci_layer::{Action, Change, ENTRIES_MAX};

    use super::*;

    /// Adds a layer up that has one change so often, to more than there may be of something.
    fn refused(
        change: &Change,
        changes: usize,
        limit: usize,
        each: fn(&LayerIndex) -> usize,
    ) -> BuildError {
        let index = LayerIndex { changes: vec![change.clone(); changes], contents: Vec::new() };
        let total = Total::default();
        (0..limit / each(&index)).for_each(|_| total.add(&index));
        assert_eq!(total.check(), Ok(()));
        total.add(&index);
        total.check().unwrap_err().into()
    }

    #[test]
    fn entries_are_bounded_over_all_layers() {
        let change = Change { path: b"a".to_vec(), action: Action::Whiteout };
        insta::assert_snapshot!(
            refused(&change, 1024, ENTRIES_MAX, |index| index.changes.len()),
            @"the layers of the images have more than 1048576 entries together"
        );
    }

    #[test]
    fn names_and_attributes_are_bounded_over_all_layers() {
        let mut meta = box_tree::Meta::root_owned(0o755);
        meta.xattrs.insert(b"user.a".to_vec(), vec![0; 65_000]);
        let change = Change { path: b"a".to_vec(), action: Action::Directory(meta) };
        insta::assert_snapshot!(
            refused(&change, 10, METADATA_BYTES_MAX, LayerIndex::cost),
            @"the layers of the images have more than 201326592 bytes of names and attributes together"
        );
    }
}
