//! Packs: files of the store that hold the data of layers' files.
//!
//! A pack holds contents one after the other: those of a layer, which are the data of the action
//! that decoded it, or others in a blob. Every content is hashed again while it is read, so that a
//! damaged pack never reaches a rootfs.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::{self, Write};

use box_cache::{ActionKey, Store, StoreError};
use box_digest::{Blake3Digest, Digest};
use box_tree::{Content, CopyError, ReadContent};

/// Where contents lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pack {
    /// A blob of the store.
    Blob(Digest),
    /// The data of a decoded layer.
    Layer(ActionKey),
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
            Self::Layer(key) => store.open_data(&key),
        }
    }
}

/// A pack is damaged or no longer in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store's copy of the files' data is damaged")]
pub struct PackDamaged(pub Pack);

impl PackDamaged {
    /// Returns the damaged pack where that is why something failed: readers of packs pass it on as an
    /// [`io::Error`].
    pub fn cause_of(error: &(dyn Error + 'static)) -> Option<Self> {
        let io = error.downcast_ref::<io::Error>();
        let inner = io.and_then(io::Error::get_ref).map(|it| it as &(dyn Error + 'static));
        let found = inner.and_then(|it| it.downcast_ref::<Self>()).copied();
        found.or_else(|| Self::cause_of(inner.or_else(|| error.source())?))
    }
}

fn damaged(pack: Pack) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, PackDamaged(pack))
}

/// Where each content lies.
#[derive(Debug, Default)]
pub struct ContentMap {
    packs: Vec<Pack>,
    /// The number of the pack, and the offset in it: a box can have a million contents.
    places: HashMap<Blake3Digest, (u32, u64)>,
}

impl ContentMap {
    /// Adds the contents of a pack. Of two places for one content, either is right.
    pub fn add(&mut self, pack: impl Into<Pack>, contents: &[(Content, u64)]) {
        // A build has a few hundred packs.
        let number = u32::try_from(self.packs.len()).unwrap_or(u32::MAX);
        self.packs.push(pack.into());
        self.places
            .extend(contents.iter().map(|(content, offset)| (content.hash, (number, *offset))));
    }

    /// Makes room for so many contents at once, rather than as they come.
    pub fn reserve(&mut self, contents: usize) {
        self.places.reserve(contents);
    }

    fn place(&self, content: &Content) -> Option<(Pack, u64)> {
        let (pack, offset) = self.places.get(&content.hash)?;
        Some((*self.packs.get(*pack as usize)?, *offset))
    }

    /// Puts a file's bytes into the store, and adds them.
    ///
    /// # Errors
    /// The store's.
    pub fn put(&mut self, store: &Store, bytes: &[u8]) -> Result<Content, StoreError> {
        let content = Content::of(bytes);
        self.add(store.put(bytes)?, &[(content, 0)]);
        Ok(content)
    }

    /// Returns a reader of these contents.
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

/// Returns `true` if a pack is no longer in the store.
fn is_gone(error: &StoreError) -> bool {
    match error {
        StoreError::File(error) => error.source.kind() == io::ErrorKind::NotFound,
        error => matches!(error, StoreError::Missing(_)),
    }
}

impl erofs_writer::Contents for PackReader<'_> {
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        self.copy_content(Content { hash: *content, size }, out)
    }
}
