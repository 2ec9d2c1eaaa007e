//! The sizes of a box and of its parts.

use std::collections::{BTreeMap, HashSet};

use box_tree::entries;
use box_tree::listing::Listing;

use crate::opened::OpenBox;
use crate::sbom::part;

/// The sizes of a box, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// All blobs of the box and its config.
    pub whole: u64,
    /// The rootfs: metadata and segments.
    pub rootfs: u64,
    /// The files of each [`part`] of the box. A file with several names counts once. Two files with the same content count twice,
    /// although the rootfs contains the content once.
    pub parts: BTreeMap<String, u64>,
}

impl Sizes {
    /// Adds up the sizes of a box. Reads no blob.
    pub fn of(opened: &OpenBox, listing: &Listing) -> Self {
        let blobs = opened.manifest.layers.iter().chain([&opened.manifest.config]);
        let whole = blobs.fold(0, |all: u64, blob| all.saturating_add(blob.size));
        Self { whole, rootfs: opened.rootfs.size(), parts: parts(listing) }
    }
}

fn parts(listing: &Listing) -> BTreeMap<String, u64> {
    let (mut seen, mut by_origin) = (HashSet::new(), BTreeMap::<_, u64>::new());
    for (_, id) in entries(&listing.tree) {
        let Some(content) = listing.tree.inode(id).content() else { continue };
        if seen.insert(id) {
            let sum = by_origin.entry(listing.origin(id)).or_default();
            *sum = sum.saturating_add(content.size);
        }
    }
    let mut parts = BTreeMap::<_, u64>::new();
    for (origin, size) in by_origin {
        let sum = parts.entry(part(origin.as_ref())).or_default();
        *sum = sum.saturating_add(size);
    }
    parts
}
