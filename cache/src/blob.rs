//! Blobs: immutable bytes with their digest as the name.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use box_digest::{Digest, Hasher, Sha256};
use host_fs::publish::FileDraft;

use crate::error::{IoContext, io_within};
use crate::reserve::Reserve;
use crate::store::{BLOB_MODE, draft};
use crate::{Store, StoreError};
use host_fs::FileError;

/// An unfinished blob. It is removed unless it gets a name.
#[derive(Debug)]
pub(crate) struct RawBlob<'store> {
    store: &'store Store,
    draft: FileDraft,
    reserve: Reserve,
}

impl<'store> RawBlob<'store> {
    pub(crate) fn new(store: &'store Store) -> Result<Self, StoreError> {
        Ok(Self { store, draft: draft(store.root(), BLOB_MODE)?, reserve: Reserve::default() })
    }

    /// Returns another handle of the file.
    pub(crate) fn file(&self) -> Result<File, StoreError> {
        self.draft.file().try_clone().context("open again", &self.draft.path())
    }

    /// Truncates the file to `size` bytes. The next write continues there.
    pub(crate) fn cut(&self, size: u64) -> io::Result<()> {
        let mut file = self.draft.file();
        file.set_len(size)?;
        file.seek(SeekFrom::Start(size)).map(drop)
    }

    /// Flushes the bytes to the disk, and names the file by their digest. Replaces an existing file of
    /// this name, which has the same content unless it is damaged. So a damaged blob is repaired.
    pub(crate) fn publish(self, blob: &Digest) -> Result<(), StoreError> {
        let path = self.store.blob_path(blob);
        // Noted before the file gets its name, so that every collection finds that the blob is used.
        self.store.session().use_blob(blob);
        if !path.exists() {
            let size = self.draft.file().metadata().map_or(0, |it| it.len());
            self.store.note_added(size);
        }
        let written = self.draft.finish_over(&path).context("write", &path);
        written.map_err(|error| error.within(self.store.root()))
    }

    pub(crate) fn error(&self, doing: &'static str, source: io::Error) -> StoreError {
        let error = StoreError::from(FileError::of(doing, self.draft.path())(source));
        error.within(self.store.root())
    }
}

impl Write for RawBlob<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.reserve.write(self.draft.file(), bytes);
        written.map_err(io_within(self.store.root()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.draft.file().flush()
    }
}

/// Writes a blob whose digest is not known yet. Without a commit, the bytes are removed.
#[derive(Debug)]
pub struct BlobWriter<'store> {
    raw: RawBlob<'store>,
    hasher: Hasher<Sha256>,
}

impl<'store> BlobWriter<'store> {
    pub(crate) fn new(store: &'store Store) -> Result<Self, StoreError> {
        Ok(Self { raw: RawBlob::new(store)?, hasher: Hasher::default() })
    }

    /// Returns the number of bytes written so far.
    pub const fn size(&self) -> u64 {
        self.hasher.count()
    }

    /// Returns the digest of the bytes written so far.
    pub fn id(&self) -> Digest {
        self.hasher.digest()
    }

    /// Names the blob by its digest, and returns the digest and the size in bytes. An existing file
    /// of this name is replaced, damaged or not.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]. The store is then unchanged.
    pub fn commit(self) -> Result<(Digest, u64), StoreError> {
        let (blob, size) = (self.id(), self.size());
        self.raw.publish(&blob)?;
        Ok((blob, size))
    }
}

impl Write for BlobWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.raw.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.raw.flush()
    }
}
