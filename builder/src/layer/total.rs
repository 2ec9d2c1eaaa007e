//! What all layers together may ask for, because their indexes are all held at once.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ALL_INDEX_BYTES, LayerIndex};

/// How many entries the layers may have together, each as often as it is applied. Real images have a
/// tenth of it.
pub(crate) const ENTRIES_MAX: usize = 1 << 20;

/// What there is too much of, and how much there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Excess {
    /// Entries.
    Entries(usize),
    /// Bytes of names and attributes. A listing can tell of whatever is below the bound.
    IndexBytes(usize),
}

/// What some layers have together. Several threads may add to it.
#[derive(Debug, Default)]
pub(crate) struct Total {
    entries: AtomicUsize,
    bytes: AtomicUsize,
}

impl Total {
    /// Adds layers up.
    pub(crate) fn of<'a>(layers: impl IntoIterator<Item = &'a LayerIndex>) -> Self {
        let total = Self::default();
        layers.into_iter().for_each(|layer| total.add(layer));
        total
    }

    /// Adds a layer.
    pub(crate) fn add(&self, layer: &LayerIndex) {
        self.entries.fetch_add(layer.changes.len(), Ordering::Relaxed);
        self.bytes.fetch_add(layer.cost(), Ordering::Relaxed);
    }

    /// Refuses what would take more memory than there may be.
    pub(crate) fn check(&self) -> Result<(), Excess> {
        if self.entries.load(Ordering::Relaxed) > ENTRIES_MAX {
            return Err(Excess::Entries(ENTRIES_MAX));
        }
        if self.bytes.load(Ordering::Relaxed) > ALL_INDEX_BYTES {
            return Err(Excess::IndexBytes(ALL_INDEX_BYTES));
        }
        Ok(())
    }
}
