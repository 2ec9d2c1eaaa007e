//! Writing a large blob: one thread writes the bytes, a second one hashes them, and a third one flushes them to the disk
//! in the meantime, so that the commit has to wait only for the last bytes. If no thread can be started for hashing, the
//! writer hashes the bytes.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use box_digest::{Digest, Hasher, Sha256};

use crate::blob::RawBlob;
use crate::{Store, StoreError};

/// The size of one message to the hashing thread, in bytes. It is small because several layers are written at the same time.
const PIECE: usize = 256 << 10;
/// The number of messages that may wait for the hashing thread.
const WAITING: usize = 4;
/// The interval between two flushes to the disk, in written bytes.
const FLUSHED: u64 = 64 << 20;

/// Writes a blob whose digest is not known yet, with separate threads for hashing and flushing. Without a commit, the
/// bytes are removed. Bytes after a mark can be discarded.
#[derive(Debug)]
pub struct BulkWriter<'scope, 'store> {
    raw: RawBlob<'store>,
    hashing: Hashing<'scope>,
    flushing: Option<Flushing<'scope>>,
    /// The bytes that are not written yet, at most [`PIECE`].
    piece: Vec<u8>,
    /// The number of written bytes, without `piece`.
    size: u64,
    /// The value of `size` at the mark.
    marked: u64,
}

/// A message to the hasher. The messages are sent in the order of the writes.
#[derive(Debug)]
enum HashMessage {
    /// Hashes more bytes.
    Piece(Arc<Vec<u8>>),
    /// Sets the mark after the bytes so far.
    Mark,
    /// Discards the bytes after the mark.
    Back,
}

/// The hash of the bytes so far, and of the bytes before the mark.
#[derive(Debug, Default)]
struct MarkedHasher {
    now: Hasher<Sha256>,
    marked: Hasher<Sha256>,
}

impl MarkedHasher {
    fn take(&mut self, message: HashMessage) {
        match message {
            HashMessage::Piece(piece) => self.now.update(piece.as_slice()),
            HashMessage::Mark => self.marked.clone_from(&self.now),
            HashMessage::Back => self.now.clone_from(&self.marked),
        }
    }
}

/// The thread that hashes the blob, or the hasher itself.
#[derive(Debug)]
enum Hashing<'scope> {
    Thread(SyncSender<HashMessage>, ScopedJoinHandle<'scope, Digest>),
    Here(Box<MarkedHasher>),
}

impl<'scope> Hashing<'scope> {
    fn start(scope: &'scope Scope<'scope, '_>) -> Self {
        let (sender, receiver) = sync_channel(WAITING);
        let thread =
            Builder::new().name("hash".to_owned()).spawn_scoped(scope, move || hash(&receiver));
        thread.map_or_else(|_| Self::Here(Box::default()), |thread| Self::Thread(sender, thread))
    }

    fn tell(&mut self, message: HashMessage) -> io::Result<()> {
        match self {
            Self::Thread(sender, _) => sender.send(message).map_err(|_| ended()),
            Self::Here(hasher) => {
                hasher.take(message);
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<Digest> {
        match self {
            Self::Thread(sender, thread) => {
                drop(sender);
                thread.join().map_err(|_| ended())
            }
            Self::Here(hasher) => Ok(hasher.now.digest()),
        }
    }
}

/// The thread that flushes the blob at intervals. Without this thread, all bytes are flushed at the end.
type Flushing<'scope> = (SyncSender<()>, ScopedJoinHandle<'scope, io::Result<()>>);

impl<'scope, 'store> BulkWriter<'scope, 'store> {
    /// Starts a blob, with the threads that hash and flush it.
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
        Ok(Self { raw, hashing: Hashing::start(scope), flushing, piece, size: 0, marked: 0 })
    }

    /// Names the blob by its digest, and returns the digest and the size in bytes, like
    /// [`BlobWriter::commit`](crate::BlobWriter::commit).
    ///
    /// # Errors
    /// [`StoreError::File`] or [`StoreError::Full`]. The store is then unchanged.
    pub fn commit(mut self) -> Result<(Digest, u64), StoreError> {
        let written = self.pass_on();
        let hashed = self.hashing.finish();
        let flushed = self.flushing.map_or(Ok(()), |(flushes, thread)| {
            drop(flushes);
            thread.join().unwrap_or_else(|_| Err(ended()))
        });
        // The kernel reports a write error only once, to the first flush.
        written.and(flushed).map_err(|source| self.raw.error("write", source))?;
        let blob = hashed.map_err(|source| self.raw.error("hash", source))?;
        self.raw.publish(&blob)?;
        Ok((blob, self.size))
    }

    /// Sets the mark, which replaces an earlier one. A new blob has its mark at the start.
    ///
    /// # Errors
    /// An I/O error.
    pub fn mark(&mut self) -> io::Result<()> {
        self.pass_on()?;
        self.marked = self.size;
        self.hashing.tell(HashMessage::Mark)
    }

    /// Discards the bytes after the mark.
    ///
    /// # Errors
    /// An I/O error.
    pub fn back_to_mark(&mut self) -> io::Result<()> {
        self.piece.clear();
        self.raw.cut(self.marked)?;
        self.size = self.marked;
        self.hashing.tell(HashMessage::Back)
    }

    /// Sends the bytes in `piece` to the hasher, and writes them.
    fn pass_on(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = Arc::new(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE)));
        self.size += piece.len() as u64;
        self.hashing.tell(HashMessage::Piece(Arc::clone(&piece)))?;
        self.raw.write_all(&piece)?;
        if self.size % FLUSHED < PIECE as u64
            && let Some((flushes, _)) = &self.flushing
        {
            // If a flush is still running, the next one includes these bytes.
            flushes.try_send(()).ok();
        }
        Ok(())
    }
}

impl Write for BulkWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE {
            self.pass_on()?;
        }
        Ok(length)
    }

    /// Does nothing. `write` writes a piece when it is full, and `commit` writes the last piece.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hash(receiver: &Receiver<HashMessage>) -> Digest {
    let mut hasher = MarkedHasher::default();
    receiver.iter().for_each(|message| hasher.take(message));
    hasher.now.digest()
}

/// Flushes a file for each message.
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
    fn what_was_written_since_a_mark_is_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        for (size, wrong) in [0, 1, PIECE, 3 * PIECE + 5].map(|size| (size, 2 * PIECE + 7)) {
            let kept: Vec<u8> = (0..=250).cycle().take(size).collect();
            let (blob, written) = std::thread::scope(|scope| {
                let mut writer = BulkWriter::new(&store, scope).unwrap();
                writer.write_all(&vec![1; wrong]).unwrap();
                writer.back_to_mark().unwrap();
                writer.write_all(&kept).unwrap();
                writer.mark().unwrap();
                for part in [wrong, 3] {
                    writer.write_all(&vec![2; part]).unwrap();
                    writer.back_to_mark().unwrap();
                }
                writer.write_all(b"end").unwrap();
                writer.commit().unwrap()
            });
            let expected = [kept.as_slice(), b"end"].concat();
            assert_eq!((blob, written), (Digest::of(&expected), expected.len() as u64));
            assert_eq!(store.read(&blob).unwrap(), expected);
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
