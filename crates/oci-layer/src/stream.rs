//! Decompresses in advance: one thread decompresses a layer's blob, another reads the archive in it. If no
//! thread can be started, the reader decompresses the blob itself.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use box_digest::{Hasher, Sha256};

use super::decode::{Compression, START};
use super::gzip::Gzip;
use super::read::{Finished, hash};
use super::room::Room;
use super::total::Total;
use super::zstd::Zstd;

/// The size of a piece, in bytes: small enough for the processor's caches, large enough to be worth a message.
const PIECE: usize = 128 << 10;
/// The number of buffers for pieces, which limits the memory.
const PIECES: usize = 8;

/// A message of the thread that decompresses: uncompressed bytes or an error.
type Piece = io::Result<Vec<u8>>;

/// The uncompressed archive of a blob.
type Plain<'scope> = Box<dyn Read + Send + 'scope>;

/// An uncompressed archive that another thread unpacks. It is hashed and counted while it is read.
pub(super) struct Stream<'scope> {
    source: Source<'scope>,
    /// Counts the archive's bytes, together with other layers.
    total: &'scope Total,
    piece: Vec<u8>,
    /// The number of bytes of `piece` that were read.
    position: usize,
    hasher: Hasher<Sha256>,
    limit: u64,
    /// The error of a failed read; every later read fails, too.
    failed: Option<io::ErrorKind>,
}

/// The source of the pieces.
enum Source<'scope> {
    /// From another thread.
    Thread {
        pieces: Receiver<Piece>,
        /// Returns the buffers of read pieces to the thread, which fills them again.
        spare: Sender<Vec<u8>>,
    },
    /// From the blob, which the reader decompresses itself.
    Here(Plain<'scope>),
}

impl<'scope> Stream<'scope> {
    /// Starts to unpack a blob. The thread ends by itself when the stream is dropped or read to its end.
    /// If no thread can be started, the handle is `None`. More uncompressed bytes than `limit` are an error.
    pub(super) fn start(
        scope: &'scope Scope<'scope, '_>,
        blob: impl Read + Send + 'scope,
        limit: u64,
        total: &'scope Total,
    ) -> (Self, Option<ScopedJoinHandle<'scope, ()>>) {
        let (source, unpacking) = ahead(scope, unpacked(blob, &total.room));
        let hasher = Hasher::default();
        let (piece, position, failed) = (Vec::new(), 0, None);
        (Self { source, total, piece, position, hasher, limit, failed }, unpacking)
    }

    /// Reads the rest of the stream, up to the first error.
    pub(super) fn finish(mut self) -> Finished {
        let drained = io::copy(&mut self, &mut io::sink()).map(|_| ());
        Finished { drained, digest: self.hasher.digest(), count: self.hasher.count() }
    }

    /// Takes the next piece, unless an earlier one has failed.
    fn advance(&mut self) -> io::Result<()> {
        let taken = match self.failed {
            Some(kind) => Err(kind.into()),
            None => self.next_piece(),
        };
        taken.inspect_err(|error| self.failed = Some(error.kind()))
    }

    /// Replaces the piece that was read by the next one, if there is one.
    fn next_piece(&mut self) -> io::Result<()> {
        self.position = 0;
        let read = std::mem::take(&mut self.piece);
        self.piece = match &mut self.source {
            Source::Thread { pieces, spare } => {
                if read.capacity() > 0 {
                    // Fails if the other thread has ended. The buffer is then not needed.
                    drop(spare.send(read));
                }
                let Ok(piece) = pieces.recv() else { return Ok(()) };
                piece?
            }
            Source::Here(plain) => {
                let mut piece = read;
                piece.clear();
                plain.take(PIECE as u64).read_to_end(&mut piece)?;
                piece
            }
        };
        self.total.unpack(self.piece.len() as u64).map_err(io::Error::other)?;
        hash(&mut self.hasher, &self.piece, self.limit)
    }
}

/// Decompresses a blob on another thread, if one can be started.
fn ahead<'scope>(
    scope: &'scope Scope<'scope, '_>,
    plain: Plain<'scope>,
) -> (Source<'scope>, Option<ScopedJoinHandle<'scope, ()>>) {
    let (full, pieces) = sync_channel(PIECES);
    let (spare, empty) = channel();
    // If the thread cannot be started, its closure is dropped, and `plain` stays here.
    let plain = Arc::new(Mutex::new(Some(plain)));
    let take = |plain: &Mutex<Option<Plain<'scope>>>| {
        plain.lock().unwrap_or_else(PoisonError::into_inner).take()
    };
    let its = Arc::clone(&plain);
    let body = move || take(&its).into_iter().for_each(|plain| pump(plain, &empty, &full));
    let started = Builder::new().name("unpack".to_owned()).spawn_scoped(scope, body);
    let Ok(unpacking) = started else {
        let plain = take(&plain).unwrap_or_else(|| Box::new(io::empty()));
        return (Source::Here(plain), None);
    };
    for _ in 0..PIECES {
        // Fails if the thread has ended. The buffer is then not needed.
        drop(spare.send(Vec::with_capacity(PIECE)));
    }
    (Source::Thread { pieces, spare }, Some(unpacking))
}

/// The memory for zstd windows of files that are not layers.
static ROOM: Room = Room::new();

/// Decompresses a file. Its first bytes select gzip, zstd or no compression. The output is not bounded: the caller must count it.
pub fn decompressed<'a>(file: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
    unpacked(file, &ROOM)
}

/// Decompresses a blob. Its first bytes select the compression.
fn unpacked<'scope>(blob: impl Read + Send + 'scope, room: &'scope Room) -> Plain<'scope> {
    let mut blob = BufReader::with_capacity(PIECE, blob);
    let mut start = Vec::new();
    let read = blob.by_ref().take(START as u64).read_to_end(&mut start);
    let compression = Compression::of_start(&start);
    let blob = io::Cursor::new(start).chain(Rest { failed: read.err(), blob });
    match compression {
        Compression::None => Box::new(blob),
        Compression::Gzip => Box::new(Gzip::new(blob)),
        Compression::Zstd => Box::new(Zstd::new(blob, room)),
    }
}

/// A blob after its first bytes. An error of reading these is returned first.
struct Rest<B> {
    failed: Option<io::Error>,
    blob: B,
}

impl<B: BufRead> Read for Rest<B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.failed.take().map_or_else(|| self.blob.read(buffer), Err)
    }
}

impl<B: BufRead> BufRead for Rest<B> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.failed.take().map_or_else(|| self.blob.fill_buf(), Err)
    }

    fn consume(&mut self, amount: usize) {
        self.blob.consume(amount);
    }
}

impl BufRead for Stream<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.position >= self.piece.len() {
            self.advance()?;
        }
        Ok(&self.piece[self.position..])
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.piece.len().min(self.position + amount);
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Unpacks a blob piece by piece, until it ends or the reader stops.
fn pump(mut from: impl Read, empty: &Receiver<Vec<u8>>, full: &SyncSender<Piece>) {
    for mut piece in empty {
        piece.clear();
        let read = from.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let is_last = piece.len() < PIECE;
        // Bytes before an error are sent before the error.
        if !piece.is_empty() && full.send(Ok(piece)).is_err() {
            return;
        }
        match read {
            Ok(_) if is_last => return,
            Ok(_) => {}
            Err(error) => return drop(full.send(Err(error))),
        }
    }
}
