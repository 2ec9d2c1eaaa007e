//! Where the documents and blobs of images are, and reading them bounded and verified.

use host_fs::FileError;
use std::fmt;
use std::io::Read;

use box_digest::Digest;
use oci_registry::MAX_MANIFEST;
use oci_spec::image::Descriptor;

use super::documents::{self, Blob};
use super::error::SourceError;
use super::form::Form;
use super::keys::{self, Document};

/// The bound on a number of things that an image has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// The thing that is bounded, for people.
    pub(super) what: &'static str,
    /// The unit of the limit.
    pub(super) unit: &'static str,
    /// The most that there may be.
    pub(super) limit: u64,
}

impl Bound {
    /// Refuses more than there may be.
    pub(super) fn check(self, found: u64, at: impl FnOnce() -> String) -> Result<(), SourceError> {
        let Self { what, unit, limit } = self;
        if found <= limit {
            return Ok(());
        }
        Err(SourceError::TooLarge { at: at(), what, found, unit, limit })
    }
}

pub(super) const INDEX: Bound =
    Bound { what: "an image index", unit: "bytes", limit: MAX_MANIFEST };
pub(super) const MANIFEST: Bound = Bound { what: "an image manifest", ..INDEX };
pub(super) const CONFIG: Bound = Bound { what: "an image config", limit: 8 << 20, ..INDEX };

/// A stream that was opened.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read + Send>,
    /// How many bytes it has, as far as is known without reading it.
    pub(super) size: u64,
}

/// Where blobs are, by their digests.
pub(super) trait BlobSource: fmt::Debug + Send + Sync {
    /// Names the place for people: `images/agent`.
    fn title(&self) -> String;

    /// Returns the place of a blob, for people.
    fn at(&self, digest: &Digest) -> String;

    /// Opens a blob; `None` if it is not there. Neither its
    /// content nor its size is verified.
    ///
    /// # Errors
    /// It is there, but cannot be opened.
    fn open(&self, blob: Blob) -> Result<Option<Opened>, SourceError>;

    /// Makes sure that blobs can be opened without a network.
    ///
    /// # Errors
    /// They cannot be fetched.
    fn fetch(&self, _blobs: &[Blob]) -> Result<(), SourceError> {
        Ok(())
    }

    /// Opens a blob if it is at hand: nothing is fetched.
    fn open_present(&self, blob: Blob) -> Option<Opened> {
        self.open(blob).ok()?.filter(|opened| opened.size == blob.size)
    }
}

/// The images that have a tag.
pub(super) enum Tagged {
    /// As an index lists them.
    Listed(Vec<Descriptor>),
    /// A manifest or an index, which was judged already.
    Judged(Blob, documents::Document),
}

/// Where images can be found by tags, too.
pub(super) trait ImageStore: BlobSource {
    /// Finds what has this tag, or, without one, everything.
    ///
    /// # Errors
    /// Nothing has it, or the list cannot be read.
    fn tagged(&self, tag: Option<&str>) -> Result<Tagged, SourceError>;

    /// Reads a manifest or an index of this size, if that is known, and verifies it; `None` if it is not there.
    ///
    /// # Errors
    /// It is there, but cannot be read, is damaged or too large.
    fn read_manifest(
        &self,
        digest: &Digest,
        size: Option<u64>,
        document: Bound,
    ) -> Result<Option<Vec<u8>>, SourceError>;

    /// Returns the form in which its images come.
    fn form(&self) -> Form;
}

/// Opens a blob of the size that the image names; `what` it is, for people.
pub(super) fn open_blob(
    blobs: &dyn BlobSource,
    blob: Blob,
    what: &'static str,
) -> Result<Opened, SourceError> {
    sized(blobs, blob, what, blobs.open(blob)?)
}

/// Checks that something was opened, and that it has the size that the image names.
fn sized(
    blobs: &dyn BlobSource,
    blob: Blob,
    what: &'static str,
    opened: Option<Opened>,
) -> Result<Opened, SourceError> {
    let Some(opened) = opened else {
        return Err(SourceError::MissingBlob { at: blobs.at(&blob.digest), what });
    };
    check_size(blobs, blob, what, opened.size)?;
    Ok(opened)
}

/// Checks the size of a blob against the one that the image names.
pub(super) fn check_size(
    blobs: &dyn BlobSource,
    blob: Blob,
    what: &'static str,
    found: u64,
) -> Result<(), SourceError> {
    if found == blob.size {
        return Ok(());
    }
    let [found, expected] = [found, blob.size].map(|size| format!("{size} bytes"));
    Err(SourceError::Damaged { at: blobs.at(&blob.digest), what, found, expected })
}

/// Reads a config, and verifies it.
pub(super) fn read_config<T: Document>(
    blobs: &dyn BlobSource,
    blob: Blob,
) -> Result<T, SourceError> {
    CONFIG.check(blob.size, || blobs.at(&blob.digest))?;
    let bytes = verified(blobs, blob, CONFIG, blobs.open(blob)?)?;
    parse(&bytes, &blobs.at(&blob.digest), CONFIG)
}

/// Reads an opened document whole, and verifies it.
pub(super) fn verified(
    blobs: &dyn BlobSource,
    blob: Blob,
    document: Bound,
    opened: Option<Opened>,
) -> Result<Vec<u8>, SourceError> {
    let (at, what) = (blobs.at(&blob.digest), document.what);
    let bytes = read_bounded(sized(blobs, blob, what, opened)?, &at, document)?;
    let found = Digest::of(&bytes);
    if found != blob.digest {
        return Err(wrong_digest(at, what, found, blob.digest));
    }
    Ok(bytes)
}

/// Returns the error of a blob with another content than the one that is named.
pub(super) fn wrong_digest(
    at: String,
    what: &'static str,
    found: Digest,
    expected: Digest,
) -> SourceError {
    let (found, expected) = (format!("the digest {found}"), expected.to_string());
    SourceError::Damaged { at, what, found, expected }
}

/// Reads a whole stream of a bounded size.
pub(super) fn read_bounded(
    opened: Opened,
    at: &str,
    document: Bound,
) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    let read = opened.reader.take(document.limit + 1).read_to_end(&mut bytes);
    read.map_err(FileError::of("read", at))?;
    document.check(bytes.len() as u64, || at.to_owned())?;
    Ok(bytes)
}

pub(super) fn parse<T: Document>(
    bytes: &[u8],
    at: &str,
    document: Bound,
) -> Result<T, SourceError> {
    keys::read(bytes).map_err(|error| SourceError::malformed(at, document.what, &error))
}
