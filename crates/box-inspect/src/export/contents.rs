//! The data of files, read from a box's rootfs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use box_digest::{Blake3Digest, Hasher};
use box_tree::erofs::image_builder;
use box_tree::{Content, ReadContent, Tree};

use super::ExportError;
use super::error::lossy;
use crate::opened::{self, OpenBox};

/// How many bytes are read at once.
const CHUNK: usize = 256 << 10;

/// The contents of a box's files, read from its rootfs and verified.
#[derive(Debug)]
pub struct Contents {
    rootfs: File,
    places: HashMap<Blake3Digest, u64>,
}

impl Contents {
    /// Opens the rootfs of a box whose whole tree this is.
    ///
    /// # Errors
    /// [`ExportError`] where the rootfs cannot be opened or cannot hold the tree.
    pub fn open(opened: &OpenBox, tree: &Tree) -> Result<Self, ExportError> {
        Ok(Self { places: image_builder(tree)?.places()?, rootfs: opened::rootfs(opened)? })
    }

    /// Takes a rootfs of which nothing is checked.
    #[cfg(test)]
    pub(super) const fn of(rootfs: File, places: HashMap<Blake3Digest, u64>) -> Self {
        Self { rootfs, places }
    }

    /// Writes a file's content to `out` and verifies it; `path` is the file's, for people.
    pub(super) fn copy(
        &self,
        path: &[u8],
        content: Content,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        let damaged = || ExportError::Damaged { path: lossy(path) };
        // A content without bytes lies nowhere.
        let mut offset = self.places.get(&content.hash).copied().unwrap_or_default();
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; CHUNK.min(usize::try_from(content.size).unwrap_or(CHUNK))];
        let mut left = content.size;
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let chunk = &mut buffer[..chunk];
            self.rootfs.read_exact_at(chunk, offset).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => damaged(),
                _ => ExportError::Rootfs(error),
            })?;
            hasher.update(chunk);
            out.write_all(chunk).map_err(ExportError::Write)?;
            offset += chunk.len() as u64;
            left -= chunk.len() as u64;
        }
        if hasher.digest() == content.hash { Ok(()) } else { Err(damaged()) }
    }
}

impl ReadContent for Contents {
    fn read(&mut self, content: Content, limit: u64) -> io::Result<Vec<u8>> {
        if content.size > limit {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let mut bytes = Vec::new();
        self.copy(b"a file of a package database", content, &mut bytes)
            .map_err(io::Error::other)?;
        Ok(bytes)
    }
}
