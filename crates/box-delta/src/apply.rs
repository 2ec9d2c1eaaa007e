//! Applies a delta, within bounds that hold for every input.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use box_digest::Digest;
use zstd::zstd_safe::{DCtx, MAGICNUMBER, find_frame_compressed_size, get_error_name};

use crate::format::{self, Extent, MAX_FRAME, MAX_PREFIX, Step};

/// The number of bytes that are copied at a time.
const PIECE: usize = 256 << 10;

/// A source as the caller gives it: its file and its size in bytes. `None` if the caller does not have it.
pub type Given = Option<io::Result<(File, u64)>>;

/// Why a delta was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The delta cannot be read, or ends too early.
    #[error("the delta cannot be read")]
    Read(#[source] io::Error),
    /// What the delta makes cannot be written.
    #[error("what a delta makes cannot be written")]
    Write(#[source] io::Error),
    /// A source of the delta is not here.
    #[error("the delta is made from the blob {0}, which is not here")]
    NoSource(Digest),
    /// A source cannot be read.
    #[error("the blob {digest}, from which the delta is made, cannot be read")]
    Source {
        /// The digest of the source.
        digest: Digest,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The delta is malformed, or exceeds a bound.
    #[error("the delta is malformed: {0}")]
    Malformed(String),
}

/// An open source.
struct Open {
    digest: Digest,
    file: File,
    size: u64,
}

/// Reads the digests and the sizes of the sources of a delta, from its beginning.
///
/// # Errors
/// [`ApplyError::Read`] and [`ApplyError::Malformed`].
pub fn sources(delta: &mut dyn Read) -> Result<Vec<(Digest, u64)>, ApplyError> {
    let header = format::read_header(delta).map_err(ApplyError::Read)?;
    header.ok_or_else(|| malformed("it does not begin as one of this version"))
}

/// Applies a delta: writes exactly `size` bytes to `out`. `give` returns the source with a digest.
///
/// The caller must hash what was written: a delta can make anything.
///
/// # Errors
/// [`ApplyError`]. What `out` then has must not be used.
pub fn apply(
    delta: &mut dyn Read,
    size: u64,
    give: &dyn Fn(&Digest) -> Given,
    out: &mut dyn Write,
) -> Result<(), ApplyError> {
    let opened = sources(delta)?.into_iter().map(|it| open(it, give)).collect::<Result<_, _>>()?;
    let mut applying = Applying { opened, left: size, prefixes: format::prefix_budget(size), out };
    let mut steps = format::max_steps(size);
    while applying.left > 0 {
        steps = steps.checked_sub(1).ok_or_else(|| malformed("it has too many steps"))?;
        let step = Step::read(delta).map_err(ApplyError::Read)?;
        match step.ok_or_else(|| malformed("it has something that is no step"))? {
            Step::Copy(extent) => applying.copy(extent)?,
            Step::Frame { prefix, makes, size } => applying.frame(prefix, makes, (delta, size))?,
        }
    }
    match delta.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(malformed("it goes on after its last step")),
        Err(error) => Err(ApplyError::Read(error)),
    }
}

fn open(
    (digest, size): (Digest, u64),
    give: &dyn Fn(&Digest) -> Given,
) -> Result<Open, ApplyError> {
    let given = give(&digest).ok_or(ApplyError::NoSource(digest))?;
    let (file, found) = given.map_err(|source| ApplyError::Source { digest, source })?;
    if found != size {
        return Err(malformed(&format!("the blob {digest} has {found} bytes, not {size}")));
    }
    Ok(Open { digest, file, size })
}

struct Applying<'o> {
    opened: Vec<Open>,
    /// The number of bytes that are still to be made.
    left: u64,
    /// The number of bytes that all further prefixes may have.
    prefixes: u64,
    out: &'o mut dyn Write,
}

impl Applying<'_> {
    fn copy(&mut self, extent: Extent) -> Result<(), ApplyError> {
        let Self { opened, left, out, .. } = self;
        let source = within(opened, extent)?;
        take(left, extent.length)?;
        let mut buffer = zeros(extent.length.min(PIECE as u64));
        let (mut at, end) = (extent.offset, extent.offset + extent.length);
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(PIECE).min(buffer.len());
            source.read(&mut buffer[..most], at)?;
            out.write_all(&buffer[..most]).map_err(ApplyError::Write)?;
            at += most as u64;
        }
        Ok(())
    }

    fn frame(
        &mut self,
        prefix: Extent,
        makes: u64,
        (delta, size): (&mut dyn Read, u64),
    ) -> Result<(), ApplyError> {
        if prefix.length > MAX_PREFIX || makes > MAX_FRAME || size > MAX_FRAME + MAX_FRAME / 128 {
            return Err(malformed("a frame of it is larger than the format allows"));
        }
        take(&mut self.left, makes)?;
        let left = self.prefixes.checked_sub(prefix.length);
        self.prefixes = left.ok_or_else(|| malformed("its prefixes are too long together"))?;
        let mut known = Vec::new();
        if prefix.length > 0 {
            known = zeros(prefix.length);
            within(&self.opened, prefix)?.read(&mut known, prefix.offset)?;
        }
        let mut frame = zeros(size);
        delta.read_exact(&mut frame).map_err(ApplyError::Read)?;
        let made = inflate(&frame, &known, makes)?;
        self.out.write_all(&made).map_err(ApplyError::Write)
    }
}

impl Open {
    fn read(&self, buffer: &mut [u8], at: u64) -> Result<(), ApplyError> {
        let digest = self.digest;
        let read = self.file.read_exact_at(buffer, at);
        read.map_err(|source| ApplyError::Source { digest, source })
    }
}

/// Returns the source of a range that lies in it.
fn within(opened: &[Open], extent: Extent) -> Result<&Open, ApplyError> {
    let source = opened.get(extent.source);
    let source = source.ok_or_else(|| malformed("it names a source that it does not have"))?;
    let end = extent.offset.checked_add(extent.length);
    let is_inside = end.is_some_and(|end| end <= source.size);
    is_inside.then_some(source).ok_or_else(|| malformed("it reads past the end of a source"))
}

/// Counts bytes that are made. A step that makes nothing would let a delta go on without end.
fn take(left: &mut u64, made: u64) -> Result<(), ApplyError> {
    if made == 0 {
        return Err(malformed("a step of it makes nothing"));
    }
    let rest = left.checked_sub(made);
    *left = rest.ok_or_else(|| malformed("it makes more than the blob has"))?;
    Ok(())
}

/// Decompresses exactly one frame to exactly `makes` bytes.
fn inflate(frame: &[u8], known: &[u8], makes: u64) -> Result<Vec<u8>, ApplyError> {
    let zstd = |code| malformed(&format!("zstd: {}", get_error_name(code)));
    // The library may read older formats, whose memory it does not limit, and frames without content. It also reads several frames
    // after each other, of which only the first was checked.
    let is_frame = frame.starts_with(&MAGICNUMBER.to_le_bytes());
    if !is_frame || find_frame_compressed_size(frame).map_err(zstd)? != frame.len() {
        return Err(malformed("a frame of it is not one zstd frame (RFC 8878)"));
    }
    let mut made = zeros(makes);
    let mut context = DCtx::create();
    context.ref_prefix(known).map_err(zstd)?;
    let length = context.decompress(&mut made[..], frame).map_err(zstd)?;
    if length as u64 == makes {
        return Ok(made);
    }
    Err(malformed(&format!("a frame of it makes {length} bytes, not {makes}")))
}

/// Returns zeros. The caller has checked that the number is small.
fn zeros(number: u64) -> Vec<u8> {
    vec![0; usize::try_from(number).unwrap_or_default()]
}

fn malformed(reason: &str) -> ApplyError {
    ApplyError::Malformed(reason.to_owned())
}
