//! From the bytes of a download to a plain blob: inflated within its size, and named by what its own bytes hash to.

use std::fmt;
use std::io::{self, Read, Write};

use box_cache::ActionLock;
use box_digest::{Digest, Hasher, Sha256};
use download::{Draft, DraftError, Target};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::MAGICNUMBER;

use crate::sink::{Sink, SinkDraft};

/// How a frame begins (RFC 8878, 3.1.1).
const MAGIC: [u8; 4] = MAGICNUMBER.to_le_bytes();
/// The largest window that is read, as a power of two of bytes: 32 MiB. Level 3 has 2 MiB and level 19 has 8 MiB; 32 MiB is the most that
/// the library of Go takes by itself, with which other tools compress again. Each blob that is fetched at a time has one.
const MAX_WINDOW_LOG: u32 = 25;
/// How much is inflated at once, in bytes.
const PIECE: usize = 64 << 10;

/// What a blob inflates to, and where that goes.
pub struct Inflating<'s> {
    pub(crate) sink: &'s dyn Sink,
    /// The digest of the plain blob.
    pub(crate) digest: Digest,
    /// The size of the plain blob.
    pub(crate) size: u64,
    pub(crate) is_zstd: bool,
    /// Keeps others from fetching the blob at the same time.
    pub(crate) _claim: Option<ActionLock>,
}

/// A blob that is being fetched.
pub struct InflatingDraft<'s> {
    /// `None` for a blob that travels plain, whose bytes are hashed as plain ones.
    frame: Option<Frame>,
    plain: Plain<'s>,
}

/// The plain bytes.
struct Plain<'s> {
    draft: Box<dyn SinkDraft + 's>,
    hasher: Hasher<Sha256>,
    digest: Digest,
    size: u64,
}

/// A zstd frame that is being inflated. There is one in a blob, and nothing else.
struct Frame {
    /// Of its bytes, as they are in the registry.
    hasher: Hasher<Sha256>,
    decoder: Decoder<'static>,
    /// The bytes of it so far, up to those of [`MAGIC`].
    start: Vec<u8>,
    has_ended: bool,
}

impl fmt::Debug for Inflating<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflating").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl fmt::Debug for InflatingDraft<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InflatingDraft").field("digest", &self.plain.digest).finish_non_exhaustive()
    }
}

impl Inflating<'_> {
    /// Takes a blob of this digest and size from a reader, which has it at its beginning, and keeps what it inflates to.
    ///
    /// # Errors
    /// [`FillError`]; nothing is kept then.
    pub fn fill(&self, from: &mut dyn Read, sent: (Digest, u64)) -> Result<(), FillError> {
        let (digest, size) = sent;
        let mut draft = Target::draft(self)?;
        let (mut from, mut buffer) = (from.take(size), vec![0; PIECE]);
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => draft.append(&buffer[..length])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(FillError::Read(error)),
            }
        }
        if draft.size() != size {
            return Err(FillError::Read(io::ErrorKind::UnexpectedEof.into()));
        }
        let found = draft.digest();
        if found != digest {
            let reason = format!("it has the digest {found}");
            return Err(DraftError::Content(reason).into());
        }
        Ok(draft.commit()?)
    }
}

/// Why a blob is not taken from a reader.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The reader failed, or ended too early.
    #[error(transparent)]
    Read(io::Error),
    /// What it has is wrong, or cannot be kept.
    #[error(transparent)]
    Draft(#[from] DraftError),
}

impl<'s> Target for Inflating<'s> {
    type Draft<'a>
        = InflatingDraft<'s>
    where
        Self: 'a;

    fn draft(&self) -> Result<InflatingDraft<'s>, DraftError> {
        let Self { sink, digest, size, is_zstd, .. } = *self;
        let plain = Plain { draft: sink.draft(size)?, hasher: Hasher::default(), digest, size };
        let frame = if is_zstd { Some(Frame::new()?) } else { None };
        Ok(InflatingDraft { frame, plain })
    }
}

impl Draft for InflatingDraft<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        match &mut self.frame {
            Some(frame) => frame.inflate(bytes, &mut self.plain),
            None => self.plain.append(bytes),
        }
    }

    fn size(&self) -> u64 {
        self.sent().count()
    }

    fn digest(&self) -> Digest {
        self.sent().digest()
    }

    fn commit(self) -> Result<(), DraftError> {
        if self.frame.is_some_and(|frame| !frame.has_ended) {
            return Err(DraftError::Content("its zstd frame has no end".to_owned()));
        }
        self.plain.commit()
    }
}

impl InflatingDraft<'_> {
    /// Returns what has hashed the bytes as they travel.
    fn sent(&self) -> &Hasher<Sha256> {
        self.frame.as_ref().map_or(&self.plain.hasher, |it| &it.hasher)
    }
}

impl Plain<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        if self.hasher.count().saturating_add(bytes.len() as u64) > self.size {
            let reason = format!("it inflates to more than the {} bytes that it has", self.size);
            return Err(DraftError::Content(reason));
        }
        self.draft.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(())
    }

    fn commit(self) -> Result<(), DraftError> {
        let (found, size) = (self.hasher.digest(), self.hasher.count());
        if size != self.size {
            let reason = format!("it inflates to {size} bytes, not to {}", self.size);
            return Err(DraftError::Content(reason));
        }
        if found != self.digest {
            let reason = format!("it inflates to {found}, not to {}", self.digest);
            return Err(DraftError::Content(reason));
        }
        Ok(self.draft.commit(&found)?)
    }
}

impl Frame {
    fn new() -> Result<Self, DraftError> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(MAX_WINDOW_LOG))?;
        Ok(Self { hasher: Hasher::default(), decoder, start: Vec::new(), has_ended: false })
    }

    fn inflate(&mut self, bytes: &[u8], plain: &mut Plain<'_>) -> Result<(), DraftError> {
        self.hasher.update(bytes);
        self.check_start(bytes)?;
        let mut input = InBuffer::around(bytes);
        let mut buffer = vec![0; PIECE];
        loop {
            if self.has_ended && input.pos < bytes.len() {
                let reason = "it has something after its zstd frame";
                return Err(DraftError::Content(reason.to_owned()));
            }
            if self.has_ended {
                return Ok(());
            }
            let mut output = OutBuffer::around(&mut buffer[..]);
            let left = self.decoder.run(&mut input, &mut output);
            let left = left.map_err(|error| DraftError::Content(format!("zstd: {error}")))?;
            let length = output.pos();
            plain.append(&buffer[..length])?;
            self.has_ended = left == 0;
            if input.pos == bytes.len() && length < PIECE {
                return Ok(());
            }
        }
    }

    /// Refuses what begins as no zstd frame does: the library may be compiled to read older formats, whose room it does not bound, and frames
    /// that are skipped have nothing in them.
    fn check_start(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        let missing = MAGIC.len() - self.start.len();
        self.start.extend(bytes.iter().take(missing));
        if MAGIC.starts_with(&self.start) {
            return Ok(());
        }
        Err(DraftError::Content("it is no zstd frame (RFC 8878)".to_owned()))
    }
}
