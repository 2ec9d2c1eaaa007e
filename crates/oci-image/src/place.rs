//! Where the documents and blobs of images lie, and reading them bounded and verified.

use std::fmt;
use std::io::Read;

use box_digest::Digest;

use super::documents::Descriptor;
use super::error::SourceError;
use super::keys::{self, Document};

/// Bounds on the size of a document, in bytes. Registries bound manifests at 4 MiB.
pub(super) const MANIFEST_MAX: u64 = 4 << 20;
pub(super) const CONFIG_MAX: u64 = 8 << 20;

/// A stream that was opened.
pub(super) struct Opened {
    pub(super) reader: Box<dyn Read + Send>,
    /// How many bytes it has, as far as is known without reading it.
    pub(super) size: u64,
}

/// Where blobs lie, by their digests.
pub(super) trait Blobs: fmt::Debug + Send + Sync {
    /// Names the place for people: `images/agent`.
    fn title(&self) -> String;

    /// Says for people where a blob lies.
    fn at(&self, digest: &Digest) -> String;

    /// Opens a blob that something names with a size; nothing where it is not there. Neither its
    /// content nor its size is verified.
    ///
    /// # Errors
    /// It is there, but cannot be opened.
    fn open(&self, digest: &Digest, size: u64) -> Result<Option<Opened>, SourceError>;
}

/// Where images can be found by tags, too.
pub(super) trait Place: Blobs {
    /// Lists what has this tag, or, without one, everything.
    ///
    /// # Errors
    /// Nothing has it, or the list cannot be read.
    fn tagged(&self, tag: Option<&str>) -> Result<Vec<Descriptor>, SourceError>;

    /// Opens a manifest or an index; nothing where it is not there. Its content is not verified.
    ///
    /// # Errors
    /// It is there, but cannot be opened.
    fn open_manifest(&self, digest: &Digest) -> Result<Option<Opened>, SourceError>;

    /// Says what to write in a reference to name an image of this place by a tag.
    fn form(&self) -> &'static str;
}

/// Opens a blob of the size that the image names.
pub(super) fn open_blob(
    blobs: &dyn Blobs,
    digest: &Digest,
    size: u64,
    what: &'static str,
) -> Result<Opened, SourceError> {
    sized(blobs, (digest, size), what, blobs.open(digest, size)?)
}

/// Checks that something was opened, and that it has the size that the image names.
fn sized(
    blobs: &dyn Blobs,
    (digest, size): (&Digest, u64),
    what: &'static str,
    opened: Option<Opened>,
) -> Result<Opened, SourceError> {
    let at = || blobs.at(digest);
    match opened {
        None => Err(SourceError::MissingBlob { at: at(), what }),
        Some(opened) if opened.size != size => {
            Err(SourceError::WrongSize { at: at(), what, expected: size, found: opened.size })
        }
        Some(opened) => Ok(opened),
    }
}

/// Reads a config, and verifies it.
pub(super) fn read_config(
    blobs: &dyn Blobs,
    (digest, size): (&Digest, u64),
    what: &'static str,
) -> Result<Vec<u8>, SourceError> {
    check_limit(blobs, (digest, size), (what, CONFIG_MAX))?;
    let opened = blobs.open(digest, size)?;
    verified(blobs, (digest, size), (what, CONFIG_MAX), opened)
}

/// Reads a manifest or an index, and verifies it.
pub(super) fn read_manifest(
    place: &dyn Place,
    (digest, size): (&Digest, u64),
    what: &'static str,
) -> Result<Vec<u8>, SourceError> {
    check_limit(place, (digest, size), (what, MANIFEST_MAX))?;
    let opened = place.open_manifest(digest)?;
    verified(place, (digest, size), (what, MANIFEST_MAX), opened)
}

fn check_limit(
    blobs: &dyn Blobs,
    (digest, size): (&Digest, u64),
    (what, limit): (&'static str, u64),
) -> Result<(), SourceError> {
    if size <= limit {
        return Ok(());
    }
    Err(SourceError::TooLarge { at: blobs.at(digest), what, size, limit })
}

fn verified(
    blobs: &dyn Blobs,
    (digest, size): (&Digest, u64),
    (what, limit): (&'static str, u64),
    opened: Option<Opened>,
) -> Result<Vec<u8>, SourceError> {
    let opened = sized(blobs, (digest, size), what, opened)?;
    let bytes = read_bounded(opened, || blobs.at(digest), (what, limit))?;
    let found = Digest::of(&bytes);
    if found != *digest {
        return Err(SourceError::WrongDigest { at: blobs.at(digest), what, found });
    }
    Ok(bytes)
}

/// Reads a whole stream of a bounded size.
pub(super) fn read_bounded(
    opened: Opened,
    at: impl Fn() -> String,
    (what, limit): (&'static str, u64),
) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    opened.reader.take(limit + 1).read_to_end(&mut bytes).map_err(SourceError::io(at()))?;
    let size = bytes.len() as u64;
    if size > limit {
        return Err(SourceError::TooLarge { at: at(), what, size, limit });
    }
    Ok(bytes)
}

/// Reads a document.
pub(super) fn parse<T: Document>(
    bytes: &[u8],
    at: impl Fn() -> String,
    what: &'static str,
) -> Result<T, SourceError> {
    keys::read(bytes).map_err(|error| SourceError::Malformed {
        at: at(),
        what,
        message: error.to_string(),
    })
}
