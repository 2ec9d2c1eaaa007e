//! Destinations of plain (uncompressed) blobs.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use box_cache::{BlobWriter, Store, StoreError};
use box_digest::Digest;

/// A destination of plain blobs, which several threads use at the same time.
pub trait Sink: Sync {
    /// Returns whether the sink has an undamaged blob of this size, which is then not fetched.
    ///
    /// # Errors
    /// The sink cannot be read.
    fn has(&self, blob: &Digest, size: u64) -> io::Result<bool>;

    /// Begins a blob of this size.
    ///
    /// # Errors
    /// The sink cannot be written.
    fn draft(&self, size: u64) -> io::Result<Box<dyn SinkDraft + '_>>;

    /// Opens a blob that the sink has, and returns its size in bytes. Its bytes are not verified. `None` if the sink lacks the blob,
    /// or keeps none.
    fn open(&self, _: &Digest) -> Option<io::Result<(File, u64)>> {
        None
    }

    /// Makes an unnamed temporary file.
    ///
    /// # Errors
    /// It cannot be made.
    fn scratch(&self) -> io::Result<File> {
        tempfile::tempfile()
    }

    /// Returns the store, if the sink is one. A store lets one process at a time fetch each blob, reports its free space, and
    /// remembers the compressed form of blobs.
    fn store(&self) -> Option<&Store> {
        None
    }
}

/// An incomplete blob. It is discarded unless it is committed.
pub trait SinkDraft: Write {
    /// Keeps the written bytes under their digest.
    ///
    /// # Errors
    /// The sink cannot be written; the blob is then discarded.
    fn commit(self: Box<Self>, blob: &Digest) -> io::Result<()>;
}

impl Sink for Store {
    fn has(&self, blob: &Digest, size: u64) -> io::Result<bool> {
        // Report a damaged blob as absent, so that it is fetched again.
        Ok(self.size(blob) == Some(size) && self.is_whole(blob))
    }

    fn draft(&self, _: u64) -> io::Result<Box<dyn SinkDraft + '_>> {
        Ok(Box::new(self.writer().map_err(io::Error::other)?))
    }

    fn open(&self, blob: &Digest) -> Option<io::Result<(File, u64)>> {
        let file = match self.open_blob(blob) {
            Ok(file) => file,
            Err(StoreError::Missing(_)) => return None,
            Err(error) => return Some(Err(io::Error::other(error))),
        };
        Some(file.metadata().map(|it| (file, it.len())))
    }

    fn scratch(&self) -> io::Result<File> {
        Self::scratch(self).map_err(io::Error::other)
    }

    fn store(&self) -> Option<&Store> {
        Some(self)
    }
}

impl SinkDraft for BlobWriter<'_> {
    fn commit(self: Box<Self>, blob: &Digest) -> io::Result<()> {
        let named = self.id();
        if named != *blob {
            let reason = format!("the store would name it {named}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        Self::commit(*self).map(drop).map_err(io::Error::other)
    }
}

/// A document in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

/// An incomplete document.
#[derive(Debug)]
struct MemoryDraft(Vec<u8>, Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Returns the last document.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Memory {
    fn has(&self, _: &Digest, _: u64) -> io::Result<bool> {
        Ok(false)
    }

    fn draft(&self, _: u64) -> io::Result<Box<dyn SinkDraft + '_>> {
        Ok(Box::new(MemoryDraft(Vec::new(), Arc::clone(&self.0))))
    }
}

impl Write for MemoryDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SinkDraft for MemoryDraft {
    fn commit(self: Box<Self>, _: &Digest) -> io::Result<()> {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = self.0;
        Ok(())
    }
}
