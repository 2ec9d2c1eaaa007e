//! Sources of the documents and blobs of images, and functions that limit and verify what they read.

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

/// A limit for an image or one of its documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    /// The description of the limited item, such as `an image index`.
    pub(super) what: &'static str,
    /// The unit of the limit, such as `bytes`.
    pub(super) unit: &'static str,
    /// The largest number that is allowed.
    pub(super) limit: u64,
}

impl Bound {
    /// Returns an error if `found` exceeds the limit. `at` describes the file or image in the message.
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

/// An open file or blob.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read + Send>,
    /// The size in bytes, from metadata.
    pub(super) size: u64,
}

/// A source of blobs by their digests.
pub(super) trait BlobSource: fmt::Debug + Send + Sync {
    /// Returns the name of the source for messages, such as `images/agent`.
    fn title(&self) -> String;

    /// Returns the description of a blob for messages.
    fn at(&self, digest: &Digest) -> String;

    /// Opens a blob. Returns `None` if it is missing. The caller verifies the content and the size.
    ///
    /// # Errors
    /// The blob exists, but cannot be opened.
    fn open(&self, blob: Blob) -> Result<Option<Opened>, SourceError>;

    /// Makes blobs available without a network.
    ///
    /// # Errors
    /// The blobs cannot be fetched.
    fn fetch(&self, _blobs: &[Blob]) -> Result<(), SourceError> {
        Ok(())
    }

    /// Opens a blob that is on this host. Returns `None` if it would have to be fetched.
    fn open_present(&self, blob: Blob) -> Option<Opened> {
        self.open(blob).ok()?.filter(|opened| opened.size == blob.size)
    }
}

/// The result of [`ImageStore::tagged`].
pub(super) enum Tagged {
    /// The entries of an index.
    Listed(Vec<Descriptor>),
    /// A manifest or an index that has been read already.
    Judged(Blob, documents::Document),
}

/// A source that can also look up images by their tags.
pub(super) trait ImageStore: BlobSource {
    /// Finds the images with this tag. For `None`, returns all images of a layout, or a registry's image with the default tag.
    ///
    /// # Errors
    /// No image has the tag, or the list cannot be read.
    fn tagged(&self, tag: Option<&str>) -> Result<Tagged, SourceError>;

    /// Reads and verifies a manifest or an index. Returns `None` if it is missing. `size` is its declared size, if known.
    ///
    /// # Errors
    /// The document exists, but cannot be read, is damaged or too large.
    fn read_manifest(
        &self,
        digest: &Digest,
        size: Option<u64>,
        document: Bound,
    ) -> Result<Option<Vec<u8>>, SourceError>;

    /// Returns the form of the images.
    fn form(&self) -> Form;
}

/// Opens a blob, and checks its size against the declared size. `what` describes the blob in messages.
pub(super) fn open_blob(
    blobs: &dyn BlobSource,
    blob: Blob,
    what: &'static str,
) -> Result<Opened, SourceError> {
    sized(blobs, blob, what, blobs.open(blob)?)
}

/// Checks that the blob exists, and that it has the declared size.
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

/// Checks the size of a blob against the size that the image declares.
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

/// Reads and verifies a config.
pub(super) fn read_config<T: Document>(
    blobs: &dyn BlobSource,
    blob: Blob,
) -> Result<T, SourceError> {
    CONFIG.check(blob.size, || blobs.at(&blob.digest))?;
    let bytes = verified(blobs, blob, CONFIG, blobs.open(blob)?)?;
    parse(&bytes, &blobs.at(&blob.digest), CONFIG)
}

/// Reads and verifies an open document.
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

/// Returns the error of a blob whose digest is not the declared one.
pub(super) fn wrong_digest(
    at: String,
    what: &'static str,
    found: Digest,
    expected: Digest,
) -> SourceError {
    let (found, expected) = (format!("the digest {found}"), expected.to_string());
    SourceError::Damaged { at, what, found, expected }
}

/// Reads a whole file. Returns an error if it exceeds the document's limit.
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
