//! Reads several layers in parallel, within limits for all layers of a build together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use box_digest::Digest;
use box_tree::listing::MAX_METADATA_BYTES;
use box_tree::memory::{MAX_LAYERS, directories};
use box_tree::path::split;
use rayon::prelude::*;

use super::limits::name_memory;
use super::path::Directories;
use super::room::Room;
use super::{Change, Excess, LayerIndex, LayerSource};

/// The maximum number of entries of all layers of a build. A layer that is applied twice is included
/// twice. Real images have a tenth of this.
pub const MAX_ENTRIES: usize = 1 << 20;

/// The uncompressed size that the layers of a build may have even if their blobs are small, in bytes. The store keeps the data up
/// to twice: small files in the layer and in the metadata of the rootfs, larger files once, padded to blocks.
pub const SMALL_UNPACKED_BYTES: u64 = 896 << 20;
/// The maximum ratio of the uncompressed size of a build's layers to the size of their blobs, beyond
/// [`SMALL_UNPACKED_BYTES`]. Real images have a ratio of 2 to 5.
pub const UNPACKED_GROWTH: u64 = 48;

/// The sizes of several layers together. Several threads may add to it.
#[derive(Debug)]
pub struct Total {
    entries: AtomicUsize,
    bytes: AtomicUsize,
    memory: AtomicUsize,
    unpacked: AtomicU64,
    unpacked_max: u64,
    pub(super) room: Room,
}

impl Default for Total {
    /// Returns a total that does not limit the size of archives, for layers whose data are not kept.
    fn default() -> Self {
        Self {
            entries: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            unpacked: AtomicU64::new(0),
            unpacked_max: u64::MAX,
            room: Room::default(),
        }
    }
}

impl Total {
    /// Returns a total for layers whose distinct blobs have `bytes` bytes together, which limits their uncompressed size.
    pub fn of_blobs(bytes: u64) -> Self {
        let unpacked_max = bytes.saturating_mul(UNPACKED_GROWTH).max(SMALL_UNPACKED_BYTES);
        Self { unpacked_max, ..Self::default() }
    }

    /// Returns the total of the entries, names and attributes of layers that are applied one after the other.
    pub fn of<'a>(layers: impl IntoIterator<Item = &'a LayerIndex>) -> Self {
        let total = Self::default();
        for layer in layers {
            total.entries.fetch_add(layer.changes.len(), Ordering::Relaxed);
            total.bytes.fetch_add(layer.cost(), Ordering::Relaxed);
        }
        total
    }

    /// Subtracts a layer that was added and is not used after all.
    pub fn remove(&self, layer: &LayerIndex) {
        let mut directories = Directories::default();
        for change in &layer.changes {
            let memory = change_memory(change, directories.implied_by(change));
            self.entries.fetch_sub(1, Ordering::Relaxed);
            self.bytes.fetch_sub(change.cost(), Ordering::Relaxed);
            self.memory.fetch_sub(memory, Ordering::Relaxed);
        }
        self.unpacked.fetch_sub(layer.archive_size, Ordering::Relaxed);
    }

    /// Waits until `bytes` bytes of memory are free, and reserves them while `work` runs.
    pub fn with_room<T>(&self, bytes: u64, work: impl FnOnce() -> T) -> T {
        let _room = self.room.take(bytes);
        work()
    }

    /// Adds a change, and the number of directories that it implies.
    ///
    /// # Errors
    /// [`Excess`].
    pub(super) fn add_change(&self, change: &Change, implied: usize) -> Result<(), Excess> {
        self.entries.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(change.cost(), Ordering::Relaxed);
        self.add_memory(change_memory(change, implied))?;
        self.check()
    }

    /// Adds bytes of memory.
    ///
    /// # Errors
    /// [`Excess`].
    pub(super) fn add_memory(&self, bytes: usize) -> Result<(), Excess> {
        self.memory.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// Adds bytes of an archive.
    ///
    /// # Errors
    /// [`Excess`].
    pub(super) fn unpack(&self, bytes: u64) -> Result<(), Excess> {
        self.unpacked.fetch_add(bytes, Ordering::Relaxed);
        self.check()
    }

    /// Checks that the total is within all limits.
    ///
    /// # Errors
    /// [`Excess`].
    pub fn check(&self) -> Result<(), Excess> {
        let within = |count: &AtomicUsize, limit: usize, what| {
            let found = count.load(Ordering::Relaxed);
            if found > limit { Err(excess(what, limit as u64)) } else { Ok(()) }
        };
        within(&self.entries, MAX_ENTRIES, "entries")?;
        // Names and attributes within this bound fit into a listing.
        within(&self.bytes, MAX_METADATA_BYTES, "bytes of names and attributes")?;
        let what = "bytes of memory for their entries and directories";
        within(&self.memory, MAX_LAYERS, what).map_err(|it| Excess { needs: true, ..it })?;
        if self.unpacked.load(Ordering::Relaxed) > self.unpacked_max {
            return Err(excess("bytes when they are uncompressed", self.unpacked_max));
        }
        Ok(())
    }

    /// Reads layers in parallel, and only the first of each diff_id. `read` must add each layer to this total. After a limit
    /// is exceeded, no further layer is begun.
    ///
    /// # Errors
    /// [`Excess`], or else the error of the first layer by diff_id, independent of the number of threads.
    pub fn read<L: AsRef<LayerSource> + Send, T: Send, E: From<Excess> + Send>(
        &self,
        layers: impl IntoIterator<Item = L>,
        read: impl Fn(&L) -> Result<T, E> + Sync,
    ) -> Result<BTreeMap<Digest, T>, E> {
        let mut distinct = BTreeMap::new();
        for layer in layers {
            distinct.entry(layer.as_ref().diff_id).or_insert(layer);
        }
        let mut layers: Vec<_> = distinct.into_iter().collect();
        // The largest layers first, each on the first free thread, so that no thread has a large layer alone at the end.
        layers.sort_by_key(|(_, layer)| Reverse(layer.as_ref().size));
        let read_one = |(id, layer): (Digest, L)| {
            self.check()?;
            Ok((id, read(&layer)))
        };
        let read = layers.into_iter().par_bridge().map(read_one);
        let read = read.collect::<Result<BTreeMap<_, Result<T, E>>, E>>()?;
        read.into_iter().map(|(id, read)| Ok((id, read?))).collect()
    }
}

/// Returns the memory of a change and of the `implied` directories, in bytes.
fn change_memory(change: &Change, implied: usize) -> usize {
    let (_, name) = split(&change.path);
    let path = change.path.len() + name_memory(name);
    path + change.action.memory() + directories(implied)
}

/// Returns the error of layers that have more than `limit` of `what`.
const fn excess(what: &'static str, limit: u64) -> Excess {
    Excess { what, limit, needs: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Change, Compression, IndexError};

    fn layer(number: u8) -> LayerSource {
        let digest = Digest::from_bytes([number; 32]);
        LayerSource { digest, size: 1, compression: Compression::None, diff_id: digest }
    }

    /// Reads layers, each with `entries` of this path. Returns how many were read, and the result of applying all of them.
    fn read_all(
        layers: &[LayerSource],
        entries: usize,
        path: &[u8],
    ) -> (usize, Result<(), Excess>) {
        let (calls, total) = (AtomicUsize::new(0), Total::default());
        let read = |_: &&LayerSource| {
            calls.fetch_add(1, Ordering::Relaxed);
            let change = Change { path: path.to_vec(), action: Action::Whiteout };
            (0..entries).try_for_each(|_| total.add_change(&change, 0))?;
            Ok(LayerIndex { changes: vec![change; entries], ..LayerIndex::default() })
        };
        let found = total
            .read(layers, read)
            .and_then(|found| Total::of(layers.iter().map(|layer| &found[&layer.diff_id])).check());
        (calls.into_inner(), found)
    }

    #[test]
    fn a_layer_that_is_there_again_is_read_once() {
        let layers = [layer(1), layer(2), layer(1), layer(1)];
        assert_eq!(read_all(&layers, 3, b""), (2, Ok(())));
    }

    #[test]
    fn entries_are_bounded_over_all_layers() {
        let again = vec![layer(1); 256];
        assert_eq!(read_all(&again, MAX_ENTRIES / 256, b""), (1, Ok(())));
        let (calls, refused) = read_all(&again, MAX_ENTRIES / 256 + 1, b"");
        assert_eq!(calls, 1);
        insta::assert_snapshot!(
            refused.unwrap_err(),
            @"the layers have more than 1048576 entries together"
        );
        // After the limit is exceeded, only the layers that other threads have begun are read.
        let many: Vec<_> = (0..=255).map(layer).collect();
        let (calls, refused) = read_all(&many, MAX_ENTRIES / 8, b"");
        assert!(calls < 9 + rayon::current_num_threads(), "{calls}");
        assert!(refused.is_err());
    }

    #[test]
    fn names_and_attributes_are_bounded_over_all_layers() {
        let (calls, refused) = read_all(&vec![layer(1); 256], 1 << 10, &[b'n'; 1 << 10]);
        assert_eq!(calls, 1);
        insta::assert_snapshot!(
            refused.unwrap_err(),
            @"the layers have more than 201326592 bytes of names and attributes together"
        );
    }

    #[test]
    fn directories_that_no_entry_names_take_memory() {
        let deep = [b"d/".repeat(200), b"f".to_vec()].concat();
        let change = |number: usize| {
            let path = [format!("{number}/").into_bytes(), deep.clone()].concat();
            Change { path, action: Action::HardLink(b"f".to_vec()) }
        };
        let (total, mut directories) = (Total::default(), Directories::default());
        let add = |number| {
            let change = change(number);
            total.add_change(&change, directories.implied_by(&change))
        };
        let refused = (0..10_000).map(add).find_map(Result::err).unwrap();
        insta::assert_snapshot!(
            refused,
            @"the layers need more than 335544320 bytes of memory for their entries and directories together"
        );
        assert!(total.entries.into_inner() < 3_000);
    }

    #[test]
    fn what_is_taken_back_is_as_if_it_had_not_been_there() {
        let total = Total::of_blobs(0);
        let change =
            |path: &str| Change { path: path.into(), action: Action::HardLink(b"f".to_vec()) };
        let changes = vec![change("a/b/c"), change(&"n".repeat(255)), change("a/b/d")];
        let index =
            LayerIndex { changes, archive_size: SMALL_UNPACKED_BYTES, ..LayerIndex::default() };
        let mut stored = Vec::new();
        index.write(&mut stored).unwrap();
        let read = || LayerIndex::decode(&stored, &total);
        assert_eq!(read(), Ok(index.clone()));
        assert!(matches!(read(), Err(IndexError::Together(_))));
        let total = Total::of_blobs(0);
        for _ in 0..3 {
            let index = LayerIndex::decode(&stored, &total).unwrap();
            total.remove(&index);
        }
        let left = [total.entries, total.bytes, total.memory].map(AtomicUsize::into_inner);
        assert_eq!((left, total.unpacked.into_inner()), ([0; 3], 0));
    }

    #[test]
    fn archives_grow_with_their_blobs() {
        let most = |blobs, bytes: u64| {
            let total = Total::of_blobs(blobs);
            total.unpacked.fetch_add(bytes, Ordering::Relaxed);
            total.check()
        };
        assert_eq!(most(0, SMALL_UNPACKED_BYTES), Ok(()));
        assert_eq!(most(1 << 30, 48 << 30), Ok(()));
        assert!(most(1 << 30, (48 << 30) + 1).is_err());
        insta::assert_snapshot!(
            most(1 << 20, SMALL_UNPACKED_BYTES + 1).unwrap_err(),
            @"the layers have more than 939524096 bytes when they are uncompressed together"
        );
    }

    #[test]
    fn of_several_refused_layers_the_first_by_digest_is_reported() {
        let layers: Vec<_> = (1..=64).rev().map(layer).collect();
        let refuse = |layer: &&LayerSource| Err::<LayerIndex, _>(Refused::Layer(layer.diff_id));
        let found = Total::default().read(&layers, refuse).unwrap_err();
        assert_eq!(found, Refused::Layer(layer(1).diff_id));
    }

    #[derive(Debug, PartialEq)]
    enum Refused {
        Layer(Digest),
        Excess(Excess),
    }

    impl From<Excess> for Refused {
        fn from(excess: Excess) -> Self {
            Self::Excess(excess)
        }
    }
}
