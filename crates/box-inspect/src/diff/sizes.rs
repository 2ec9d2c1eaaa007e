//! The sizes of a box and of its parts.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use box_tree::entries;
use box_tree::listing::Listing;
use safe_text::readable;

use crate::opened::Documents;
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
    pub fn of(opened: &Documents, listing: &Listing) -> Self {
        let blobs = opened.manifest.layers.iter().chain([&opened.manifest.config]);
        let whole = blobs.fold(0, |all: u64, blob| all.saturating_add(blob.size));
        let rootfs = opened.parts().iter().map(|part| part.size).sum();
        Self { whole, rootfs, parts: parts(listing) }
    }

    /// Returns each size with its value in both boxes, 0 if a box lacks the part.
    pub fn pairs<'s>(a: &'s Self, b: &'s Self) -> Vec<(Size<'s>, u64, u64)> {
        let fixed = [(Size::Whole, a.whole, b.whole), (Size::Rootfs, a.rootfs, b.rootfs)];
        let names: BTreeSet<&String> = a.parts.keys().chain(b.parts.keys()).collect();
        let of = |it: &Self, name| it.parts.get(name).copied().unwrap_or_default();
        let parts = names.into_iter().map(|name| (Size::Part(name), of(a, name), of(b, name)));
        fixed.into_iter().chain(parts).collect()
    }
}

/// A size of [`Sizes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size<'a> {
    /// [`Sizes::whole`].
    Whole,
    /// [`Sizes::rootfs`].
    Rootfs,
    /// The files of a part. Foreign text.
    Part(&'a str),
}

/// Formats a difference of sizes with its sign.
pub fn growth(a: u64, b: u64) -> String {
    let sign = match a.cmp(&b) {
        Ordering::Less => "+",
        Ordering::Equal => return "0".to_owned(),
        Ordering::Greater => "−",
    };
    format!("{sign}{}", readable(a.abs_diff(b)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_sign() {
        assert_eq!([growth(1, 1), growth(0, 2048), growth(2048, 0)], ["0", "+2.0 KiB", "−2.0 KiB"]);
    }
}
