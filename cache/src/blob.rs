//! Blobs: immutable bytes, named by their content.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use box_digest::{Digest, Hasher, Sha256};
use host_fs::publish::FileDraft;

use crate::error::{IoContext, io_within};
use crate::reserve::Reserve;
use crate::store::{BLOB_MODE, draft};
use crate::{Store, StoreError};
use host_fs::FileError;

/// The bytes of a blob to be; without a name nothing of it stays.
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

    /// Returns a further handle of the file.
    pub(crate) fn file(&self) -> Result<File, StoreError> {
        self.draft.file().try_clone().context("open again", &self.draft.path())
    }

    /// Cuts what was written off after so many bytes. The next ones are written there.
    pub(crate) fn cut(&self, size: u64) -> io::Result<()> {
        let mut file = self.draft.file();
        file.set_len(size)?;
        file.seek(SeekFrom::Start(size)).map(drop)
    }

    /// Flushes the bytes to the disk and gives them the name that they hash to. A file that has the
    /// name already is replaced at once: it has the same content, unless it is damaged, and is then
    /// mended.
    pub(crate) fn publish(self, blob: &Digest) -> Result<(), StoreError> {
        let path = self.store.blob_path(blob);
        // Before it is there: what a collection finds is either used by this process or younger.
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

/// Writes a blob of yet unknown content; without a commit nothing of it stays.
#[derive(Debug)]
pub struct BlobWriter<'store> {
    raw: RawBlob<'store>,
    hasher: Hasher<Sha256>,
}

impl<'store> BlobWriter<'store> {
    pub(crate) fn new(store: &'store Store) -> Result<Self, StoreError> {
        Ok(Self { raw: RawBlob::new(store)?, hasher: Hasher::default() })
    }

    /// Returns how many bytes were written so far.
    pub const fn size(&self) -> u64 {
        self.hasher.count()
    }

    /// Returns the name that a commit would give to what was written so far.
    pub fn id(&self) -> Digest {
        self.hasher.digest()
    }

    /// Gives the blob its name and returns it with its size in bytes. A file that has the name
    /// already is replaced, whether it is whole or damaged.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]; the store is then as it was.
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
