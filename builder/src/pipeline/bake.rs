//! The rootfs of a box: its metadata, followed by the segments of the layers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use box_cache::{ActionKey, BulkWriter, KeyHasher, Refers, Store};
use box_contract::manifest::{FORMAT_EPOCH, METADATA_UNIT, SEGMENT_UNIT};
use box_digest::{Blake3Digest, Digest, Hasher, Sha256};
use box_tree::erofs::image_builder;
use box_tree::{Content, Tree, entries};
use erofs_writer::{Behind, MAX_INLINE_FILE};

use crate::BuildError;
use crate::pack::{ContentMap, Segment};
use crate::seal::Stored;

// The constants of two crates must agree. Otherwise, metadata and segments would not fit together.
const _: () = assert!(oci_layer::MAX_INLINE == MAX_INLINE_FILE);
const _: () = assert!(oci_layer::SEGMENT_BLOCK == SEGMENT_UNIT);

/// The segments of a box, in the order in which they follow the metadata.
#[derive(Debug)]
pub(super) struct Segments {
    pub(super) chosen: Vec<Segment>,
    /// The contents of the tree that are in the segments, sorted, each with its distance from the end of the metadata
    /// in bytes.
    places: Vec<(Blake3Digest, u64)>,
    size: u64,
}

impl Segments {
    /// Chooses the segments that have a content of `tree`, in the order in which they were added to `contents`. If
    /// several segments have the same content, the first is used. If more than `most` segments have contents of the
    /// tree, the largest are chosen, and the contents of the others are stored in the metadata.
    pub(super) fn choose(tree: &Tree, contents: &ContentMap, most: usize) -> Self {
        let files = entries(tree).filter_map(|(_, id)| tree.inode(id).content());
        let large = files.filter(|content| content.size > MAX_INLINE_FILE);
        let in_segment = |it: &Content| Some((it.hash, contents.in_segment(&it.hash)?));
        let mut belonging: Vec<_> = large.filter_map(in_segment).collect();
        belonging.sort_unstable();
        belonging.dedup();
        let used: BTreeSet<u32> = belonging.iter().map(|(_, (number, _))| *number).collect();
        let segment = |number: u32| Some((number, contents.segment(number)?));
        let mut used: Vec<_> = used.into_iter().filter_map(segment).collect();
        // Segments of equal size are sorted by their digests, so that the choice is always the same.
        used.sort_by_key(|(_, segment)| (Reverse(segment.size), segment.blob));
        used.truncate(most);
        used.sort_by_key(|(number, _)| *number);
        let (mut starts, mut size) = (BTreeMap::new(), 0);
        for (number, segment) in &used {
            starts.insert(*number, size);
            size += segment.size;
        }
        let place = |(hash, (number, offset))| Some((hash, starts.get(&number)? + offset));
        let places = belonging.into_iter().filter_map(place).collect();
        let chosen = used.into_iter().map(|(_, segment)| segment).collect();
        Self { chosen, places, size }
    }

    /// Returns the distance of a content from the end of the metadata in bytes. `None` if no chosen segment has it.
    fn place(&self, content: &Blake3Digest) -> Option<u64> {
        let at = self.places.binary_search_by_key(content, |(content, _)| *content).ok()?;
        Some(self.places[at].1)
    }

    /// Returns the segments as blobs of the box.
    pub(super) fn stored(&self) -> Vec<Stored> {
        self.chosen.iter().map(|it| Stored { blob: it.blob, size: it.size }).collect()
    }
}

/// Returns the metadata of `tree`, whose listing has the digest `listing`. The listing and the positions of the
/// contents in the segments determine the metadata, so the metadata are written only if the store lacks them, or if `is_afresh`.
pub(super) fn metadata(
    tree: Tree,
    listing: &Digest,
    (segments, contents): (&Segments, &ContentMap),
    (store, is_afresh): (&Store, bool),
) -> Result<Stored, BuildError> {
    let key = key(listing, segments);
    if !is_afresh && let Some(known) = recall(store, &key)? {
        return Ok(known);
    }
    let image = image_builder(&tree)?;
    drop(tree);
    let place = |content: &Blake3Digest| segments.place(content);
    let behind = Behind { alignment: METADATA_UNIT, size: segments.size, place: &place };
    let metadata = std::thread::scope(|scope| {
        let mut writer = BulkWriter::new(store, scope)?;
        image.write_before(&mut writer, &mut contents.reader(store), &behind)?;
        let (blob, size) = writer.commit()?;
        Ok::<_, BuildError>(Stored { blob, size })
    })?;
    let value = serde_json::to_vec(&metadata)?;
    store.record_action(&key, &value, &Refers::to(&[metadata.blob]))?;
    Ok(metadata)
}

/// Returns the key of the metadata. The listing alone is not enough, because it does not determine the positions in the
/// segments. For example, a file of the checkout that a policy hides is not in the listing, but shifts the contents
/// that follow it in the segment.
fn key(listing: &Digest, segments: &Segments) -> ActionKey {
    let key = KeyHasher::new("metadata", FORMAT_EPOCH).part(listing.as_bytes());
    let mut places = Hasher::<Sha256>::default();
    for (content, place) in &segments.places {
        places.update(content.as_bytes());
        places.update(&place.to_le_bytes());
    }
    key.part(places.digest().as_bytes()).part(&segments.size.to_le_bytes()).finish()
}

/// Returns the metadata that an earlier build wrote, if they are undamaged in the store.
fn recall(store: &Store, key: &ActionKey) -> Result<Option<Stored>, BuildError> {
    let record = store.action(key)?;
    let known = record.and_then(|it| serde_json::from_slice::<Stored>(&it).ok());
    Ok(known.filter(|it| store.is_whole(&it.blob)))
}

#[cfg(test)]
mod tests {
    use box_tree::{Inode, Leaf, Meta};

    use super::*;
    use crate::pack::Pack;

    fn content(number: u8, size: u64) -> Content {
        Content { hash: Blake3Digest::from_bytes([number; 32]), size }
    }

    /// A tree with a file of each content.
    fn tree(contents: &[Content]) -> Tree {
        let mut tree = Tree::default();
        for (number, content) in contents.iter().enumerate() {
            let file = tree.add(Inode::leaf(Meta::root_owned(0o644), Leaf::File(*content)));
            tree.link(Tree::ROOT, number.to_string().as_bytes(), file);
        }
        tree
    }

    /// Returns the contents of one layer for each element of `segments`. Each content has one block of its layer's
    /// segment.
    fn layers(segments: &[&[Content]]) -> ContentMap {
        let mut contents = ContentMap::default();
        for (number, segment) in (1..).zip(segments) {
            let layer = Some(KeyHasher::new("test", number).finish());
            let size = 4096 * segment.len() as u64;
            let blob = Digest::of(&number.to_le_bytes());
            let placed: Vec<_> =
                (0..).step_by(4096).zip(*segment).map(|(at, it)| (*it, at)).collect();
            contents.add(Pack::Segment { segment: Segment { blob, size }, layer }, &placed);
        }
        contents
    }

    /// Returns the layer numbers of the chosen segments, and the positions of the contents 1 to 4.
    fn chosen(tree: &Tree, contents: &ContentMap, most: usize) -> (Vec<u32>, [Option<u64>; 4]) {
        let segments = Segments::choose(tree, contents, most);
        let number =
            |it: &Segment| (1..9).find(|at: &u32| Digest::of(&at.to_le_bytes()) == it.blob);
        let numbers = segments.chosen.iter().filter_map(number).collect();
        (numbers, [1, 2, 3, 4].map(|it| segments.place(&content(it, 0).hash)))
    }

    #[test]
    fn a_content_belongs_to_the_first_layer_that_has_it() {
        let [a, b, c] = [1, 2, 3].map(|number| content(number, 3000));
        let contents = layers(&[&[a, b], &[b, c], &[c]]);
        let whole = tree(&[a, b, c]);
        assert_eq!(
            chosen(&whole, &contents, 9),
            (vec![1, 2], [Some(0), Some(4096), Some(12_288), None])
        );
        // Without `a` and `b`, the first segment is not needed. `b` is in both segments and belongs to the first.
        assert_eq!(chosen(&tree(&[c]), &contents, 9), (vec![2], [None, None, Some(4096), None]));
        assert_eq!(chosen(&tree(&[b]), &contents, 9).0, [1]);
        assert_eq!(chosen(&tree(&[]), &contents, 9).0, [0; 0]);
    }

    #[test]
    fn the_place_of_each_content_is_in_the_key_of_the_metadata() {
        let [a, b] = [1, 2].map(|number| content(number, 3000));
        let tree = tree(&[a, b]);
        // The segments of the two maps have the same digest and size. Only the content at their start differs.
        let key_of = |contents: &ContentMap| {
            let segments = Segments::choose(&tree, contents, 9);
            (segments.chosen.clone(), key(&Digest::of(b"listing"), &segments))
        };
        let [(one, one_key), (other, other_key)] = [a, b].map(|it| key_of(&layers(&[&[it]])));
        assert_eq!(one, other);
        assert!(one_key != other_key);
    }

    #[test]
    fn small_contents_need_no_segment() {
        let contents = layers(&[&[content(1, 2048)], &[content(2, 2049)]]);
        let tree = tree(&[content(1, 2048), content(2, 2049)]);
        assert_eq!(chosen(&tree, &contents, 9).0, [2]);
    }

    #[test]
    fn of_too_many_segments_the_largest_are_chosen_in_the_order_of_the_layers() {
        let [a, b, c, d] = [1, 2, 3, 4].map(|number| content(number, 3000));
        let contents = layers(&[&[a], &[b, content(5, 3000)], &[c], &[d, content(6, 3000)]]);
        let tree = tree(&[a, b, c, d]);
        assert_eq!(chosen(&tree, &contents, 2), (vec![2, 4], [None, Some(0), None, Some(8192)]));
        // The first and the third are equally large, so the digest decides.
        let smaller =
            [1_u32, 3].into_iter().min_by_key(|at| Digest::of(&at.to_le_bytes())).unwrap();
        let mut expected = [2, 4, smaller];
        expected.sort_unstable();
        assert_eq!(chosen(&tree, &contents, 3).0, expected);
        assert_eq!(chosen(&tree, &contents, 0), (Vec::new(), [None; 4]));
    }

    #[test]
    fn equal_segments_of_two_layers_are_one() {
        let [a, b] = [1, 2].map(|number| content(number, 3000));
        let mut contents = ContentMap::default();
        let segment = Segment { blob: Digest::of(b"same"), size: 4096 };
        for (number, content) in [(1, a), (2, b)] {
            let layer = Some(KeyHasher::new("test", number).finish());
            contents.add(Pack::Segment { segment, layer }, &[(content, 0)]);
        }
        let segments = Segments::choose(&tree(&[a, b]), &contents, 9);
        assert_eq!(segments.chosen, [segment]);
        assert_eq!((segments.place(&a.hash), segments.place(&b.hash)), (Some(0), Some(0)));
    }
}
