//! Reading many layers at once, and a bound on all of them together.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use box_digest::Digest;
use box_tree::listing::METADATA_BYTES_MAX;
use rayon::prelude::*;

use super::{LayerIndex, LayerSource};

/// How many entries the layers may have together, each as often as it is applied. Real images have a
/// tenth of it.
pub const ENTRIES_MAX: usize = 1 << 20;

/// The layers have more together than can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the layers have more than {limit} {what} together")]
pub struct Excess {
    what: &'static str,
    limit: usize,
}

/// The sizes of several layers together. Several threads may add to it.
#[derive(Debug, Default)]
pub struct Total {
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

impl Total {
    /// Adds the sizes and counts of layers up.
    pub fn of<'a>(layers: impl IntoIterator<Item = &'a LayerIndex>) -> Self {
        let total = Self::default();
        layers.into_iter().for_each(|layer| total.add(layer));
        total
    }

    fn add(&self, layer: &LayerIndex) {
        self.entries.fetch_add(layer.changes.len(), Ordering::Relaxed);
        self.bytes.fetch_add(layer.cost(), Ordering::Relaxed);
    }

    /// Checks that all that was added can be held.
    ///
    /// # Errors
    /// [`Excess`].
    pub fn check(&self) -> Result<(), Excess> {
        let within = |count: &AtomicUsize, limit, what| {
            let found = count.load(Ordering::Relaxed);
            if found > limit { Err(Excess { what, limit }) } else { Ok(()) }
        };
        within(&self.entries, ENTRIES_MAX, "entries")?;
        // Whatever is below this bound fits into a listing.
        within(&self.bytes, METADATA_BYTES_MAX, "bytes of names and attributes")
    }

    /// Reads layers, several at a time and the first of each diff_id, and adds the index of what was
    /// read. Once the total is exceeded, no further layer is begun.
    ///
    /// # Errors
    /// [`Excess`], else the error of the first layer by diff_id, however many threads there are.
    pub fn read<L: AsRef<LayerSource> + Send, T: Send, E: From<Excess> + Send>(
        &self,
        layers: impl IntoIterator<Item = L>,
        read: impl Fn(&L) -> Result<T, E> + Sync,
        index: impl Fn(&T) -> Option<&LayerIndex> + Sync,
    ) -> Result<BTreeMap<Digest, T>, E> {
        let mut distinct = BTreeMap::new();
        for layer in layers {
            distinct.entry(layer.as_ref().diff_id).or_insert(layer);
        }
        let mut layers: Vec<_> = distinct.into_iter().collect();
        // The largest first and each to the first thread that is free, so that none works on alone.
        layers.sort_by_key(|(_, layer)| Reverse(layer.as_ref().size));
        let read_one = |(id, layer): (Digest, L)| {
            self.check()?;
            let read = read(&layer);
            read.iter().filter_map(&index).for_each(|index| self.add(index));
            Ok((id, read))
        };
        let read = layers.into_iter().par_bridge().map(read_one);
        let read = read.collect::<Result<BTreeMap<_, Result<T, E>>, E>>()?;
        read.into_iter().map(|(id, read)| Ok((id, read?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Change, Compression};

    fn layer(number: u8) -> LayerSource {
        let digest = Digest::from_bytes([number; 32]);
        LayerSource { digest, size: 1, compression: Compression::None, diff_id: digest }
    }

    /// Reads layers, each of which has so many entries of this path; returns how many were read, and
    /// what is said of all of them applied.
    fn read_all(
        layers: &[LayerSource],
        entries: usize,
        path: &[u8],
    ) -> (usize, Result<(), Excess>) {
        let calls = AtomicUsize::new(0);
        let read = |_: &&LayerSource| {
            calls.fetch_add(1, Ordering::Relaxed);
            let change = Change { path: path.to_vec(), action: Action::Whiteout };
            Ok(LayerIndex { changes: vec![change; entries], contents: Vec::new() })
        };
        let found = Total::default()
            .read(layers, read, |index| Some(index))
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
        assert_eq!(read_all(&again, ENTRIES_MAX / 256, b""), (1, Ok(())));
        let (calls, refused) = read_all(&again, ENTRIES_MAX / 256 + 1, b"");
        assert_eq!(calls, 1);
        insta::assert_snapshot!(
            refused.unwrap_err(),
            @"the layers have more than 1048576 entries together"
        );
        // Once they are too many, none more is read, but for what other threads are at.
        let many: Vec<_> = (0..=255).map(layer).collect();
        let (calls, refused) = read_all(&many, ENTRIES_MAX / 8, b"");
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
    fn of_several_refused_layers_the_first_by_digest_is_reported() {
        let layers: Vec<_> = (1..=64).rev().map(layer).collect();
        let refuse = |layer: &&LayerSource| Err::<LayerIndex, _>(Refused::Layer(layer.diff_id));
        let found = Total::default().read(&layers, refuse, |index| Some(index)).unwrap_err();
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
