//! Why an image cannot be read.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use boxfile_spec::Platform;
use oci_registry::RegistryError;

/// Why an image cannot be read. A `place` is where the image was looked for, an `at` where one of its
/// files or blobs lies; both are for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no such directory, or it is no OCI image layout.
    #[error(
        "{} is not an OCI image layout: it has no file {missing:?}; {help}",
        path.display()
    )]
    NotALayout {
        /// The directory.
        path: PathBuf,
        /// What it lacks.
        missing: &'static str,
        /// What to do.
        help: String,
    },
    /// There is no such file.
    #[error(
        "there is no file {}; a relative path starts from the directory of the file that names it",
        path.display()
    )]
    NoFile {
        /// The file.
        path: PathBuf,
    },
    /// The file is no archive that can be read in place.
    #[error("{} is not a tar archive: {why}", path.display())]
    NotAnArchive {
        /// The file.
        path: PathBuf,
        /// Why not, and what to do.
        why: String,
    },
    /// The archive is one, but cannot be read safely.
    #[error("{}, at byte {offset}: {why}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// Why not.
        why: String,
    },
    /// The archive has no such file as images of its kind have.
    #[error("{} holds no image: it has no {missing}; {help}", path.display())]
    NoImage {
        /// The archive.
        path: PathBuf,
        /// What it lacks.
        missing: &'static str,
        /// What to do.
        help: String,
    },
    /// A file cannot be read.
    #[error("cannot read {at}")]
    Io {
        /// The file.
        at: String,
        /// Why not.
        source: io::Error,
    },
    /// A document does not read.
    #[error("{at} does not read as {what}: {message}")]
    Malformed {
        /// The document.
        at: String,
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        message: String,
    },
    /// A document is larger than such a document may be.
    #[error("{at} has {size} bytes; {what} may have {limit}")]
    TooLarge {
        /// The document.
        at: String,
        /// What it should be.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A blob that the image names is not there.
    #[error(
        "the image names {at} ({what}), which is not there; the image is incomplete: copy it again"
    )]
    MissingBlob {
        /// The blob.
        at: String,
        /// What it should be.
        what: &'static str,
    },
    /// A blob's size is not what the image names.
    #[error(
        "{at} ({what}) has {found} bytes, but the image names {expected}; \
         the image is damaged: copy it again"
    )]
    WrongSize {
        /// The blob.
        at: String,
        /// What it should be.
        what: &'static str,
        /// The named size in bytes.
        expected: u64,
        /// The size as it is.
        found: u64,
    },
    /// A blob's content is not what its name says.
    #[error(
        "{at} ({what}) has the content {found}, not the one that its name says; \
         the image is damaged: copy it again"
    )]
    WrongDigest {
        /// The blob.
        at: String,
        /// What it should be.
        what: &'static str,
        /// What its bytes hash to.
        found: Digest,
    },
    /// There are several images, or none of the wanted name.
    #[error("{place} has {found}; {help}")]
    Choice {
        /// Where.
        place: String,
        /// What it has.
        found: String,
        /// What to write.
        help: String,
    },
    /// The image is for other platforms.
    #[error("the image in {place} is for {found}; the box needs {wanted}")]
    Platform {
        /// Where.
        place: String,
        /// The image's platforms.
        found: String,
        /// The box's platform.
        wanted: Platform,
    },
    /// The image that is pinned is no longer there.
    #[error("{place} has no image {digest}")]
    Gone {
        /// Where.
        place: String,
        /// The image's digest.
        digest: Digest,
    },
    /// A layer is of a type that is not read.
    #[error("layer {number} of the image in {place} is of type {media_type:?}: {why}")]
    LayerType {
        /// Where.
        place: String,
        /// Which layer, the lowest being 1.
        number: usize,
        /// The type.
        media_type: String,
        /// Why it is not read.
        why: &'static str,
    },
    /// The image has more layers than an image may.
    #[error("the image in {place} has {layers} layers; {limit} are read: build it with fewer")]
    TooManyLayers {
        /// Where.
        place: String,
        /// How many it has.
        layers: usize,
        /// What is allowed.
        limit: usize,
    },
    /// A layer's blob is larger than one may be.
    #[error(
        "layer {number} of the image in {place} has {size} bytes; a layer may have {limit}: \
         split it into several"
    )]
    LayerTooLarge {
        /// Where.
        place: String,
        /// Which layer, the lowest being 1.
        number: usize,
        /// The named size in bytes.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The layers' blobs are together larger than they may be.
    #[error(
        "the layers of the image in {place} have {size} bytes together; {limit} are read: \
         build it with less in it"
    )]
    LayersTooLarge {
        /// Where.
        place: String,
        /// The sum of the named sizes in bytes.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A registry does not give what is needed.
    #[error("{place}")]
    Registry {
        /// The registry and its repository.
        place: String,
        /// Why not.
        source: Box<RegistryError>,
    },
    /// Images of registries are not read here.
    #[error("{place} is not looked at here: no registry is asked")]
    NotAsked {
        /// The registry and its repository.
        place: String,
    },
    /// What is needed is not in the store, and no network may be touched.
    #[error("{place}: {what} is not in the store, and --offline forbids to ask for it; {help}")]
    Offline {
        /// The registry and its repository.
        place: String,
        /// What is needed.
        what: String,
        /// What to do.
        help: &'static str,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The image's documents contradict each other.
    #[error("the image in {place} is inconsistent: {why}; build or copy it again")]
    Inconsistent {
        /// Where.
        place: String,
        /// What does not fit.
        why: String,
    },
}

impl SourceError {
    /// Returns a function that says what could not be read.
    pub(super) fn io(at: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let at = at.into();
        move |source| Self::Io { at, source }
    }
}
