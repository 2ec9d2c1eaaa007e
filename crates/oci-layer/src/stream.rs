//! Unpacking ahead: one thread decompresses a layer's blob, another reads the archive in it.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

use box_digest::{Hasher, Sha256};

use super::decode::{Compression, START};
use super::gzip::Gzip;
use super::read::{Finished, HashingReader, hash};
use super::zstd::Zstd;

/// Bytes of a piece: small enough for the processor's caches, large enough to be worth a message.
const PIECE: usize = 128 << 10;
/// How many pieces are there at all, so that memory is bounded.
const PIECES: usize = 8;

/// Bytes on their way from the thread that unpacks them.
type Piece = io::Result<Vec<u8>>;

/// An uncompressed archive that another thread unpacks. It is hashed and counted while it is read.
#[derive(Debug)]
pub(super) struct Stream {
    pieces: Receiver<Piece>,
    /// Where read pieces go to be filled again.
    spare: Sender<Vec<u8>>,
    piece: Vec<u8>,
    /// How much of the piece is read.
    position: usize,
    hasher: Hasher<Sha256>,
    limit: u64,
    /// The error of a failed read; every later read fails, too.
    failed: Option<io::ErrorKind>,
}

impl Stream {
    /// Starts to unpack a blob. The thread's result is what is left of the blob; it ends by itself
    /// when the stream is dropped or read to its end. More bytes than `limit` are an error.
    pub(super) fn start<'scope, B: Read + Send + 'scope>(
        scope: &'scope Scope<'scope, '_>,
        mut blob: HashingReader<B>,
        limit: u64,
    ) -> (Self, ScopedJoinHandle<'scope, HashingReader<B>>) {
        let (full, pieces) = sync_channel(PIECES);
        let (spare, empty) = channel();
        for _ in 0..PIECES {
            // The receiver is here, so that it takes them.
            drop(spare.send(Vec::with_capacity(PIECE)));
        }
        let unpacking = scope.spawn(move || {
            unpack(&mut blob, &empty, &full);
            blob
        });
        let hasher = Hasher::default();
        let (piece, position, failed) = (Vec::new(), 0, None);
        let stream = Self { pieces, spare, piece, position, hasher, limit, failed };
        (stream, unpacking)
    }

    /// Reads what is left as far as possible.
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

    /// Takes the next piece, in the place of the one that was read; nothing at the end.
    fn next_piece(&mut self) -> io::Result<()> {
        self.position = 0;
        let read = std::mem::take(&mut self.piece);
        if read.capacity() > 0 {
            // Where the other thread has ended, nobody needs it.
            drop(self.spare.send(read));
        }
        let Ok(piece) = self.pieces.recv() else { return Ok(()) };
        self.piece = piece?;
        hash(&mut self.hasher, &self.piece, self.limit)
    }
}

impl BufRead for Stream {
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

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Unpacks a blob piece by piece, until it ends or the reader stops.
fn unpack(blob: &mut impl Read, empty: &Receiver<Vec<u8>>, full: &SyncSender<Piece>) {
    let mut blob = BufReader::with_capacity(PIECE, blob);
    let mut start = Vec::new();
    if let Err(error) = blob.by_ref().take(START as u64).read_to_end(&mut start) {
        return drop(full.send(Err(error)));
    }
    let blob = start.as_slice().chain(blob);
    match Compression::of_start(&start) {
        Compression::None => pump(blob, empty, full),
        Compression::Gzip => pump(Gzip::new(blob), empty, full),
        Compression::Zstd => match Zstd::new(blob) {
            Ok(plain) => pump(plain, empty, full),
            Err(error) => drop(full.send(Err(error))),
        },
    }
}

fn pump(mut from: impl Read, empty: &Receiver<Vec<u8>>, full: &SyncSender<Piece>) {
    for mut piece in empty {
        piece.clear();
        let read = from.by_ref().take(PIECE as u64).read_to_end(&mut piece);
        let is_last = piece.len() < PIECE;
        // What was read before an error counts.
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
