//! Decoding the layers of all images, each once, in parallel; or taking them from the store.

use std::collections::{BTreeMap, BTreeSet};

use box_cache::{ActionKey, KeyHasher, Store, StoreError};
use box_digest::Digest;
use box_image::ComponentName;
use oci_image::Image;
use oci_layer::{DECODER_EPOCH, LayerIndex, LayerSource, Limits, Total, decode};

use super::inputs::access;
use super::resolved::Resolved;
use super::step::{ReportingReader, Step};
use crate::BuildError;
use crate::pack::Pack;

/// A decoded layer.
pub(super) struct DecodedLayer {
    pub(super) index: LayerIndex,
    pub(super) pack: Pack,
}

/// A layer, and whose it is.
#[derive(Clone, Copy)]
struct Job<'a> {
    component: ComponentName,
    image: &'a Image,
    layer: &'a LayerSource,
}

impl AsRef<LayerSource> for Job<'_> {
    fn as_ref(&self) -> &LayerSource {
        self.layer
    }
}

/// Decodes the layers of all images, or takes them from the store.
pub(super) fn decode_all(
    resolved: &Resolved<'_>,
) -> Result<BTreeMap<Digest, DecodedLayer>, BuildError> {
    let Resolved { store, inputs, .. } = resolved;
    let jobs = inputs.images.iter().flat_map(|(component, image)| {
        image.layers.iter().map(|layer| Job { component: *component, image, layer })
    });
    let total = Total::default();
    let recalled = total.read(
        jobs.clone(),
        |job| recall(store, &key(job.layer)),
        |layer| layer.as_ref().map(|layer| &layer.index),
    )?;
    let is_missing = |job: &Job<'_>| recalled[&job.layer.diff_id].is_none();
    let missing: Vec<_> = jobs.clone().filter(is_missing).collect();
    fetch(resolved, &missing)?;
    if !missing.is_empty() {
        let sizes: BTreeMap<_, _> =
            missing.iter().map(|it| (it.layer.diff_id, it.layer.size)).collect();
        resolved.report(Step::Decode { layers: sizes.len(), bytes: sizes.values().sum() });
    }
    let new = total.read(missing, |job| decode_one(job, resolved), |layer| Some(&layer.index))?;
    let known = recalled.into_iter().filter_map(|(id, layer)| Some((id, layer?)));
    let decoded: BTreeMap<_, _> = known.chain(new).collect();
    // A layer may be there several times.
    Total::of(jobs.map(|job| &decoded[&job.layer.diff_id].index)).check()?;
    Ok(decoded)
}

impl Resolved<'_> {
    /// Fetches the layers that a build would fetch from registries, and returns those that the store
    /// did not have.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn fetch(&self) -> Result<Vec<LayerSource>, BuildError> {
        let Self { store, inputs, .. } = self;
        let mut missing = Vec::new();
        for (component, image) in &inputs.images {
            for layer in &image.layers {
                if recall(store, &key(layer))?.is_none() {
                    missing.push(Job { component: *component, image, layer });
                }
            }
        }
        let absent = |job: &&Job<'_>| store.size(&job.layer.digest).is_none();
        let absent: BTreeMap<_, _> =
            missing.iter().filter(absent).map(|job| (job.layer.digest, job.layer)).collect();
        fetch(self, &missing)?;
        // The layers of local images stay where they are.
        let fetched = absent.into_values().filter(|layer| store.size(&layer.digest).is_some());
        Ok(fetched.cloned().collect())
    }
}

/// Fetches the layers that are to be decoded from a registry: those of an image at once, and each
/// diff_id for the first image that has it.
fn fetch(resolved: &Resolved<'_>, missing: &[Job<'_>]) -> Result<(), BuildError> {
    let Resolved { request, store, inputs, .. } = resolved;
    let mut seen = BTreeSet::new();
    for (component, image) in &inputs.images {
        let its = missing.iter().filter(|job| job.component == *component).map(|job| job.layer);
        let layers: Vec<_> = its.filter(|layer| seen.insert(layer.diff_id)).collect();
        if !layers.is_empty() {
            let (component, span) = (*component, request.boxfile.root_span(*component));
            let fetched = image.fetch_layers(&layers, &access(request, store));
            fetched.map_err(|source| BuildError::image(component, span, source))?;
        }
    }
    Ok(())
}

fn decode_one(job: &Job<'_>, resolved: &Resolved<'_>) -> Result<DecodedLayer, BuildError> {
    let Resolved { request, store, .. } = resolved;
    let (key, component) = (key(job.layer), job.component);
    let span = request.boxfile.root_span(component);
    let blob = job
        .image
        .open_layer(job.layer, &access(request, store))
        .map_err(|source| BuildError::image(component, span, source))?;
    let blob = ReportingReader { inner: blob, observer: resolved.observer };
    let mut data = store.data_writer()?;
    let index = decode(job.layer, blob, &mut data, &Limits::default());
    let index = index.map_err(|source| BuildError::image(component, span, source))?;
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
