//! The data of files, read from a box's rootfs.

use std::fs::File;
use std::io::{self, Write};

use box_tree::erofs::image_builder;
use box_tree::{Content, CopyError, ReadContent, Tree};
use erofs_writer::{ContentId, Places};

use super::ExportError;
use super::error::lossy;
use crate::opened::{self, OpenBox};

/// The contents of a box's files, read from its rootfs and verified.
#[derive(Debug)]
pub struct Contents {
    rootfs: File,
    places: Places,
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
    pub(super) const fn of(rootfs: File, places: Places) -> Self {
        Self { rootfs, places }
    }

    /// Writes a file's content to `out` and verifies it; `path` is the file's, for people.
    pub(super) fn copy(
        &self,
        path: &[u8],
        content: Content,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        // A content without bytes is nowhere.
        let offset = self.places.offset(&ContentId(content.hash)).unwrap_or_default();
        content.copy(&self.rootfs, offset, out).map_err(|error| match error {
            CopyError::Damaged => ExportError::Damaged { path: lossy(path) },
            CopyError::Read(error) => ExportError::Rootfs(error),
            CopyError::Write(error) => ExportError::Write(error),
        })
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
