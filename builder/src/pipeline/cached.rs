//! Layers that another host decoded: what a build takes of them, and what it offers to others.
//!
//! The stored form of a layer is the length of its index as a little-endian u64, the index, and the layer's pack. The segment is
//! not a part of it: a build needs its digest and its size only.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use box_cache::{ActionKey, Store, StoreError};
use box_digest::Digest;
use oci_layer::{LayerIndex, LayerSource, Limits, Total};

use super::layers::{self, DecodedLayer, Record};
use super::resolved::Resolved;
use super::root::root;
use crate::BuildError;
use crate::heads::Heads;
use crate::pack::{Pack, Segment};

/// The maximum size of a segment in bytes: 1 TiB. The sizes of all segments are added.
const MAX_SEGMENT: u64 = 1 << 40;

/// A layer that another host decoded.
#[derive(Debug, Clone)]
pub struct CachedLayer {
    /// The stored form of the layer.
    pub bytes: Arc<Vec<u8>>,
    /// The layer's segment, if it has one.
    pub segment: Option<Segment>,
    /// Whether a box can have the segment although this host lacks it. A box needs no segment of a layer whose large files are
    /// all hidden by other layers.
    pub is_segment_elsewhere: bool,
}

/// Layers that another host decoded, and the heads of their segments.
///
/// They cannot be compared with the layers themselves, so whoever provides them decides what is in the box. A box that was built
/// with them is therefore no result of this host: see [`Build::has_cached_layers`](super::Build).
#[derive(Debug, Default)]
pub struct CachedLayers {
    layers: Mutex<BTreeMap<ActionKey, CachedLayer>>,
    heads: Arc<Heads>,
    /// Whether a layer was read.
    is_used: AtomicBool,
}

impl CachedLayers {
    /// Returns the layers with these diff_ids. `heads` is the stored form of the heads. Heads in another form are ignored.
    pub fn new(layers: impl IntoIterator<Item = (Digest, CachedLayer)>, heads: &[u8]) -> Self {
        let layers = layers.into_iter().map(|(diff_id, it)| (layers::key_of(&diff_id), it));
        let heads = Arc::new(Heads::decode(heads).unwrap_or_default());
        Self { layers: Mutex::new(layers.collect()), heads, is_used: AtomicBool::new(false) }
    }

    pub(super) fn heads(&self) -> Arc<Heads> {
        Arc::clone(&self.heads)
    }

    /// Returns whether the layer of an action is one of these. `Some(true)` if a box can have its segment.
    pub(super) fn has(&self, key: &ActionKey) -> Option<bool> {
        self.lock().get(key).map(|it| it.is_segment_elsewhere)
    }

    /// Returns whether the build has read one of the layers.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Forgets a layer. It is then decoded from its blob.
    pub(super) fn forget(&self, key: &ActionKey) {
        self.lock().remove(key);
    }

    /// Returns the layer of an action, and puts its pack into the store. `None` if there is no such layer, or if its stored form
    /// is malformed: the layer is then decoded from its blob.
    pub(super) fn layer(
        &self,
        store: &Store,
        key: &ActionKey,
        total: &Total,
    ) -> Result<Option<DecodedLayer>, BuildError> {
        let Some(CachedLayer { bytes, segment, .. }) = self.lock().get(key).cloned() else {
            return Ok(None);
        };
        self.is_used.store(true, Ordering::Relaxed);
        let read = split(&bytes).and_then(|(index, pack)| {
            let index = LayerIndex::decode(index, total).ok()?;
            if is_of(&index, pack, segment) && index.is_normal(&Limits::default()) {
                return Some((index, pack));
            }
            total.remove(&index);
            None
        });
        let Some((index, pack)) = read else {
            self.forget(key);
            return Ok(None);
        };
        let pack = Pack::Blob(store.put(pack)?);
        Ok(Some(DecodedLayer { index, key: *key, pack, segment }))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ActionKey, CachedLayer>> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Divides the stored form of a layer into its index and its pack.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Returns whether the pack and the segment have the sizes that the index requires.
fn is_of(index: &LayerIndex, pack: &[u8], segment: Option<Segment>) -> bool {
    let size = segment.map_or(0, |it| it.size);
    size <= MAX_SEGMENT
        && index.data_size() == pack.len() as u64
        && index.segment_size() == size
        && index.segment.is_empty() == segment.is_none()
}

impl Resolved<'_> {
    /// Returns the diff_ids of the layers that a build would decode, without duplicates.
    ///
    /// # Errors
    /// [`BuildError`], if the store cannot be read.
    pub fn undecoded(&self) -> Result<Vec<Digest>, BuildError> {
        let mut missing = BTreeSet::new();
        for layer in self.layer_sources() {
            if self.is_afresh || !layers::is_decoded(layer, self.store)? {
                missing.insert(layer.diff_id);
            }
        }
        Ok(missing.into_iter().collect())
    }

    /// Returns the stored form of the heads of a built box. Composes the root again, because a box that was taken from the store has
    /// read no heads.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn heads(&self) -> Result<Vec<u8>, BuildError> {
        Ok(self.retry_damaged(|| root(self))?.contents.heads().encode())
    }

    /// Returns the diff_ids of all layers, sorted and without duplicates.
    pub fn diff_ids(&self) -> Vec<Digest> {
        let ids: BTreeSet<_> = self.layer_sources().map(|it| it.diff_id).collect();
        ids.into_iter().collect()
    }

    /// Returns a layer in the form that other hosts can use. `None` if this host has not decoded it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn decoded_layer(&self, diff_id: &Digest) -> Result<Option<CachedLayer>, StoreError> {
        stored_form(self.store, &layers::key_of(diff_id))
    }

    fn layer_sources(&self) -> impl Iterator<Item = &LayerSource> {
        self.inputs.images.iter().flat_map(|(_, image)| &image.layers)
    }
}

/// Returns the stored form of a layer that the store has.
fn stored_form(store: &Store, key: &ActionKey) -> Result<Option<CachedLayer>, StoreError> {
    let Some(Record { index, segment }) = Record::read(store, key)? else { return Ok(None) };
    let index = store.read(&index)?;
    let mut bytes = (index.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(&index);
    let mut data = store.open_data(key)?;
    data.read_to_end(&mut bytes).map_err(|error| store.write_error(error))?;
    let segment = segment.and_then(|blob| Some(Segment { blob, size: store.size(&blob)? }));
    Ok(Some(CachedLayer { bytes: Arc::new(bytes), segment, is_segment_elsewhere: false }))
}

#[cfg(test)]
mod tests {
    use box_tree::{Content, Leaf, Meta};
    use oci_layer::{Action, Change};

    use super::*;

    /// Returns the stored form of a layer with one small file.
    fn stored(path: &[u8], pack: &[u8]) -> Vec<u8> {
        let content = Content::of(b"small");
        let action = Action::Leaf(Meta::root_owned(0o644), Leaf::File(content));
        let changes = vec![Change { path: path.to_vec(), action }];
        let contents = vec![(content, 0)];
        let index = LayerIndex { changes, contents, segment: Vec::new(), archive_size: 10 };
        let mut bytes = Vec::new();
        index.write(&mut bytes).unwrap();
        [&(bytes.len() as u64).to_le_bytes(), bytes.as_slice(), pack].concat()
    }

    /// Reads a layer, and returns its index and whether it is still known.
    fn read(bytes: Vec<u8>, segment: Option<Segment>) -> (Option<LayerIndex>, bool) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let diff_id = Digest::of(b"layer");
        let (key, layer) = (
            layers::key_of(&diff_id),
            CachedLayer { bytes: Arc::new(bytes), segment, is_segment_elsewhere: true },
        );
        let cached = CachedLayers::new([(diff_id, layer)], b"no heads");
        let layer = cached.layer(&store, &key, &Total::default()).unwrap();
        (layer.map(|it| it.index), cached.has(&key).is_some())
    }

    #[test]
    fn a_layer_is_read_and_a_malformed_one_is_forgotten() {
        let right = stored(b"etc/small", b"small");
        let (index, is_known) = read(right.clone(), None);
        assert!(is_known && index.unwrap().changes[0].path == b"etc/small");
        let segment = Segment { blob: Digest::of(b"segment"), size: 1 << 20 };
        for (bytes, segment) in [
            (stored(b"etc/small", b"longer"), None),
            (stored(b"etc/../small", b"small"), None),
            (stored(b"/etc/small", b"small"), None),
            (right.clone(), Some(segment)),
            (Vec::new(), None),
            (u64::MAX.to_le_bytes().to_vec(), None),
        ] {
            assert_eq!(read(bytes, segment), (None, false));
        }
        for end in 0..right.len() {
            assert_eq!(read(right[..end].to_vec(), None).0, None, "{end}");
        }
    }
}
