//! Decodes each layer of all images once, in parallel, or takes it from the store.

use std::collections::{BTreeMap, BTreeSet};

use box_cache::{ActionKey, KeyHasher, Refers, Store, StoreError};
use box_contract::ComponentName;
use box_digest::Digest;
use diagnostics::Span;
use oci_image::Image;
use oci_layer::{
    DECODER_EPOCH, IndexError, LayerError, LayerErrorKind, LayerIndex, LayerSource, Limits, Total,
};

use super::inputs::Inputs;
use super::resolved::Resolved;
use super::step::{ReportingReader, Step};
use crate::BuildError;
use crate::pack::{Pack, Segment, SegmentWriter};

/// A decoded layer.
pub(super) struct DecodedLayer {
    pub(super) index: LayerIndex,
    /// The key of the action that decodes the layer.
    pub(super) key: ActionKey,
    pub(super) pack: Pack,
    pub(super) segment: Option<Segment>,
}

impl DecodedLayer {
    /// Returns a layer whose pack is the data of its action.
    const fn new(index: LayerIndex, key: ActionKey, segment: Option<Segment>) -> Self {
        Self { index, key, pack: Pack::Layer(key), segment }
    }

    pub(super) fn segment_pack(&self) -> Option<Pack> {
        self.segment.map(|segment| Pack::Segment { segment, layer: Some(self.key) })
    }
}

/// The record of a decoded layer in the store: the digest of its index, followed by the digest of its segment, if it
/// has one.
pub(super) struct Record {
    pub(super) index: Digest,
    pub(super) segment: Option<Digest>,
}

impl Record {
    fn write(&self, store: &Store, key: &ActionKey) -> Result<(), StoreError> {
        let digests: Vec<_> = [self.index].into_iter().chain(self.segment).collect();
        let bytes: Vec<_> = digests.iter().flat_map(Digest::as_bytes).copied().collect();
        store.record_action(key, &bytes, &Refers::to(&digests))
    }

    /// Reads the record of an action. Returns `None` if the store has no record, or if the record's length is wrong.
    pub(super) fn read(store: &Store, key: &ActionKey) -> Result<Option<Self>, StoreError> {
        let record = store.action(key)?.unwrap_or_default();
        let (digests, rest) = record.as_chunks();
        let mut digests = digests.iter().copied().map(Digest::from_bytes);
        let (index, segment, more) = (digests.next(), digests.next(), digests.next());
        let is_whole = rest.is_empty() && more.is_none();
        Ok(index.filter(|_| is_whole).map(|index| Self { index, segment }))
    }
}

/// A layer to read, its image, and the component that uses the image.
#[derive(Clone, Copy)]
struct Job<'a> {
    component: ComponentName,
    image: &'a Image<'a>,
    layer: &'a LayerSource,
}

impl AsRef<LayerSource> for Job<'_> {
    fn as_ref(&self) -> &LayerSource {
        self.layer
    }
}

/// Returns the decoded layers of all images by their diff_ids. Decodes the layers of which the store has no decoded
/// form.
pub(super) fn decode_all(
    resolved: &Resolved<'_>,
) -> Result<BTreeMap<Digest, DecodedLayer>, BuildError> {
    let Resolved { store, inputs, .. } = resolved;
    let jobs = inputs.images.iter().flat_map(|(component, image)| {
        image.layers.iter().map(|layer| Job { component: *component, image, layer })
    });
    let total = Total::of_blobs(blob_bytes(inputs));
    let recalled =
        total.read(jobs.clone(), |job| match resolved.recall_layer(job.layer, &total)? {
            None => resolved.cached.layer(store, &key(job.layer), &total),
            found => Ok(found),
        })?;
    let is_missing = |job: &Job<'_>| recalled[&job.layer.diff_id].is_none();
    let missing: Vec<_> = jobs.clone().filter(is_missing).collect();
    fetch(resolved, &missing)?;
    if !missing.is_empty() {
        let sizes: BTreeMap<_, _> =
            missing.iter().map(|it| (it.layer.diff_id, it.layer.size)).collect();
        resolved.report(Step::Decode { layers: sizes.len(), bytes: sizes.values().sum() });
    }
    let new = total.read(missing, |job| decode_once(job, resolved, &total))?;
    let known = recalled.into_iter().filter_map(|(id, layer)| Some((id, layer?)));
    let decoded: BTreeMap<_, _> = known.chain(new).collect();
    // The sum includes a layer as often as it occurs in the images.
    Total::of(jobs.map(|job| &decoded[&job.layer.diff_id].index)).check()?;
    Ok(decoded)
}

/// Returns the total size of the layers' blobs in bytes. A blob that occurs several times is included once.
fn blob_bytes(inputs: &Inputs<'_>) -> u64 {
    let layers = inputs.images.iter().flat_map(|(_, image)| &image.layers);
    let blobs: BTreeMap<_, _> = layers.map(|layer| (layer.digest, layer.size)).collect();
    blobs.values().fold(0, |all, size| all.saturating_add(*size))
}

/// Returns the error for a refused layer. If only the sum of all layers is too large, the error names no layer.
pub(super) fn refused(component: ComponentName, span: Span, error: LayerError) -> BuildError {
    match *error.kind {
        LayerErrorKind::Together(excess) => excess.into(),
        _ => BuildError::image(component, span, error),
    }
}

impl Resolved<'_> {
    /// Returns a layer that was decoded before, as [`recall`] does. After [`Self::afresh`], only a layer that this build has
    /// decoded.
    fn recall_layer(
        &self,
        layer: &LayerSource,
        total: &Total,
    ) -> Result<Option<DecodedLayer>, BuildError> {
        let key = key(layer);
        if self.is_afresh && !self.has_decoded(&key) {
            return Ok(None);
        }
        recall(self.store, &key, total)
    }

    /// Fetches the layers that a build would fetch from registries. Returns the layers that were fetched.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn fetch(&self) -> Result<Vec<LayerSource>, BuildError> {
        let Self { store, inputs, .. } = self;
        let mut missing = Vec::new();
        for (component, image) in &inputs.images {
            for layer in &image.layers {
                if !is_decoded(layer, store)? {
                    missing.push(Job { component: *component, image, layer });
                }
            }
        }
        let absent = |job: &&Job<'_>| store.size(&job.layer.digest).is_none();
        let absent: BTreeMap<_, _> =
            missing.iter().filter(absent).map(|job| (job.layer.digest, job.layer)).collect();
        fetch(self, &missing)?;
        // The layers of local images are not copied into the store.
        let fetched = absent.into_values().filter(|layer| store.size(&layer.digest).is_some());
        Ok(fetched.cloned().collect())
    }
}

/// Fetches the layers of `missing` from registries. The layers of one image are fetched in parallel. A diff_id that
/// several images have is fetched only for the first of them.
fn fetch(resolved: &Resolved<'_>, missing: &[Job<'_>]) -> Result<(), BuildError> {
    let Resolved { request, inputs, .. } = resolved;
    let mut seen = BTreeSet::new();
    for (component, image) in &inputs.images {
        let its = missing.iter().filter(|job| job.component == *component).map(|job| job.layer);
        let layers: Vec<_> = its.filter(|layer| seen.insert(layer.diff_id)).collect();
        if !layers.is_empty() {
            let (component, span) = (*component, request.boxfile.root_span(*component));
            let fetched = image.fetch_layers(&layers);
            fetched.map_err(|source| BuildError::image(component, span, source))?;
        }
    }
    Ok(())
}

/// Decodes a layer, unless another build has decoded it in the meantime. Two builds that begin at the same time often
/// need the same layers.
fn decode_once(
    job: &Job<'_>,
    resolved: &Resolved<'_>,
    total: &Total,
) -> Result<DecodedLayer, BuildError> {
    let key = key(job.layer);
    let _lock = resolved.store.lock_action(&key)?;
    match resolved.recall_layer(job.layer, total)? {
        Some(layer) => Ok(layer),
        None => decode_one(job, key, resolved, total),
    }
}

fn decode_one(
    job: &Job<'_>,
    key: ActionKey,
    resolved: &Resolved<'_>,
    total: &Total,
) -> Result<DecodedLayer, BuildError> {
    let Resolved { request, store, .. } = resolved;
    let component = job.component;
    let span = request.boxfile.root_span(component);
    let blob = job
        .image
        .open_layer(job.layer)
        .map_err(|source| BuildError::image(component, span, source))?;
    let blob = ReportingReader { inner: blob, observer: resolved.observer };
    let (index, segment) = std::thread::scope(|scope| {
        let (mut pack, mut segment) = (store.data_writer()?, SegmentWriter::new(store, scope));
        let index = total.decode(job.layer, blob, &mut pack, &mut segment, &Limits::default());
        let index = index.map_err(|error| refused(component, span, error))?;
        resolved.decoded_now(key);
        pack.commit(&key)?;
        Ok::<_, BuildError>((index, segment.commit()?))
    })?;
    let mut stored = store.writer()?;
    index.write(&mut stored).map_err(|error| store.write_error(error))?;
    let (stored, _) = stored.commit()?;
    Record { index: stored, segment: segment.map(|it| it.blob) }.write(store, &key)?;
    Ok(DecodedLayer::new(index, key, segment))
}

/// Removes a decoded layer from the store. Another layer with the same segment loses the segment, and is then decoded
/// again.
pub(super) fn remove(store: &Store, key: &ActionKey) -> Result<(), StoreError> {
    let record = Record::read(store, key)?;
    store.forget(key)?;
    store.remove_data(key)?;
    let Some(Record { index, segment }) = record else { return Ok(()) };
    [index].iter().chain(&segment).try_for_each(|blob| store.remove_blob(blob))
}

/// Returns whether the store has the decoded layer.
pub(super) fn is_decoded(layer: &LayerSource, store: &Store) -> Result<bool, BuildError> {
    Ok(recall(store, &key(layer), &Total::default())?.is_some())
}

/// Returns the keys of the records of all decoded layers.
pub(super) fn keys(inputs: &Inputs<'_>) -> Vec<ActionKey> {
    inputs.images.iter().flat_map(|(_, image)| &image.layers).map(key).collect()
}

/// Returns the key of a decoded layer in the store. The uncompressed bytes alone determine the result, so the
/// compression is not a part of the key.
pub(super) fn key(layer: &LayerSource) -> ActionKey {
    key_of(&layer.diff_id)
}

pub(super) fn key_of(diff_id: &Digest) -> ActionKey {
    KeyHasher::new("decode", DECODER_EPOCH).part(diff_id.as_bytes()).finish()
}

/// Returns a layer that was decoded before, if its index is undamaged and its data and its segment have the sizes that
/// the index requires. Otherwise, returns `None`: the caller decodes the layer again, which repairs the store. The data
/// are verified content by content when they are read. The layer is added to `total` while its index is read.
fn recall(
    store: &Store,
    key: &ActionKey,
    total: &Total,
) -> Result<Option<DecodedLayer>, BuildError> {
    let Some(record) = Record::read(store, key)? else { return Ok(None) };
    let Some(index) = recall_index(store, &record.index, total)? else { return Ok(None) };
    let segment = record.segment.map(|blob| Segment { blob, size: index.segment_size() });
    let layer = DecodedLayer::new(index, *key, segment);
    if !has_data(store, &layer) {
        total.remove(&layer.index);
        return Ok(None);
    }
    Ok(Some(layer))
}

/// Returns whether the store has the layer's data and its segment, each with the expected size.
fn has_data(store: &Store, DecodedLayer { index, key, segment, .. }: &DecodedLayer) -> bool {
    let data = store.open_data(key).ok().and_then(|data| data.metadata().ok());
    let is_segment_there = match segment {
        Some(Segment { blob, size }) => *size > 0 && store.size(blob) == Some(*size),
        None => index.segment.is_empty(),
    };
    is_segment_there && data.is_some_and(|it| it.len() == index.data_size())
}

/// Reads the index of a layer. `None` if the index is missing or damaged.
fn recall_index(
    store: &Store,
    blob: &Digest,
    total: &Total,
) -> Result<Option<LayerIndex>, BuildError> {
    let Some(size) = store.size(blob) else { return Ok(None) };
    let read = || match store.read(blob) {
        Ok(bytes) => Ok(Some(LayerIndex::decode(&bytes, total))),
        Err(StoreError::Damaged { .. } | StoreError::Missing(_)) => Ok(None),
        Err(error) => Err(error),
    };
    match total.with_room(size, read)? {
        Some(Ok(index)) => Ok(Some(index)),
        Some(Err(IndexError::Together(excess))) => Err(excess.into()),
        Some(Err(IndexError::Damaged)) | None => Ok(None),
    }
}
