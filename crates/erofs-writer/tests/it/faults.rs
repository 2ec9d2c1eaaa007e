//! Faults at every call of the destination and of the source. Each fault is returned as its typed error. An interrupted
//! or short write is continued, and gives the same image.

use std::io::{self, ErrorKind, Write};

use box_digest::Blake3Digest;
use erofs_writer::{ContentSource, Error, ImageBuilder, Summary};

use crate::model::{Kind, Store, Tree, meta};

/// A tree whose image takes many writes. It has contents that follow inodes, that are in blocks, and that are longer than
/// the writer's buffer, and a directory of many blocks.
fn tree() -> Tree {
    let sizes = [0, 100, 2048, 4096, 5000, 262_143, 262_144, 262_145, 600_000, 900_000];
    let file = |(number, size)| (format!("file-{size}").into_bytes(), vec![number; size]);
    let files = (0..).zip(sizes).map(file).map(|(name, bytes)| (name, Kind::File(bytes)));
    let mut tree = Tree::flat(files);
    let directory = tree.add(0, b"directory", meta(), Kind::Directory);
    for number in 0..2500 {
        tree.add(directory, format!("{number:0100}"), meta(), Kind::Fifo);
    }
    tree
}

/// A fault of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Reports an error.
    Fails(ErrorKind),
    /// Writes no bytes and returns `Ok(0)`.
    TakesNothing,
    /// Writes one byte.
    TakesOne,
    /// Returns [`ErrorKind::Interrupted`], after which the caller must retry.
    Interrupted,
}

/// A destination with a fault at the write number `at`. All other writes succeed.
#[derive(Debug)]
struct Faulty {
    fault: Fault,
    at: usize,
    writes: usize,
    taken: Vec<u8>,
    /// Whether a fault has happened after which the writer must not write again.
    failed: bool,
    flushed: bool,
}

impl Faulty {
    fn new(fault: Fault, at: usize) -> Self {
        Self { fault, at, writes: 0, taken: Vec::new(), failed: false, flushed: false }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.taken.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}

impl Write for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(!self.failed, "a write after {:?}", self.fault);
        assert!(!bytes.is_empty());
        self.writes += 1;
        if self.writes - 1 != self.at {
            return self.take(bytes);
        }
        self.failed = matches!(self.fault, Fault::Fails(_) | Fault::TakesNothing);
        match self.fault {
            Fault::Fails(kind) => Err(kind.into()),
            Fault::TakesNothing => Ok(0),
            Fault::TakesOne => self.take(&bytes[..1]),
            Fault::Interrupted => Err(ErrorKind::Interrupted.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        assert!(!self.failed, "a flush after {:?}", self.fault);
        self.flushed = true;
        Ok(())
    }
}

/// Writes contents whole or in pieces, and passes the writer's errors on or ignores them.
#[derive(Debug)]
struct Source {
    store: Store,
    piece: usize,
    careless: bool,
}

impl ContentSource for Source {
    fn copy(&mut self, content: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        for piece in self.store.0[content].chunks(self.piece) {
            let result = out.write_all(piece);
            if !self.careless {
                result?;
            }
        }
        Ok(())
    }
}

fn write(out: &mut dyn Write, piece: usize, careless: bool) -> Result<Summary, Error> {
    let (builder, store) = tree().builder();
    builder.write(out, &mut Source { store, piece, careless })
}

/// Returns the image, and how many writes it takes.
fn faultless(piece: usize) -> (Vec<u8>, Summary, usize) {
    let mut out = Faulty::new(Fault::Interrupted, usize::MAX);
    let summary = write(&mut out, piece, false).unwrap();
    assert!(out.flushed);
    (out.taken, summary, out.writes)
}

#[test]
fn every_write_of_the_destination_may_fail() {
    for (piece, careless) in [(usize::MAX, false), (usize::MAX, true), (9973, false), (9973, true)]
    {
        let (image, _, writes) = faultless(piece);
        assert!(writes >= 10, "{writes} writes");
        for at in 0..writes {
            for (fault, expected) in [
                (Fault::Fails(ErrorKind::StorageFull), ErrorKind::StorageFull),
                (Fault::Fails(ErrorKind::BrokenPipe), ErrorKind::BrokenPipe),
                (Fault::TakesNothing, ErrorKind::WriteZero),
            ] {
                let mut out = Faulty::new(fault, at);
                let error = write(&mut out, piece, careless).unwrap_err();
                let Error::Write(source) = &error else { panic!("{fault:?} at {at}: {error}") };
                assert_eq!(source.kind(), expected, "{fault:?} at {at}");
                assert!(out.failed && !out.flushed);
                assert!(image.starts_with(&out.taken), "{fault:?} at {at}");
            }
        }
    }
}

#[test]
fn a_short_or_interrupted_write_is_continued() {
    for piece in [usize::MAX, 9973] {
        let (image, summary, writes) = faultless(piece);
        for at in 0..writes {
            for fault in [Fault::TakesOne, Fault::Interrupted] {
                let mut out = Faulty::new(fault, at);
                assert_eq!(write(&mut out, piece, false).unwrap(), summary);
                assert_eq!(out.writes, writes + 1, "{fault:?} at {at}");
                assert!(out.flushed && out.taken == image, "{fault:?} at {at}");
            }
        }
    }
}

/// A destination whose flush fails.
struct Unflushable;

impl Write for Unflushable {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(ErrorKind::QuotaExceeded.into())
    }
}

#[test]
fn a_failing_flush_is_reported() {
    let error = write(&mut Unflushable, 9973, false).unwrap_err();
    assert!(matches!(&error, Error::Write(source) if source.kind() == ErrorKind::QuotaExceeded));
}

/// A fault of a source at one content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// Writes this many bytes too few and returns `Ok`.
    Short(usize),
    /// Writes nothing and returns `Ok`.
    Nothing,
    /// Writes this many bytes too many.
    Long(usize),
    /// Writes this many bytes too many, and ignores the writer's error.
    LongAndCareless(usize),
    /// Fails before the first byte.
    FailsAtOnce,
    /// Fails in the middle.
    FailsHalfway,
    /// Fails after the last byte.
    FailsAtLast,
}

const FLAWS: [Flaw; 9] = [
    Flaw::Short(1),
    Flaw::Nothing,
    Flaw::Long(1),
    Flaw::Long(4096),
    Flaw::LongAndCareless(1),
    Flaw::LongAndCareless(300_000),
    Flaw::FailsAtOnce,
    Flaw::FailsHalfway,
    Flaw::FailsAtLast,
];

/// A source with a flaw at the content number `at`.
#[derive(Debug)]
struct Flawed {
    store: Store,
    flaw: Flaw,
    at: usize,
    contents: usize,
    met: Option<(Blake3Digest, u64)>,
}

impl ContentSource for Flawed {
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        assert_eq!(self.met, None, "asked for more after {:?}", self.flaw);
        let bytes = &self.store.0[content];
        self.contents += 1;
        if self.contents - 1 != self.at {
            return out.write_all(bytes);
        }
        self.met = Some((*content, size));
        let failure = Err(ErrorKind::UnexpectedEof.into());
        match self.flaw {
            Flaw::Short(by) => out.write_all(&bytes[by..]),
            Flaw::Nothing => Ok(()),
            Flaw::Long(by) => {
                out.write_all(bytes)?;
                out.write_all(&vec![0; by])
            }
            Flaw::LongAndCareless(by) => {
                drop(out.write_all(&[bytes.as_slice(), &vec![0; by]].concat()));
                drop(out.write_all(bytes));
                Ok(())
            }
            Flaw::FailsAtOnce => failure,
            Flaw::FailsHalfway => out.write_all(&bytes[..bytes.len() / 2]).and(failure),
            Flaw::FailsAtLast => out.write_all(bytes).and(failure),
        }
    }
}

fn write_flawed(flaw: Flaw, at: usize) -> (Result<Summary, Error>, Flawed) {
    let (builder, store): (ImageBuilder, Store) = tree().builder();
    let mut source = Flawed { store, flaw, at, contents: 0, met: None };
    (builder.write(&mut io::sink(), &mut source), source)
}

#[test]
fn every_content_of_the_source_may_fail() {
    let (result, source) = write_flawed(Flaw::Nothing, usize::MAX);
    result.unwrap();
    // The empty content is not copied.
    assert_eq!(source.contents, 9);
    for at in 0..source.contents {
        for flaw in FLAWS {
            let (result, source) = write_flawed(flaw, at);
            check(flaw, source.met.unwrap(), &result.unwrap_err());
        }
    }
}

/// Checks that the error matches the flaw, and has the digest and the size of the content.
fn check(flaw: Flaw, (id, length): (Blake3Digest, u64), error: &Error) {
    let right = match (flaw, error) {
        (Flaw::Short(by), &Error::ContentTooShort { content, size, delivered }) => {
            (content, size, delivered) == (id, length, length - by as u64)
        }
        (Flaw::Nothing, &Error::ContentTooShort { content, size, delivered }) => {
            (content, size, delivered) == (id, length, 0)
        }
        (Flaw::Long(_) | Flaw::LongAndCareless(_), &Error::ContentTooLong { content, size }) => {
            (content, size) == (id, length)
        }
        (
            Flaw::FailsAtOnce | Flaw::FailsHalfway | Flaw::FailsAtLast,
            Error::Content { content, source },
        ) => *content == id && source.kind() == ErrorKind::UnexpectedEof,
        _ => false,
    };
    assert!(right, "{flaw:?} in {id} of {length} bytes: {error}");
}
