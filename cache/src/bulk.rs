//! Writing a large blob: while one thread writes it, another one hashes it, and a third one flushes
//! what is written to the disk, so that little is left to wait for at the end. Where the system gives no
//! further thread, the writer hashes as well.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use box_digest::{Digest, Hasher, Sha256};

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
    hashing: Hashing<'scope>,
    flushing: Option<Flushing<'scope>>,
    piece: Vec<u8>,
    size: u64,
}

/// Who hashes the blob.
#[derive(Debug)]
enum Hashing<'scope> {
    Thread(SyncSender<Arc<Vec<u8>>>, ScopedJoinHandle<'scope, Digest>),
    Here(Box<Hasher<Sha256>>),
}

impl<'scope> Hashing<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>) -> Self {
        let (pieces, waiting) = sync_channel(WAITING);
        let thread =
            Builder::new().name("hash".to_owned()).spawn_scoped(scope, move || hash(&waiting));
        thread.map_or_else(|_| Self::Here(Box::default()), |thread| Self::Thread(pieces, thread))
    }

    fn add(&mut self, piece: &Arc<Vec<u8>>) -> io::Result<()> {
        match self {
            Self::Thread(pieces, _) => pieces.send(Arc::clone(piece)).map_err(|_| ended()),
            Self::Here(hasher) => {
                hasher.update(piece.as_slice());
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<Digest> {
        match self {
            Self::Thread(pieces, thread) => {
                drop(pieces);
                thread.join().map_err(|_| ended())
            }
            Self::Here(hasher) => Ok(hasher.digest()),
        }
    }
}

/// The thread that flushes the blob now and then. Without one, all is flushed at the end.
type Flushing<'scope> = (SyncSender<()>, ScopedJoinHandle<'scope, io::Result<()>>);

impl<'scope, 'store> BulkWriter<'scope, 'store> {
    /// Starts a blob, and the threads that hash and flush it.
    ///
    /// # Errors
    /// [`StoreError::File`].
    pub fn new(store: &'store Store, scope: &'scope Scope<'scope, '_>) -> Result<Self, StoreError> {
        let raw = RawBlob::new(store)?;
        let (flushes, wanted) = sync_channel(1);
        let file = raw.file()?;
        let flusher = Builder::new().name("flush".to_owned());
        let flusher = flusher.spawn_scoped(scope, move || flush(&file, &wanted));
        let flushing = flusher.ok().map(|thread| (flushes, thread));
        let piece = Vec::with_capacity(PIECE);
        Ok(Self { raw, hashing: Hashing::start(scope), flushing, piece, size: 0 })
    }

    /// Gives the blob its name and returns it with its size in bytes, as
    /// [`BlobWriter::commit`](crate::BlobWriter::commit) does.
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]; the store is then as it was.
    pub fn commit(mut self) -> Result<(Digest, u64), StoreError> {
        let written = self.pass_on();
        let hashed = self.hashing.finish();
        let flushed = self.flushing.map_or(Ok(()), |(flushes, thread)| {
            drop(flushes);
            thread.join().unwrap_or_else(|_| Err(ended()))
        });
        // The kernel reports a write error once, to the first flush.
        written.and(flushed).map_err(|source| self.raw.error("write", source))?;
        let blob = hashed.map_err(|source| self.raw.error("hash", source))?;
        self.raw.publish(&blob)?;
        Ok((blob, self.size))
    }

    /// Writes what was collected, while it is hashed.
    fn pass_on(&mut self) -> io::Result<()> {
        let piece = Arc::new(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        self.size += piece.len() as u64;
        self.hashing.add(&piece)?;
        self.raw.write_all(&piece)?;
        if self.size % FLUSHED < PIECE as u64
            && let Some((flushes, _)) = &self.flushing
        {
            // If the last flush is still running, this one is done with the next.
            flushes.try_send(()).ok();
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
