//! The data of a box's files, read from its rootfs and verified.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};

use box_contract::Descriptor;
use box_contract::manifest::SEGMENT_UNIT;
use box_digest::Blake3Digest;
use box_layout::{Blob, Rootfs, locate};
use box_tree::{Content, CopyError, ReadContent, Tree, entries};
use erofs_writer::{ReadError, read};
use host_fs::FileError;

use crate::error::{ExportError, ROOTFS};
use crate::opened::{Documents, OpenBox, OpenError};

/// What is read by [`ReadContent`], for messages.
const DATABASE: &[u8] = b"a file of a package database";

/// The contents of a box's files, read from its rootfs and verified.
#[derive(Debug)]
pub struct VerifiedContents {
    rootfs: Rootfs,
    /// The offset of each content in the rootfs, in bytes.
    places: HashMap<Blake3Digest, u64>,
}

impl VerifiedContents {
    /// Opens the rootfs of a box and reads the offset of each file's data. `tree` is the box's whole tree.
    ///
    /// # Errors
    /// [`ExportError`] if the rootfs cannot be opened or has other files.
    pub fn open(opened: &OpenBox, tree: &Tree) -> Result<Self, ExportError> {
        Self::of(opened.open_rootfs().map_err(OpenError::from)?, tree)
    }

    pub(crate) fn of(rootfs: Rootfs, tree: &Tree) -> Result<Self, ExportError> {
        let places = places(&rootfs.metadata().file, tree)?;
        Ok(Self { rootfs, places })
    }

    /// Returns the offset of a content in the concatenated segments. `None` if it is not in a segment.
    pub fn place_in_segments(&self, content: &Blake3Digest) -> Option<u64> {
        self.places.get(content)?.checked_sub(self.rootfs.metadata().descriptor.size)
    }

    /// Returns the number of the part with a content, from 0, and the offset in that part. `None` if no part has it.
    pub(crate) fn place(&self, content: &Blake3Digest) -> Option<(usize, u64)> {
        let sizes = self.rootfs.parts().iter().map(|it| it.descriptor.size);
        locate(sizes, *self.places.get(content)?)
    }

    /// Returns the parts of the rootfs, of which the first is the metadata.
    pub(crate) fn parts(&self) -> &[Blob] {
        self.rootfs.parts()
    }

    /// Returns how many bytes of the segments belong to no file: data of files that a higher layer hides or replaces,
    /// and data that another segment also contains.
    pub fn hidden_bytes(&self, tree: &Tree) -> u64 {
        let used: BTreeSet<Content> = contents(tree).collect();
        let used = used.iter().filter(|it| self.place_in_segments(&it.hash).is_some());
        let blocks = used.map(|it| it.size.checked_next_multiple_of(SEGMENT_UNIT));
        let used = blocks.fold(0, |all: u64, it| all.saturating_add(it.unwrap_or(u64::MAX)));
        let segments = self.rootfs.size() - self.rootfs.metadata().descriptor.size;
        segments.saturating_sub(used)
    }

    /// Writes a file's content to `out` and verifies it. `path` is used in error messages only.
    ///
    /// # Errors
    /// [`ExportError`]. The bytes that `out` then has may be wrong.
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
        // An empty content has no offset, so any offset will do.
        let offset = self.places.get(&content.hash).copied().unwrap_or_default();
        let Some((part, offset)) = self.rootfs.locate(offset) else {
            return Err(ExportError::other_data(path));
        };
        copy_at((&part.file, offset), (path, content, limit), out)
    }
}

/// Writes at most `limit` bytes of the content at an offset of a file to `out`, and verifies the content. `path` is used in error
/// messages only.
fn copy_at(
    (file, offset): (&File, u64),
    (path, content, limit): (&[u8], Content, u64),
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    content.copy_head(limit, file, offset, out).map_err(|error| match error {
        CopyError::Damaged => ExportError::other_data(path),
        CopyError::Read(error) => FileError::of("read", ROOTFS)(error).into(),
        CopyError::Write(error) => ExportError::Write(error),
    })
}

/// Returns the content of each file of a tree that is not empty, once for each name of the file.
fn contents(tree: &Tree) -> impl Iterator<Item = Content> {
    let files = entries(tree).filter_map(|(_, id)| tree.inode(id).content().copied());
    files.filter(|content| content.size > 0)
}

/// Reads the offset of each content in the rootfs from the metadata. The names in the rootfs must be the names of `tree`,
/// which limits how much is read. The contents are verified only when they are read.
fn places(metadata: &File, tree: &Tree) -> Result<HashMap<Blake3Digest, u64>, ExportError> {
    let mut places = HashMap::new();
    let mut pending = vec![(Tree::ROOT, read::root(metadata)?)];
    while let Some((directory, found)) = pending.pop() {
        let names = tree.inode(directory).names().into_iter().flatten();
        let size = read::directory_size(names.clone().map(|(name, _)| &**name));
        let found = match found.entries(metadata, size) {
            Err(ReadError::TooLarge) => return Err(other_entries()),
            found => found?,
        };
        if !names.clone().map(|(name, _)| &**name).eq(found.iter().map(|(name, _)| &**name)) {
            return Err(other_entries());
        }
        for ((_, id), (_, found)) in names.zip(found) {
            let inode = tree.inode(*id);
            if inode.names().is_some() {
                pending.push((*id, found));
            } else if let (Some(content), Some(place)) = (inode.content(), found.place()) {
                places.insert(content.hash, place);
            }
        }
    }
    Ok(places)
}

/// Returns the error of a rootfs whose entries or attributes differ from its listing.
pub(crate) fn other_entries() -> ExportError {
    ExportError::damaged("its entries or their attributes are not those that the listing names")
}

impl ReadContent for VerifiedContents {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        Self::copy_head(self, DATABASE, content, limit, out).map_err(io::Error::other)
    }
}

/// Opens a part of the rootfs of a box, after it was fetched.
pub type OpenPart<'a> = &'a dyn Fn(&Descriptor) -> io::Result<Blob>;

/// The contents of a box's files, read and verified. A part of the rootfs is opened when the first content in it is read, so
/// that the other parts need not be on this host.
pub struct LateContents<'a> {
    tree: &'a Tree,
    open: OpenPart<'a>,
    /// The parts of the rootfs, of which the first is the metadata.
    parts: Vec<(Descriptor, Option<Blob>)>,
    /// The offset of each content in the rootfs, in bytes. `None` until the metadata are read.
    places: Option<HashMap<Blake3Digest, u64>>,
}

impl fmt::Debug for LateContents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LateContents").field("parts", &self.parts).finish_non_exhaustive()
    }
}

impl<'a> LateContents<'a> {
    /// Opens nothing yet. `tree` is the box's whole tree.
    pub fn new(documents: &Documents, tree: &'a Tree, open: OpenPart<'a>) -> Self {
        let parts = documents.parts().into_iter().map(|part| (part.clone(), None)).collect();
        Self { tree, open, parts, places: None }
    }

    /// Returns a part, which is opened if it is not open yet.
    fn part(&mut self, at: usize) -> io::Result<&Blob> {
        let Some((named, opened)) = self.parts.get_mut(at) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        match opened {
            Some(blob) => Ok(blob),
            none => {
                let blob = (self.open)(named)?;
                blob.check_size().map_err(io::Error::other)?;
                Ok(none.insert(blob))
            }
        }
    }

    /// Returns the number of the part with a content, and the offset in that part.
    fn place(&mut self, content: &Blake3Digest) -> io::Result<Option<(usize, u64)>> {
        if self.places.is_none() {
            let tree = self.tree;
            let found = places(&self.part(0)?.file, tree).map_err(io::Error::other)?;
            self.places = Some(found);
        }
        // An empty content has no offset, so any offset will do.
        let offset = self.places.iter().find_map(|it| it.get(content)).copied().unwrap_or_default();
        Ok(locate(self.parts.iter().map(|(named, _)| named.size), offset))
    }
}

impl ReadContent for LateContents<'_> {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        let damaged = || io::Error::other(ExportError::other_data(DATABASE));
        let (part, offset) = self.place(&content.hash)?.ok_or_else(damaged)?;
        let file = &self.part(part)?.file;
        copy_at((file, offset), (DATABASE, content, limit), out).map_err(io::Error::other)
    }
}
