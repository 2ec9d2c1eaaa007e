//! Writing a large blob: while one thread writes it, another one hashes it, and a third one flushes
//! what is written to the disk, so that little is left to wait for at the end.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use box_digest::{Digest, Hasher};

use crate::blob::RawBlob;
use crate::{Store, StoreError};

/// Bytes that go to the hashing thread at once.
const PIECE: usize = 1 << 20;
/// How many pieces may wait for it.
const WAITING: usize = 4;
/// After so many bytes the disk gets to work.
const FLUSHED: u64 = 64 << 20;

/// Writes a blob of yet unknown content, hashed by a thread of its own; without a commit nothing of
/// it stays.
#[derive(Debug)]
pub struct BulkWriter<'scope, 'store> {
    raw: RawBlob<'store>,
    pieces: SyncSender<Arc<Vec<u8>>>,
    hasher: ScopedJoinHandle<'scope, Digest>,
    flushes: SyncSender<()>,
    flusher: ScopedJoinHandle<'scope, io::Result<()>>,
    piece: Vec<u8>,
    size: u64,
}

impl<'scope, 'store> BulkWriter<'scope, 'store> {
    /// Starts a blob, and the thread that hashes it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn new(store: &'store Store, scope: &'scope Scope<'scope, '_>) -> Result<Self, StoreError> {
        let raw = RawBlob::new(store)?;
        let (pieces, waiting) = sync_channel(WAITING);
        let hasher = scope.spawn(move || hash(&waiting));
        let (flushes, wanted) = sync_channel(1);
        let file = raw.file()?;
        let flusher = scope.spawn(move || flush(&file, &wanted));
        let piece = Vec::with_capacity(PIECE);
        Ok(Self { raw, pieces, hasher, flushes, flusher, piece, size: 0 })
    }

    /// Gives the blob its name and returns it with its size in bytes, as
    /// [`BlobWriter::commit`](crate::BlobWriter::commit) does.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]; the store is then as it was.
    pub fn commit(mut self) -> Result<(Digest, u64), StoreError> {
        let written = self.pass_on();
        drop((self.pieces, self.flushes));
        let (hashed, flushed) = (self.hasher.join(), self.flusher.join());
        // The kernel reports a write error once, to the first flush.
        let whole = written.and(flushed.unwrap_or_else(|_| Err(ended())));
        whole.map_err(|source| self.raw.error("write", source))?;
        let blob = hashed.map_err(|_| self.raw.error("hash", ended()))?;
        self.raw.publish(&blob)?;
        Ok((blob, self.size))
    }

    /// Writes what was collected, while it is hashed.
    fn pass_on(&mut self) -> io::Result<()> {
        let piece = Arc::new(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        self.size += piece.len() as u64;
        self.pieces.send(Arc::clone(&piece)).map_err(|_| ended())?;
        self.raw.write_all(&piece)?;
        if self.size % FLUSHED < PIECE as u64 {
            // If the last flush is still running, this one is done with the next.
            self.flushes.try_send(()).ok();
        }
        Ok(())
    }
}

impl Write for BulkWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE {
            self.pass_on()?;
        }
        Ok(taken)
    }

    /// Does nothing: a piece is written when it is full, the last one by the commit.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hash(pieces: &Receiver<Arc<Vec<u8>>>) -> Digest {
    let mut hasher = Hasher::default();
    pieces.iter().for_each(|piece| hasher.update(piece.as_slice()));
    hasher.digest()
}

/// Flushes a file whenever that is wanted.
fn flush(file: &File, wanted: &Receiver<()>) -> io::Result<()> {
    wanted.iter().try_for_each(|()| file.sync_data())
}

fn ended() -> io::Error {
    io::Error::other("a thread that works on it has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_blob_is_hashed_and_written_whole() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE + 3] {
            let bytes: Vec<u8> = (0..=250).cycle().take(size).collect();
            let (blob, written) = std::thread::scope(|scope| {
                let mut writer = BulkWriter::new(&store, scope).unwrap();
                bytes.chunks(777_777).for_each(|chunk| writer.write_all(chunk).unwrap());
                writer.commit().unwrap()
            });
            assert_eq!((blob, written), (Digest::of(&bytes), size as u64));
            assert_eq!(store.read(&blob).unwrap(), bytes);
        }
    }

    #[test]
    fn an_abandoned_blob_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        std::thread::scope(|scope| {
            let mut writer = BulkWriter::new(&store, scope).unwrap();
            writer.write_all(&vec![7; 3 * PIECE]).unwrap();
        });
        assert_eq!(std::fs::read_dir(store.root().join("tmp")).unwrap().count(), 0);
    }
}
