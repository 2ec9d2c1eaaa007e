//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use box_cache::{ActionKey, BlobId, KeyHasher, Store, StoreError};
use box_image::{ComponentName, Digest};
use rayon::prelude::*;

use super::Request;
use super::inputs::{Inputs, access, image_span};
use crate::BuildError;
use crate::layer::{
    ALL_INDEX_BYTES, DECODER_EPOCH, ENTRIES_MAX, LayerIndex, LayerSource, Limits, decode,
};
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

/// What the layers have together that are held.
#[derive(Default)]
struct Held {
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

impl Held {
    fn add(&self, layer: &DecodedLayer) {
        self.entries.fetch_add(layer.entries(), Ordering::Relaxed);
        self.bytes.fetch_add(layer.index.cost(), Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), BuildError> {
        check_entries(self.entries.load(Ordering::Relaxed))?;
        check_bytes(self.bytes.load(Ordering::Relaxed))
    }
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
    let held = Held::default();
    let known = |layer: &LayerSource| {
        held.check()?;
        let key = key(layer);
        let layer = if Some(key) == stale { None } else { recall(store, &key)? };
        layer.iter().for_each(|layer| held.add(layer));
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
    fetch(inputs, &missing, request, store)?;
    // The largest first and each to the first thread that is free, so that none works on alone.
    missing.sort_by_key(|(_, (_, _, layer))| std::cmp::Reverse(layer.size));
    let mut new: Vec<_> = missing
        .into_iter()
        .par_bridge()
        .map(|(id, job)| {
            held.check()?;
            let layer = decode_one(job, request, store);
            layer.iter().for_each(|layer| held.add(layer));
            Ok((id, layer))
        })
        .collect::<Result<_, BuildError>>()?;
    new.sort_by_key(|(id, _)| *id);
    for (id, layer) in new {
        decoded.insert(id, layer?);
    }
    // A layer may be there several times.
    let applied = || inputs.images.iter().flat_map(|(_, image)| &image.layers);
    check_entries(applied().map(|layer| decoded[&id(layer)].entries()).sum())?;
    check_bytes(applied().map(|layer| decoded[&id(layer)].index.cost()).sum())?;
    Ok(decoded)
}

/// Refuses what would take more memory than a build may: the layers' entries are all held at once.
const fn check_entries(entries: usize) -> Result<(), BuildError> {
    if entries > ENTRIES_MAX { Err(BuildError::Entries { limit: ENTRIES_MAX }) } else { Ok(()) }
}

/// Refuses layers whose names and attributes take more memory than a build may. A listing can tell of
/// whatever is below it.
const fn check_bytes(bytes: usize) -> Result<(), BuildError> {
    let limit = ALL_INDEX_BYTES;
    if bytes > limit { Err(BuildError::IndexBytes { limit }) } else { Ok(()) }
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

    #[test]
    fn names_and_attributes_are_bounded_over_all_layers() {
        let mut meta = crate::tree::Meta::root_owned(0o755);
        meta.xattrs.insert(b"user.a".to_vec(), vec![0; 65_000]);
        let action = crate::layer::Action::Directory(meta);
        let change = crate::layer::Change { path: b"a".to_vec(), action };
        let index = LayerIndex { changes: vec![change; 10], contents: Vec::new() };
        let layer = DecodedLayer { index, pack: Pack::Layer(KeyHasher::new("test", 1).finish()) };
        let held = Held::default();
        let fit = ALL_INDEX_BYTES / layer.index.cost();
        (0..fit).for_each(|_| held.add(&layer));
        assert!(held.check().is_ok());
        held.add(&layer);
        insta::assert_snapshot!(
            held.check().unwrap_err(),
            @"the layers of the images have more than 201326592 bytes of names and attributes together"
        );
    }
}
