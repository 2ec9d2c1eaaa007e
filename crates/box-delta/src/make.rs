//! Writes a delta.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use box_digest::Digest;
use zstd::zstd_safe::{CCtx, CParameter, compress_bound, get_error_name};

pub use crate::format::Extent;
use crate::format::{self, MAX_FRAME, MAX_PREFIX, MAX_SOURCES, Step};

/// The compression level. Higher levels gain little, because most of a frame repeats its prefix.
const LEVEL: i32 = 4;
/// The window as a power of two of bytes: 32 MiB, which is the longest prefix and the longest frame together.
const WINDOW_LOG: u32 = 25;
/// The number of bytes that are compared at a time.
const COMPARED: u64 = 1 << 20;

/// A blob that the host where the delta is applied has.
#[derive(Debug, Clone, Copy)]
pub struct Source<'f> {
    /// The digest of the blob.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its file.
    pub file: &'f File,
}

/// A part of the new blob, and what it is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The number of bytes of the new blob. The pieces follow each other without gaps.
    pub length: u64,
    /// The range of a source that it is like, or equal to.
    pub like: Option<Extent>,
}

/// How a blob is made of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The parts of the new blob, in their order.
    pub pieces: Vec<Piece>,
}

impl Plan {
    /// Returns the plan of a blob of `size` bytes that as a whole is like a range of a source.
    pub fn whole(like: Extent, size: u64) -> Self {
        Self { pieces: vec![Piece { length: size, like: Some(like) }] }
    }
}

/// Writes the delta that makes the blob `new` of `sources`. Returns the digests of the sources that it uses, without duplicates.
///
/// # Errors
/// If a file cannot be read, or the delta cannot be written. [`io::ErrorKind::FileTooLarge`] if it would have more than
/// [`MAX_SOURCES`] sources, or more steps than the format allows.
pub fn make(
    plan: &Plan,
    sources: &[Source<'_>],
    new: &File,
    out: &mut dyn Write,
) -> io::Result<Vec<Digest>> {
    let (sources, pieces) = used(sources, merged(&plan.pieces));
    if sources.len() > MAX_SOURCES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let named: Vec<_> = sources.iter().map(|it| (it.digest, it.size)).collect();
    format::write_header(&named, out)?;
    let size = pieces.iter().map(|it| it.length).sum();
    let (prefixes, steps) = (format::prefix_budget(size), format::max_steps(size));
    let mut making = Making { sources, new, at: 0, prefixes, steps, copy: None, out };
    for piece in pieces {
        making.piece(piece)?;
    }
    making.end_copy()?;
    Ok(named.into_iter().map(|it| it.0).collect())
}

/// Leaves out the sources that no piece is like.
fn used<'f>(sources: &[Source<'f>], mut pieces: Vec<Piece>) -> (Vec<Source<'f>>, Vec<Piece>) {
    let likes = pieces.iter().filter_map(|it| it.like).map(|it| it.source);
    let used: Vec<_> = likes.collect::<BTreeSet<_>>().into_iter().collect();
    for like in pieces.iter_mut().filter_map(|it| it.like.as_mut()) {
        like.source = used.binary_search(&like.source).unwrap_or_default();
    }
    (used.into_iter().map(|it| sources[it]).collect(), pieces)
}

/// Leaves out empty pieces, and joins neighbours that are like nothing.
fn merged(pieces: &[Piece]) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::new();
    for piece in pieces.iter().filter(|it| it.length > 0) {
        match merged.last_mut() {
            Some(last) if last.like.is_none() && piece.like.is_none() => {
                last.length += piece.length;
            }
            _ => merged.push(*piece),
        }
    }
    merged
}

struct Making<'a> {
    sources: Vec<Source<'a>>,
    new: &'a File,
    /// The offset of the next piece.
    at: u64,
    /// The number of bytes that all further prefixes may have.
    prefixes: u64,
    /// The number of steps that may follow.
    steps: u64,
    /// The last step, if it is a copy. It is written once it cannot become longer.
    copy: Option<Extent>,
    out: &'a mut dyn Write,
}

impl Making<'_> {
    fn piece(&mut self, piece: Piece) -> io::Result<()> {
        if let Some(like) = piece.like
            && like.length == piece.length
            && self.is_equal(like)?
        {
            return self.copy(like);
        }
        self.end_copy()?;
        let mut done = 0;
        while done < piece.length {
            let makes = MAX_FRAME.min(piece.length - done);
            let prefix = piece.like.map(|like| beside(like, (done, makes), piece.length));
            let prefix = prefix.filter(|it| it.length <= self.prefixes).unwrap_or(NOTHING);
            self.prefixes -= prefix.length;
            self.frame(prefix, makes)?;
            done += makes;
        }
        Ok(())
    }

    /// Returns whether the next bytes of the new blob equal a range of a source.
    fn is_equal(&self, like: Extent) -> io::Result<bool> {
        let old = self.sources[like.source].file;
        let mut done = 0;
        while done < like.length {
            let length = COMPARED.min(like.length - done);
            if read(old, like.offset + done, length)? != read(self.new, self.at + done, length)? {
                return Ok(false);
            }
            done += length;
        }
        Ok(true)
    }

    fn copy(&mut self, like: Extent) -> io::Result<()> {
        self.at += like.length;
        match &mut self.copy {
            Some(last)
                if last.source == like.source && last.offset + last.length == like.offset =>
            {
                last.length += like.length;
            }
            _ => {
                self.end_copy()?;
                self.copy = Some(like);
            }
        }
        Ok(())
    }

    fn end_copy(&mut self) -> io::Result<()> {
        self.copy.take().map_or(Ok(()), |it| self.step(Step::Copy(it)))
    }

    fn step(&mut self, step: Step) -> io::Result<()> {
        let left = self.steps.checked_sub(1);
        self.steps = left.ok_or(io::ErrorKind::FileTooLarge)?;
        step.write(self.out)
    }

    fn frame(&mut self, prefix: Extent, makes: u64) -> io::Result<()> {
        let mut known = Vec::new();
        if prefix.length > 0 {
            known = read(self.sources[prefix.source].file, prefix.offset, prefix.length)?;
        }
        let bytes = read(self.new, self.at, makes)?;
        let frame = deflate(&bytes, &known)?;
        self.step(Step::Frame { prefix, makes, size: frame.len() as u64 })?;
        self.out.write_all(&frame)?;
        self.at += makes;
        Ok(())
    }
}

/// The prefix of a frame that is like nothing.
const NOTHING: Extent = Extent { source: 0, offset: 0, length: 0 };

/// Returns the part of `like` that is nearest to a range of the new file of `size` bytes: at most [`MAX_PREFIX`].
fn beside(like: Extent, (at, length): (u64, u64), size: u64) -> Extent {
    if like.length <= MAX_PREFIX {
        return like;
    }
    let middle = u128::from(at + length / 2) * u128::from(like.length) / u128::from(size.max(1));
    let middle = u64::try_from(middle).unwrap_or(like.length);
    let start = middle.saturating_sub(MAX_PREFIX / 2).min(like.length - MAX_PREFIX);
    Extent { offset: like.offset + start, length: MAX_PREFIX, ..like }
}

fn read(file: &File, at: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// Compresses bytes to one frame, which may repeat the bytes in `known`.
fn deflate(bytes: &[u8], known: &[u8]) -> io::Result<Vec<u8>> {
    let zstd = |code| io::Error::other(get_error_name(code));
    let mut context = CCtx::create();
    let parameters = [
        CParameter::CompressionLevel(LEVEL),
        CParameter::WindowLog(WINDOW_LOG),
        CParameter::EnableLongDistanceMatching(true),
    ];
    for parameter in parameters {
        context.set_parameter(parameter).map_err(zstd)?;
    }
    context.ref_prefix(known).map_err(zstd)?;
    let mut frame = Vec::with_capacity(compress_bound(bytes.len()));
    context.compress2(&mut frame, bytes).map_err(zstd)?;
    Ok(frame)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply::{ApplyError, apply};

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// Applies a delta to the one source `old`.
    fn applied(delta: &[u8], old: &[u8], size: u64) -> Result<Vec<u8>, ApplyError> {
        let (mut made, from) = (Vec::new(), file(old));
        let give = |digest: &Digest| {
            (*digest == Digest::of(old)).then(|| Ok((from.try_clone()?, old.len() as u64)))
        };
        apply(&mut &*delta, size, &give, &mut made)?;
        Ok(made)
    }

    fn delta(plan: &Plan, old: &[u8], new: &[u8]) -> Vec<u8> {
        let (from, mut delta) = (file(old), Vec::new());
        let source = Source { digest: Digest::of(old), size: old.len() as u64, file: &from };
        make(plan, &[source], &file(new), &mut delta).unwrap();
        delta
    }

    fn old_and_new() -> impl Strategy<Value = (Vec<u8>, Vec<u8>, Plan)> {
        let old = proptest::collection::vec(0..4_u8, 1..300);
        let pieces = proptest::collection::vec((0..3_u8, 0..300_usize, 1..90_usize), 1..12);
        (old, pieces, proptest::collection::vec(any::<u8>(), 90)).prop_map(
            |(old, pieces, fresh)| {
                let (mut new, mut plan) = (Vec::new(), Plan::default());
                for (kind, offset, length) in pieces {
                    let offset = offset % old.len();
                    let range = &old[offset..(offset + length).min(old.len())];
                    let like =
                        Extent { source: 0, offset: offset as u64, length: range.len() as u64 };
                    let (bytes, like) = match kind {
                        0 => (fresh[..length].to_vec(), None),
                        1 => (range.to_vec(), Some(like)),
                        _ => ([range, &fresh[..3]].concat(), Some(like)),
                    };
                    plan.pieces.push(Piece { length: bytes.len() as u64, like });
                    new.extend(bytes);
                }
                (old, new, plan)
            },
        )
    }

    proptest! {
        #[test]
        fn a_delta_makes_the_new_blob_of_the_old_one((old, new, plan) in old_and_new()) {
            let delta = delta(&plan, &old, &new);
            prop_assert_eq!(applied(&delta, &old, new.len() as u64).unwrap(), new);
        }

        /// A changed, cut or longer delta makes other bytes or is refused, and never more than was asked for.
        #[test]
        fn a_hostile_delta_stays_within_its_bounds(
            (old, new, plan) in old_and_new(), at: prop::sample::Index, with: u8, cut: bool,
        ) {
            let mut delta = delta(&plan, &old, &new);
            let at = at.index(delta.len());
            delta[at] = with;
            if cut {
                delta.truncate(at);
            }
            if let Ok(made) = applied(&delta, &old, new.len() as u64) {
                prop_assert_eq!(made.len(), new.len());
            }
        }
    }

    #[test]
    fn a_file_that_is_longer_than_a_prefix_is_made_in_frames() {
        let length = usize::try_from(MAX_PREFIX + 3 * MAX_FRAME).unwrap();
        let mut number = 1_u64;
        let random = std::iter::repeat_with(|| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number.to_be_bytes()[0]
        });
        let old: Vec<u8> = random.take(length).collect();
        // A few bytes more at the start move everything.
        let new = [&b"new"[..], &old].concat();
        let plan =
            Plan::whole(Extent { source: 0, offset: 0, length: length as u64 }, new.len() as u64);
        let delta = delta(&plan, &old, &new);
        assert!(delta.len() < length / 500, "{}", delta.len());
        assert_eq!(applied(&delta, &old, new.len() as u64).unwrap(), new);
    }

    /// The beginning of a frame of zstd 0.5, as its magic number says.
    const OLD_FRAME: [u8; 8] = [0x25, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0];

    /// The work to apply a delta is linear in the size of its blob.
    #[test]
    fn small_steps_do_not_read_long_prefixes_without_end() {
        let (old, size) = (vec![7; 1 << 20], 200);
        let header = |steps: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            let sources = [(Digest::of(&old), old.len() as u64)];
            format::write_header(&sources, &mut bytes).unwrap();
            steps(&mut bytes);
            bytes
        };
        let long = header(&|bytes| {
            for _ in 0..size {
                let frame = deflate(&[7], b"").unwrap();
                let prefix = Extent { source: 0, offset: 0, length: 1 << 20 };
                Step::Frame { prefix, makes: 1, size: frame.len() as u64 }.write(bytes).unwrap();
                bytes.extend(frame);
            }
        });
        let error = applied(&long, &old, size).unwrap_err().to_string();
        assert!(error.contains("too long together"), "{error}");
        let many = header(&|bytes| {
            for _ in 0..5000 {
                Step::Copy(Extent { source: 0, offset: 0, length: 1 }).write(bytes).unwrap();
            }
        });
        let error = applied(&many, &old, 5000).unwrap_err().to_string();
        assert!(error.contains("too many steps"), "{error}");
        // What is made keeps to both bounds: a thousand small pieces that are like a long range.
        let like = Some(Extent { source: 0, offset: 0, length: 1 << 20 });
        let plan = Plan { pieces: vec![Piece { length: 10, like }; 1000] };
        let new: Vec<u8> = (0..10_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        assert_eq!(applied(&delta(&plan, &old, &new), &old, 10_000).unwrap(), new);
    }

    #[test]
    fn each_lie_of_a_delta_is_refused() {
        let old = vec![7; 100];
        let header = |size: u64| {
            let mut bytes = Vec::new();
            format::write_header(&[(Digest::of(&old), size)], &mut bytes).unwrap();
            bytes
        };
        let of = |size: u64, step: Step, rest: &[u8]| {
            let mut bytes = header(size);
            step.write(&mut bytes).unwrap();
            [&*bytes, rest].concat()
        };
        let extent = |source, offset, length| Extent { source, offset, length };
        let copy =
            |source, offset, length| of(100, Step::Copy(extent(source, offset, length)), b"");
        let bomb = deflate(&vec![0; 1 << 20], b"").unwrap();
        let frame = |length, makes, size: u64| {
            of(100, Step::Frame { prefix: extent(0, 0, length), makes, size }, &bomb)
        };
        let size = bomb.len() as u64;
        let frames = |frames: &[Vec<u8>]| {
            let bytes = frames.concat();
            let step = Step::Frame { prefix: extent(0, 0, 0), makes: 10, size: bytes.len() as u64 };
            of(100, step, &bytes)
        };
        let cases = [
            (
                "the size of a source",
                of(99, Step::Copy(extent(0, 0, 10)), b""),
                "has 100 bytes, not 99",
            ),
            ("another source", copy(1, 0, 10), "a source that it does not have"),
            ("a range past the end", copy(0, 95, 10), "past the end"),
            ("a range without an end", copy(0, u64::MAX, 10), "past the end"),
            ("more than the blob", copy(0, 0, 11), "more than the blob has"),
            ("a step for nothing", copy(0, 0, 0), "makes nothing"),
            ("a bomb", frame(0, 10, size), "zstd"),
            ("a long frame", frame(0, MAX_FRAME + 1, size), "larger than the format allows"),
            ("a long prefix", frame(MAX_PREFIX + 1, 10, size), "larger than the format allows"),
            ("many bytes of a frame", frame(0, 10, u64::MAX), "larger than the format allows"),
            ("bytes after the end", [copy(0, 0, 10), b"x".to_vec()].concat(), "goes on"),
            ("another version", b"boxdelt2\0\0".to_vec(), "as one of this version"),
            ("no step", [header(100), vec![9; 9]].concat(), "no step"),
            (
                "several frames",
                frames(&[deflate(b"", b"").unwrap(), deflate(&[7; 10], b"").unwrap()]),
                "one zstd frame",
            ),
            (
                "a frame of an older zstd",
                frames(&[deflate(b"", b"").unwrap(), OLD_FRAME.to_vec()]),
                "zstd",
            ),
        ];
        for (what, delta, reason) in cases {
            let error = applied(&delta, &old, 10).unwrap_err();
            assert!(error.to_string().contains(reason), "{what}: {error}");
        }
        let other = applied(&copy(0, 0, 10), &[8; 100], 10).unwrap_err();
        assert!(matches!(other, ApplyError::NoSource(it) if it == Digest::of(&old)), "{other}");
        assert!(matches!(applied(&header(100), &old, 10), Err(ApplyError::Read(_))));
        // As a control, the same step within its bounds is applied.
        assert_eq!(applied(&copy(0, 90, 10), &old, 10).unwrap(), vec![7; 10]);
    }
}
