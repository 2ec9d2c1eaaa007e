//! Finds for each file of the new box the file of the old box that it is most like.

use std::collections::{BTreeMap, HashMap};

use box_digest::Blake3Digest;

use crate::make::{Extent, Piece, Plan};

/// The size of a block of the file system of a box, in bytes.
const BLOCK: u64 = 4096;

/// A file of a box, and where its bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedFile<'p> {
    /// The path in the box.
    pub path: &'p [u8],
    /// The BLAKE3 of its bytes.
    pub content: Blake3Digest,
    /// The range of its bytes. The source is an index for the files of the old box, and has no meaning for those of the new one.
    pub place: Extent,
}

/// Returns the plan of a new blob of `size` bytes, in which the files `new` lie, made of the files `old` of an old box.
/// `is_vanished` returns whether the new box lacks a path.
///
/// A new file is paired with the old file of the same content, else with the old file of its path, and else with the vanished file
/// of its directory that is nearest in size: names often have a hash or a version of what they contain. All files lie in blobs of
/// whole blocks.
pub fn partners(
    new: &[PlacedFile<'_>],
    old: &[PlacedFile<'_>],
    is_vanished: impl Fn(&[u8]) -> bool,
    size: u64,
) -> Plan {
    let by_content: HashMap<_, _> = old.iter().map(|it| (it.content, it.place)).collect();
    let by_path: HashMap<_, _> = old.iter().map(|it| (it.path, it.place)).collect();
    let mut vanished: BTreeMap<&[u8], Vec<Extent>> = BTreeMap::new();
    for it in old.iter().filter(|it| is_vanished(it.path)) {
        vanished.entry(directory(it.path)).or_default().push(it.place);
    }
    let nearest = |it: &PlacedFile<'_>| {
        let near = vanished.get(directory(it.path))?.iter();
        near.min_by_key(|place| place.length.abs_diff(it.place.length)).copied()
    };
    let mut sorted: Vec<_> = new.iter().collect();
    sorted.sort_by_key(|it| it.place.offset);
    sorted.dedup_by_key(|it| it.place.offset);
    let (mut plan, mut at) = (Plan::default(), 0);
    let mut add = |length, like| plan.pieces.push(Piece { length, like });
    for (index, it) in sorted.iter().enumerate() {
        let end = sorted.get(index + 1).map_or(size, |next| next.place.offset);
        add(it.place.offset - at, None);
        let like = by_content.get(&it.content).or_else(|| by_path.get(it.path)).copied();
        let like = like.or_else(|| nearest(it)).map(padded);
        // Both files end in zeros that fill their last block.
        let length = padded(it.place).length.min(end - it.place.offset);
        add(length, like);
        add(end - it.place.offset - length, None);
        at = end;
    }
    add(size.saturating_sub(at), None);
    plan
}

/// Returns a place with the zeros after the file, which fill its last block. The blobs consist of whole blocks.
fn padded(place: Extent) -> Extent {
    Extent { length: place.length.next_multiple_of(BLOCK), ..place }
}

fn directory(path: &[u8]) -> &[u8] {
    path.iter().rposition(|it| *it == b'/').map_or(b"", |at| &path[..at])
}
