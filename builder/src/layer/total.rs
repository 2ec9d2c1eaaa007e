//! What all layers together may ask for, because their indexes are all held at once.

/// How many entries the layers may have together, each as often as it is applied. Real images have a
/// tenth of it.
pub(crate) const ENTRIES_MAX: usize = 1 << 20;
