//! Where the data of files lies: packs in the store.
//!
//! A pack is a blob that holds the contents of one layer (or of the skills) one behind the other.
//! Every content is hashed again while it is read, so that a damaged pack never reaches a rootfs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use box_cache::{BlobId, Store};

use crate::tree::Content;

/// Where each content lies.
#[derive(Debug, Default)]
pub struct ContentMap {
    places: HashMap<[u8; 32], (BlobId, u64)>,
}

impl ContentMap {
    /// Adds the contents of a pack. Of two places for one content, either is right.
    pub fn add(&mut self, pack: BlobId, contents: &[(Content, u64)]) {
        self.places
            .extend(contents.iter().map(|(content, offset)| (content.hash, (pack, *offset))));
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
    open: HashMap<BlobId, File>,
}

impl PackReader<'_> {
    /// Writes a content to `out` and verifies it.
    ///
    /// # Errors
    /// The sink's, the pack's, or `InvalidData` where the pack is damaged.
    pub fn copy_content(&mut self, content: Content, out: &mut dyn Write) -> io::Result<()> {
        let Some(&(pack, mut offset)) = self.map.places.get(&content.hash) else {
            return Err(io::Error::other("a content of the tree is in no pack"));
        };
        let file = self.file(pack)?;
        let mut hasher = blake3::Hasher::new();
        let mut buffer = [0; 128 << 10];
        let mut left = content.size;
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            file.read_exact_at(&mut buffer[..chunk], offset)?;
            hasher.update(&buffer[..chunk]);
            out.write_all(&buffer[..chunk])?;
            offset += chunk as u64;
            left -= chunk as u64;
        }
        if *hasher.finalize().as_bytes() == content.hash {
            return Ok(());
        }
        let advice = format!("the pack {pack} in the store is damaged; remove it and build again");
        Err(io::Error::new(io::ErrorKind::InvalidData, advice))
    }

    /// Reads a small content whole.
    ///
    /// # Errors
    /// As [`Self::copy_content`]; also where it has more than `limit` bytes.
    pub fn read(&mut self, content: Content, limit: u64) -> io::Result<Vec<u8>> {
        if content.size > limit {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
        }
        let mut bytes = Vec::new();
        self.copy_content(content, &mut bytes)?;
        Ok(bytes)
    }

    fn file(&mut self, pack: BlobId) -> io::Result<&File> {
        match self.open.entry(pack) {
            std::collections::hash_map::Entry::Occupied(open) => Ok(open.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                Ok(vacant.insert(self.store.open_blob(&pack).map_err(io::Error::other)?))
            }
        }
    }
}

impl erofs_writer::Contents for PackReader<'_> {
    fn copy(
        &mut self,
        content: &erofs_writer::ContentId,
        size: u64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.copy_content(Content { hash: content.0, size }, out)
    }
}
