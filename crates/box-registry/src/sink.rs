//! Where plain blobs go.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use box_cache::{BlobWriter, Store};
use box_digest::Digest;

/// A place for plain blobs, from several threads at once.
pub trait Sink: Sync {
    /// Returns whether the place has a blob of this size, undamaged: it is then not fetched.
    ///
    /// # Errors
    /// The place cannot be read.
    fn has(&self, blob: &Digest, size: u64) -> io::Result<bool>;

    /// Starts a blob of so many bytes.
    ///
    /// # Errors
    /// The place cannot be written to.
    fn draft(&self, size: u64) -> io::Result<Box<dyn SinkDraft + '_>>;

    /// Returns the store that the blobs go to, if it is one: in a store each blob is fetched by one process at a time, its free space
    /// is known, and it remembers how a blob was compressed.
    fn store(&self) -> Option<&Store> {
        None
    }
}

/// The first bytes of a blob. Without a commit nothing of them stays.
pub trait SinkDraft: Write {
    /// Keeps what was written under this digest, which is that of the bytes.
    ///
    /// # Errors
    /// The place cannot be written to; nothing stays then.
    fn commit(self: Box<Self>, blob: &Digest) -> io::Result<()>;
}

impl Sink for Store {
    fn has(&self, blob: &Digest, size: u64) -> io::Result<bool> {
        // One that is damaged is mended.
        Ok(self.size(blob) == Some(size) && self.is_whole(blob))
    }

    fn draft(&self, _: u64) -> io::Result<Box<dyn SinkDraft + '_>> {
        Ok(Box::new(self.writer().map_err(io::Error::other)?))
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

/// Documents in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

/// A document that is being read.
#[derive(Debug)]
struct MemoryDraft(Vec<u8>, Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Returns the document that was kept last.
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
