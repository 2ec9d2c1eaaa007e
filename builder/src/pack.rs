//! Packs: files of the store that contain the data of the box's files.
//!
//! A pack is a concatenation of contents. A layer's pack is the data of the action that decoded the layer; other packs
//! are blobs. The larger contents of a large layer are in its segment, a blob in which each content begins at a block.
//! Every content is hashed again while it is read, so that a damaged pack or segment never reaches a rootfs.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::Scope;

use box_cache::{ActionKey, BulkWriter, Store, StoreError};
use box_digest::{Blake3Digest, Digest};
use box_tree::{Content, CopyError, ReadContent};
use oci_layer::{Divider, MemorySegment, Placed, SegmentSink};

use crate::heads::Heads;

/// A file of the store that contains contents of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pack {
    /// A blob of the store.
    Blob(Digest),
    /// The data of a decoded layer.
    Layer(ActionKey),
    /// The segment of a decoded layer.
    Segment {
        /// The segment.
        segment: Segment,
        /// The action that made the segment: the decoding of a layer, or the padding of a program. If the segment is
        /// damaged, the action runs again. `None` for files of the checkout, which each build reads.
        layer: Option<ActionKey>,
    },
}

/// The segment of a layer: a blob of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// sha256 of the segment.
    pub blob: Digest,
    /// The segment's size in bytes.
    pub size: u64,
}

impl From<Digest> for Pack {
    fn from(blob: Digest) -> Self {
        Self::Blob(blob)
    }
}

impl Pack {
    fn open(self, store: &Store) -> Result<File, StoreError> {
        match self {
            Self::Blob(blob) => store.open_blob(&blob),
            Self::Segment { segment, .. } => store.open_blob(&segment.blob),
            Self::Layer(key) => store.open_data(&key),
        }
    }

    /// Returns the segment, if the pack is one.
    const fn segment(self) -> Option<Segment> {
        match self {
            Self::Segment { segment, .. } => Some(segment),
            Self::Blob(_) | Self::Layer(_) => None,
        }
    }

    /// Returns the action that makes the pack again. `None` for a blob, which no action makes.
    pub const fn layer(self) -> Option<ActionKey> {
        match self {
            Self::Blob(_) => None,
            Self::Layer(layer) => Some(layer),
            Self::Segment { layer, .. } => layer,
        }
    }
}

/// Writes the segment of a layer into the store. A layer without a segment leaves no file there.
#[derive(Debug)]
pub struct SegmentWriter<'scope, 'env, 'store> {
    store: &'store Store,
    scope: &'scope Scope<'scope, 'env>,
    /// The segment; `None` until the first content is written.
    writer: Option<BulkWriter<'scope, 'store>>,
}

impl<'scope, 'env, 'store> SegmentWriter<'scope, 'env, 'store> {
    /// Creates a writer. Its threads run in `scope`.
    pub const fn new(store: &'store Store, scope: &'scope Scope<'scope, 'env>) -> Self {
        Self { store, scope, writer: None }
    }

    /// Commits the segment, if the layer has one.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn commit(self) -> Result<Option<Segment>, StoreError> {
        let committed = self.writer.map(BulkWriter::commit).transpose()?;
        Ok(committed.map(|(blob, size)| Segment { blob, size }))
    }

    fn writer(&mut self) -> io::Result<&mut BulkWriter<'scope, 'store>> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => BulkWriter::new(self.store, self.scope).map_err(io::Error::other)?,
        };
        Ok(self.writer.insert(writer))
    }
}

impl SegmentSink for SegmentWriter<'_, '_, '_> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer()?.write_all(bytes)
    }

    fn mark(&mut self) -> io::Result<()> {
        self.writer()?.mark()
    }

    fn back_to_mark(&mut self) -> io::Result<()> {
        self.writer()?.back_to_mark()
    }
}

/// Divides the contents of files between a pack and a segment. Returns the contents of each with their offsets.
fn divide<'d, S: SegmentSink>(
    files: impl Iterator<Item = (Content, &'d [u8])>,
    pack: &mut impl Write,
    segment: &mut S,
) -> io::Result<(Placed, Placed)> {
    let mut divider = Divider::new(pack, segment);
    for (content, data) in files {
        divider.add(data)?;
        divider.end(content)?;
    }
    divider.finish()
}

/// A pack is damaged or no longer in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store's copy of the files' data is damaged")]
pub struct PackDamaged(pub Pack);

impl PackDamaged {
    /// Returns the damaged pack if it is the cause of `error`. Readers of packs return a [`PackDamaged`] inside an
    /// [`io::Error`], or directly.
    pub fn cause_of(error: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(found) = error.downcast_ref::<Self>() {
            return Some(*found);
        }
        let io = error.downcast_ref::<io::Error>();
        let inner = io.and_then(io::Error::get_ref).map(|it| it as &(dyn Error + 'static));
        let found = inner.and_then(|it| it.downcast_ref::<Self>()).copied();
        found.or_else(|| Self::cause_of(inner.or_else(|| error.source())?))
    }
}

fn damaged(pack: Pack) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, PackDamaged(pack))
}

/// The pack of each content, and its offset there.
#[derive(Debug, Default)]
pub struct ContentMap {
    packs: Vec<Pack>,
    /// The index in `packs` and the offset in the pack. A box can have a million contents, so the pack itself is not
    /// repeated.
    places: HashMap<Blake3Digest, (u32, u64)>,
    /// The heads that were read from segments, and those of segments that the store lacks.
    heads: Arc<Heads>,
}

impl ContentMap {
    /// Adds the contents of a pack. If a content is in two packs, a segment takes precedence over any other pack, and
    /// otherwise the pack that was added first. Two layers with the same segment share one pack.
    pub fn add(&mut self, pack: impl Into<Pack>, contents: &[(Content, u64)]) {
        let pack = pack.into();
        let number = self.number(pack);
        let Self { packs, places, .. } = self;
        let is_segment =
            |number: u32| packs.get(number as usize).and_then(|it| it.segment()).is_some();
        let is_better = |old: u32| pack.segment().is_some() && !is_segment(old);
        for (content, offset) in contents {
            let place = places.entry(content.hash).or_insert((number, *offset));
            if is_better(place.0) {
                *place = (number, *offset);
            }
        }
    }

    /// Puts the contents of files into the store and adds them. They are divided between a pack and a segment like the
    /// files of a layer.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn put_all<'d>(
        &mut self,
        store: &Store,
        files: impl Iterator<Item = (Content, &'d [u8])>,
    ) -> Result<(), StoreError> {
        let (mut pack, mut segment) = (Vec::new(), MemorySegment::default());
        let divided = divide(files, &mut pack, &mut segment);
        let (in_pack, in_segment) = divided.map_err(|error| store.write_error(error))?;
        if !in_segment.is_empty() {
            let (blob, size) = (store.put(&segment.bytes)?, segment.bytes.len() as u64);
            self.add(Pack::Segment { segment: Segment { blob, size }, layer: None }, &in_segment);
        }
        self.add(store.put(&pack)?, &in_pack);
        Ok(())
    }

    /// Returns the index of a pack in `packs`, and adds a new pack. A segment that was added before keeps its index.
    fn number(&mut self, pack: Pack) -> u32 {
        let same = |other: &Pack| pack.segment().is_some() && other.segment() == pack.segment();
        let known = self.packs.iter().position(same);
        if known.is_none() {
            self.packs.push(pack);
        }
        // A build has a few hundred packs.
        u32::try_from(known.unwrap_or(self.packs.len() - 1)).unwrap_or(u32::MAX)
    }

    /// Returns the number of the segment that has a content, and the offset there. Packs are numbered in the order in
    /// which they were added.
    pub(crate) fn in_segment(&self, content: &Blake3Digest) -> Option<(u32, u64)> {
        let place = self.places.get(content)?;
        self.segment(place.0).map(|_| *place)
    }

    /// Returns the segment with a number. `None` if that pack is no segment.
    pub(crate) fn segment(&self, number: u32) -> Option<Segment> {
        self.packs.get(number as usize)?.segment()
    }

    /// Returns the pack of a segment.
    pub(crate) fn pack_of(&self, segment: Segment) -> Option<Pack> {
        self.packs.iter().copied().find(|pack| pack.segment() == Some(segment))
    }

    /// Returns the heads that readers of this map have read from segments.
    pub(crate) fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Sets the heads of segments that the store may lack. The heads that readers of this map read are added to them.
    pub(crate) fn with_heads(self, heads: Arc<Heads>) -> Self {
        Self { heads, ..self }
    }

    /// Reserves capacity for at least `contents` more contents.
    pub fn reserve(&mut self, contents: usize) {
        self.places.reserve(contents);
    }

    /// Returns the pack that has a content, and the offset there.
    fn place(&self, content: &Content) -> Option<(Pack, u64)> {
        let (pack, offset) = self.places.get(&content.hash)?;
        Some((*self.packs.get(*pack as usize)?, *offset))
    }

    /// Puts a file's bytes into the store and adds them.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn put(&mut self, store: &Store, bytes: &[u8]) -> Result<Content, StoreError> {
        let content = Content::of(bytes);
        self.add(store.put(bytes)?, &[(content, 0)]);
        Ok(content)
    }

    /// Returns a reader of the contents in this map.
    pub fn reader<'a>(&'a self, store: &'a Store) -> PackReader<'a> {
        PackReader { map: self, store, open: HashMap::new() }
    }
}

/// Reads contents from their packs.
#[derive(Debug)]
pub struct PackReader<'a> {
    map: &'a ContentMap,
    store: &'a Store,
    open: HashMap<Pack, File>,
}

impl ReadContent for PackReader<'_> {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        let Some((pack, offset)) = self.map.place(&content) else {
            return Err(io::Error::other("a content of the tree is in no pack"));
        };
        let length = content.size.min(limit);
        if pack.segment().is_none() || !Heads::takes(length) {
            return self.copy_from((pack, offset), content, limit, out);
        }
        let head = match self.map.heads.get(&content, length) {
            Some(head) => head,
            None => {
                let mut head = Vec::new();
                self.copy_from((pack, offset), content, limit, &mut head)?;
                self.map.heads.add(&content, &head);
                head
            }
        };
        out.write_all(&head)
    }
}

impl PackReader<'_> {
    /// Copies at most the first `limit` bytes of a content from a pack.
    fn copy_from(
        &mut self,
        (pack, offset): (Pack, u64),
        content: Content,
        limit: u64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let file = match self.open.entry(pack) {
            std::collections::hash_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::hash_map::Entry::Vacant(vacant) => match pack.open(self.store) {
                Ok(file) => vacant.insert(file),
                Err(error) if is_gone(&error) => return Err(damaged(pack)),
                Err(error) => return Err(io::Error::other(error)),
            },
        };
        content.copy_head(limit, file, offset, out).map_err(|error| match error {
            CopyError::Damaged => damaged(pack),
            CopyError::Read(error) | CopyError::Write(error) => error,
        })
    }
}

/// Returns whether the error means that a pack is no longer in the store.
fn is_gone(error: &StoreError) -> bool {
    match error {
        StoreError::File(error) => error.source.kind() == io::ErrorKind::NotFound,
        error => matches!(error, StoreError::Missing(_)),
    }
}

impl erofs_writer::ContentSource for PackReader<'_> {
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        self.copy_content(Content { hash: *content, size }, out)
    }
}

#[cfg(test)]
mod tests {
    use box_cache::KeyHasher;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        (dir, store)
    }

    /// Writes a segment of `bytes`, after other bytes that are rolled back.
    fn written(store: &Store, bytes: &[u8]) -> Segment {
        let written = std::thread::scope(|scope| {
            let mut writer = SegmentWriter::new(store, scope);
            writer.mark().unwrap();
            writer.write_all(b"taken back").unwrap();
            writer.back_to_mark().unwrap();
            writer.write_all(bytes).unwrap();
            writer.commit().unwrap()
        });
        written.unwrap()
    }

    #[test]
    fn a_layer_without_a_segment_leaves_nothing() {
        let (dir, store) = store();
        let none = std::thread::scope(|scope| SegmentWriter::new(&store, scope).commit());
        assert_eq!(none.unwrap(), None);
        for part in ["blobs", "tmp"] {
            assert_eq!(std::fs::read_dir(dir.path().join(part)).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_content_of_a_damaged_segment_names_the_layer() {
        let (dir, store) = store();
        let segment = written(&store, b"content");
        assert_eq!(segment, Segment { blob: Digest::of(b"content"), size: 7 });
        let layer = KeyHasher::new("test", 1).finish();
        let (content, mut map) = (Content::of(b"content"), ContentMap::default());
        map.add(Pack::Segment { segment, layer: Some(layer) }, &[(content, 0)]);
        let read = || {
            let mut bytes = Vec::new();
            map.reader(&store).copy_content(content, &mut bytes).map(|()| bytes)
        };
        assert_eq!(read().unwrap(), b"content");
        let path = dir.path().join("blobs").join(segment.blob.hex());
        std::fs::remove_file(&path).unwrap();
        let error = read().unwrap_err();
        let found = PackDamaged::cause_of(&error).and_then(|it| it.0.layer());
        assert_eq!(found, Some(layer), "it is gone");
        for damage in ["c0ntent", "con"] {
            std::fs::write(&path, damage).unwrap();
            let error = read().unwrap_err();
            let found = PackDamaged::cause_of(&error).and_then(|it| it.0.layer());
            assert_eq!(found, Some(layer), "{damage}");
        }
    }

    #[test]
    fn of_two_places_of_a_content_the_first_is_kept() {
        let (_dir, store) = store();
        let (content, mut map) = (Content::of(b"content"), ContentMap::default());
        let first = Pack::Layer(KeyHasher::new("test", 1).finish());
        map.add(first, &[(content, 7)]);
        map.put(&store, b"content").unwrap();
        assert_eq!(map.place(&content), Some((first, 7)));
    }
}
