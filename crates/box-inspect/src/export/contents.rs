//! The rootfs of a box: the data of its files, and the whole image, which is the form `erofs`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};

use box_digest::Blake3Digest;
use box_image::manifest::ROOTFS_TYPE;
use box_tree::erofs::image_builder;
use box_tree::{Content, CopyError, ReadContent, Tree};
use host_fs::FileError;

use super::error::{ROOTFS, lossy};
use super::{ExportError, Written};
use crate::opened::{self, OpenBox};

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
    ///
    /// # Errors
    /// [`ExportError`]; what was written then is not the content.
    pub fn copy(
        &self,
        path: &[u8],
        content: Content,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        self.copy_head(path, content, content.size, out)
    }

    fn copy_head(
        &self,
        path: &[u8],
        content: Content,
        limit: u64,
        out: &mut dyn Write,
    ) -> Result<(), ExportError> {
        // A content without bytes is nowhere.
        let offset = self.places.get(&content.hash).copied().unwrap_or_default();
        content.copy_head(limit, &self.rootfs, offset, out).map_err(|error| match error {
            CopyError::Damaged => ExportError::damaged(&format!(
                "{} does not have the content that the listing names",
                lossy(path)
            )),
            CopyError::Read(error) => FileError::of("read", ROOTFS)(error).into(),
            CopyError::Write(error) => ExportError::Write(error),
        })
    }
}

impl ReadContent for Contents {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        let path = b"a file of a package database";
        Self::copy_head(self, path, content, limit, out).map_err(io::Error::other)
    }
}

/// How many bytes are copied at once.
const CHUNK: usize = 1 << 20;

/// Copies the rootfs image of a box.
///
/// # Errors
/// [`ExportError`]; what was written then is not the image.
pub fn copy_rootfs(opened: &OpenBox, out: &mut dyn Write) -> Result<Written, ExportError> {
    let mut rootfs = opened::rootfs(opened)?;
    let written = Written::count(out, |out| {
        let mut buffer = vec![0; CHUNK];
        loop {
            match rootfs.read(&mut buffer).map_err(FileError::of("read", ROOTFS))? {
                0 => return Ok(()),
                read => out.write_all(&buffer[..read]).map_err(ExportError::Write)?,
            }
        }
    })?;
    let named = opened.manifest.blob(ROOTFS_TYPE).map(|blob| blob.digest);
    if named == Some(written.digest) {
        return Ok(written);
    }
    Err(ExportError::damaged(&format!("it has the digest {}", written.digest)))
}
