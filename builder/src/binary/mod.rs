//! An agent that is one file: a program of the checkout, or a downloaded program.
//!
//! The file becomes `/agent/bin/agent` in the agent's root (the layout of `/agent` in A3S Box): mode 0755, owned by
//! root, with the time 1970-01-01. The file is streamed to the store while it is hashed, so memory does not grow with
//! the file. The blob of a small file is used as a pack; a larger file gets a segment.

mod error;
mod program;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use box_cache::{ActionKey, BulkWriter, KeyHasher, Refers, Store, StoreError};
use box_contract::Platform;
use box_digest::{Blake3, Digest, Hasher};
use box_tree::{Content, Inode, Leaf, Meta, Origin, Tree};
use download::Size;
use host_fs::FileError;
use host_fs::checkout::{Bounds, open_inside};
use oci_layer::{DECODER_EPOCH, MIN_SEGMENT, SEGMENT_BLOCK};

use crate::pack::{ContentMap, Pack, Segment};
pub use error::{BinaryError, ProgramError};
pub(crate) use program::inspect_head;
pub use program::{Program, inspect};

/// The path of the file in the agent's root.
pub const AGENT_PATH: &str = "/agent/bin/agent";
/// The maximum size of a program in bytes, in the checkout or downloaded.
const MAX_BINARY: u64 = Size::DEFAULT.most();

/// An agent's binary. Its bytes are in the store.
#[derive(Debug)]
pub struct Binary {
    /// The content of the file in the tree.
    pub content: Content,
    /// The file's sha256: the name of its blob.
    pub sha256: Digest,
    /// How the file starts, and which other file of the agent's root it needs.
    pub program: Program,
}

impl Binary {
    /// Adds the file's bytes to `contents`. A program of at least `MIN_SEGMENT` bytes gets a segment, as a file of a
    /// layer does, so that the metadata of a box stays small.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn add_to(&self, store: &Store, contents: &mut ContentMap) -> Result<(), StoreError> {
        let size = self.content.size.next_multiple_of(SEGMENT_BLOCK);
        if size < MIN_SEGMENT {
            contents.add(self.sha256, &[(self.content, 0)]);
            return Ok(());
        }
        let key = self.key();
        let blob = match recall_segment(store, &key, size)? {
            Some(blob) => blob,
            None => self.write_segment(store, &key, size)?,
        };
        let pack = Pack::Segment { segment: Segment { blob, size }, layer: Some(key) };
        contents.add(pack, &[(self.content, 0)]);
        Ok(())
    }

    /// Returns the key of the action that makes the program's segment.
    pub(crate) fn key(&self) -> ActionKey {
        KeyHasher::new("program", DECODER_EPOCH).part(self.sha256.as_bytes()).finish()
    }

    fn write_segment(
        &self,
        store: &Store,
        key: &ActionKey,
        size: u64,
    ) -> Result<Digest, StoreError> {
        let file = store.open_blob(&self.sha256)?;
        let mut padding = io::repeat(0).take(size - self.content.size);
        let (blob, _) = std::thread::scope(|scope| {
            let mut writer = BulkWriter::new(store, scope)?;
            let copied = self.content.copy(&file, 0, &mut writer).map_err(io::Error::other);
            let copied = copied.and_then(|()| io::copy(&mut padding, &mut writer));
            copied.map_err(|error| store.write_error(error))?;
            writer.commit()
        })?;
        store.record_action(key, blob.as_bytes(), &Refers::to(&[blob]))?;
        Ok(blob)
    }

    /// Puts the file into a root as [`AGENT_PATH`]. Replaces an existing entry.
    pub fn put_into(&self, root: &mut Tree) {
        let agent = root.ensure_directory(Tree::ROOT, b"agent");
        let bin = root.ensure_directory(agent, b"bin");
        let leaf = Leaf::File(self.content);
        let file = root.add(Inode::leaf(Meta::root_owned(0o755), leaf).from(Origin::Program));
        root.link(bin, b"agent", file);
    }
}

/// Returns the segment that an earlier build wrote for a program, if the store has it with this size.
fn recall_segment(store: &Store, key: &ActionKey, size: u64) -> Result<Option<Digest>, StoreError> {
    let record = store.action(key)?.and_then(|it| <[u8; 32]>::try_from(it).ok());
    Ok(record.map(Digest::from_bytes).filter(|blob| store.size(blob) == Some(size)))
}

/// Reads a binary of a checkout and copies it into the store. `path` is relative to the checkout.
///
/// # Errors
/// [`BinaryError`]. A file that is not a program stays in the store, as an unreferenced blob.
pub fn from_checkout(
    checkout: &Bounds,
    path: &Path,
    platform: Platform,
    store: &Store,
) -> Result<Binary, BinaryError> {
    let file = open(checkout, path)?;
    let mut writer = store.writer()?;
    // Reads at most one byte more than allowed, which shows that the file has grown since it was opened.
    let mut hashed = Hashed::new(file.take(MAX_BINARY + 1));
    io::copy(&mut hashed, &mut writer).map_err(|error| {
        FileError::of(if hashed.failed { "read" } else { "store" }, path)(error)
    })?;
    let content = hashed.content();
    let (blob, _) = writer.commit()?;
    binary(blob, content, &path.display().to_string(), platform, store)
}

/// Reads a binary from the store. Errors name the binary by `name`, such as its URL.
///
/// # Errors
/// [`BinaryError`].
pub fn from_store(
    blob: &Digest,
    name: &str,
    platform: Platform,
    store: &Store,
) -> Result<Binary, BinaryError> {
    let mut hashed = Hashed::new(store.open_blob(blob)?);
    let (found, _) =
        Digest::of_reader(&mut hashed).map_err(FileError::of("read the stored copy of", name))?;
    if found != *blob {
        // `verify` returns an error that describes the damage and has the blob's path.
        store.verify(blob)?;
    }
    binary(*blob, hashed.content(), name, platform, store)
}

fn binary(
    blob: Digest,
    content: Content,
    name: &str,
    platform: Platform,
    store: &Store,
) -> Result<Binary, BinaryError> {
    if content.size > MAX_BINARY {
        return Err(BinaryError::TooLarge { name: name.to_owned() });
    }
    let program = inspect(&store.open_blob(&blob)?, platform)
        .map_err(|source| BinaryError::Program { name: name.to_owned(), source })?;
    Ok(Binary { content, sha256: blob, program })
}

/// Opens a regular file of a checkout.
///
/// # Errors
/// [`BinaryError`] if the file is not regular, is outside the checkout, or is too large.
pub fn open(checkout: &Bounds, path: &Path) -> Result<File, BinaryError> {
    if path.is_absolute() {
        return Err(BinaryError::Absolute(path.to_owned()));
    }
    let root = checkout.root().map_err(FileError::of("read", path))?.path();
    let file = open_inside(checkout, &root.join(path)).map_err(FileError::of("read", path))?;
    let file = file.ok_or_else(|| BinaryError::Outside(path.to_owned()))?;
    if file.metadata().map_err(FileError::of("read", path))?.len() > MAX_BINARY {
        return Err(BinaryError::TooLarge { name: path.display().to_string() });
    }
    Ok(file)
}

/// A reader that hashes the bytes that it passes on.
struct Hashed<R> {
    from: R,
    hasher: Hasher<Blake3>,
    /// Whether the last attempt to read failed.
    failed: bool,
}

impl<R: Read> Hashed<R> {
    fn new(from: R) -> Self {
        Self { from, hasher: Hasher::default(), failed: false }
    }

    fn content(&self) -> Content {
        Content { hash: self.hasher.digest(), size: self.hasher.count() }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer);
        self.failed = read.is_err();
        self.hasher.update(&buffer[..*read.as_ref().unwrap_or(&0)]);
        read
    }
}
