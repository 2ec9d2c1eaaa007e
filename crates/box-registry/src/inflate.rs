//! Decompresses a downloaded blob within its declared size, and verifies the digest of the plain (uncompressed) bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write};

use box_cache::ActionLock;
use box_delta::ApplyError;
use box_digest::{Digest, Hasher, Sha256};
use download::{Draft, DraftError, Target};
use safe_text::with_causes;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::MAGICNUMBER;

use crate::form::Coding;
use crate::sink::{Sink, SinkDraft};

/// The magic number of a zstd frame ([RFC 8878, section 3.1.1](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1)).
const MAGIC: [u8; 4] = MAGICNUMBER.to_le_bytes();
/// The maximum window, as a power of two of bytes: 32 MiB. Level 3 of zstd uses 2 MiB, and level 19 uses 8 MiB. Go's library,
/// with which other tools recompress blobs, uses at most 32 MiB by default. Each parallel download has one window in memory.
const MAX_WINDOW_LOG: u32 = 25;
/// The size of the output buffer, in bytes.
const PIECE: usize = 64 << 10;

/// The target of a download that decompresses a blob into a sink.
pub struct Inflating<'s> {
    pub(crate) sink: &'s dyn Sink,
    /// The digest of the plain blob.
    pub(crate) digest: Digest,
    /// The size of the plain blob.
    pub(crate) size: u64,
    pub(crate) coding: Coding,
    /// Keeps other processes from fetching the same blob.
    pub(crate) _claim: Option<ActionLock>,
}

/// A blob that is being fetched.
pub struct InflatingDraft<'s> {
    body: Body<'s>,
    plain: Plain<'s>,
}

/// The stored bytes of a blob that is being fetched.
enum Body<'s> {
    /// The blob is stored plain, so its plain hash is also the hash of the stored bytes.
    Plain,
    Zstd(Frame),
    Delta(Delta<'s>),
}

/// A delta that is being fetched. It is applied when it is complete, because its digest must be the expected one before anything
/// is done with it.
struct Delta<'s> {
    hasher: Hasher<Sha256>,
    file: BufWriter<File>,
    /// Has the blobs of which the delta makes the plain blob.
    sink: &'s dyn Sink,
}

/// The plain bytes of a blob that is being fetched, with the expected digest and size.
struct Plain<'s> {
    draft: Box<dyn SinkDraft + 's>,
    hasher: Hasher<Sha256>,
    digest: Digest,
    size: u64,
}

/// A zstd frame that is being decompressed. A blob is exactly one frame.
struct Frame {
    /// The hash of the compressed bytes.
    hasher: Hasher<Sha256>,
    decoder: Decoder<'static>,
    /// The first bytes of the frame, at most as many as in [`MAGIC`].
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
    /// Reads the stored blob with the digest and size `sent` from the beginning of `from`. Writes its plain bytes to the sink.
    ///
    /// # Errors
    /// [`FillError`]; the sink then keeps nothing.
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

/// The reason why a blob cannot be filled from a reader.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The reader failed, or ended too early.
    #[error(transparent)]
    Read(io::Error),
    /// The content is wrong, or the sink cannot keep it.
    #[error(transparent)]
    Draft(#[from] DraftError),
}

impl<'s> Target for Inflating<'s> {
    type Draft<'a>
        = InflatingDraft<'s>
    where
        Self: 'a;

    fn draft(&self) -> Result<InflatingDraft<'s>, DraftError> {
        let Self { sink, digest, size, coding, .. } = *self;
        let plain = Plain { draft: sink.draft(size)?, hasher: Hasher::default(), digest, size };
        let body = match coding {
            Coding::Plain => Body::Plain,
            Coding::Zstd => Body::Zstd(Frame::new()?),
            Coding::Delta => Body::Delta(Delta::new(sink)?),
        };
        Ok(InflatingDraft { body, plain })
    }
}

impl Draft for InflatingDraft<'_> {
    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        match &mut self.body {
            Body::Plain => self.plain.append(bytes),
            Body::Zstd(frame) => frame.inflate(bytes, &mut self.plain),
            Body::Delta(delta) => delta.append(bytes),
        }
    }

    fn size(&self) -> u64 {
        self.sent().count()
    }

    fn digest(&self) -> Digest {
        self.sent().digest()
    }

    fn commit(mut self) -> Result<(), DraftError> {
        match self.body {
            Body::Zstd(Frame { has_ended: false, .. }) => {
                return Err(DraftError::Content("its zstd frame has no end".to_owned()));
            }
            Body::Delta(delta) => delta.apply(&mut self.plain)?,
            Body::Plain | Body::Zstd(_) => {}
        }
        self.plain.commit()
    }
}

impl InflatingDraft<'_> {
    /// Returns the hasher of the stored bytes.
    fn sent(&self) -> &Hasher<Sha256> {
        match &self.body {
            Body::Plain => &self.plain.hasher,
            Body::Zstd(frame) => &frame.hasher,
            Body::Delta(delta) => &delta.hasher,
        }
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

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'s> Delta<'s> {
    fn new(sink: &'s dyn Sink) -> Result<Self, DraftError> {
        let file = BufWriter::new(sink.scratch()?);
        Ok(Self { hasher: Hasher::default(), file, sink })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Makes the plain blob.
    fn apply(self, plain: &mut Plain<'_>) -> Result<(), DraftError> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let (size, give) = (plain.size, |blob: &Digest| self.sink.open(blob));
        box_delta::apply(&mut BufReader::new(file), size, &give, plain).map_err(|error| match error
        {
            ApplyError::Read(error) if error.kind() != io::ErrorKind::UnexpectedEof => error.into(),
            ApplyError::Write(error) | ApplyError::Source { source: error, .. } => error.into(),
            error => DraftError::Content(with_causes(&error)),
        })
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

    /// Rejects bytes that do not begin like a zstd frame. The library may have been compiled with support for older formats,
    /// whose memory it does not limit, and skippable frames have no content.
    fn check_start(&mut self, bytes: &[u8]) -> Result<(), DraftError> {
        let missing = MAGIC.len() - self.start.len();
        self.start.extend(bytes.iter().take(missing));
        if MAGIC.starts_with(&self.start) {
            return Ok(());
        }
        Err(DraftError::Content("it is no zstd frame (RFC 8878)".to_owned()))
    }
}
