//! The errors of reading an image.

use std::path::{Path, PathBuf};

use box_cache::StoreError;
use box_contract::Platform;
use box_contract::named_enum;
use box_digest::Digest;
use host_fs::FileError;
use oci_registry::RegistryError;

use super::form::{Form, Found, LFS_POINTER};

/// An error of reading an image. In messages, `place` describes the source of the image, `at` one of its files or blobs, and
/// `what` the type of that file or blob.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum SourceError {
    /// The path does not have the form of image that the reference declares.
    #[error("{}", not_an_image(path, *expected, *found))]
    NotAnImage { path: PathBuf, expected: Form, found: Found },
    /// A file of the image is a Git LFS pointer.
    #[error("{} is {LFS_POINTER}", .0.display())]
    LfsPointer(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A document or an archive is malformed or ambiguous, or documents contradict each other.
    #[error("{0}")]
    Malformed(String),
    /// A limit is exceeded, for example the number of bytes, layers or images.
    #[error("{at} has {found} {unit}; {what} may have {limit}")]
    TooLarge { at: String, what: &'static str, found: u64, unit: &'static str, limit: u64 },
    /// A blob of the image is missing.
    #[error("the image names {at} ({what}), which is not there")]
    MissingBlob { at: String, what: &'static str },
    /// A blob does not have the size or digest that the image declares.
    #[error("{at} ({what}) has {found}, but the image names {expected}")]
    Damaged { at: String, what: &'static str, found: String, expected: String },
    /// No image has the wanted name (`is_missing`), or several have it. `count` is the number of images to choose from, and
    /// `names` has their names.
    #[error("{place} has {found}{}", listed(names))]
    Choice {
        place: String,
        found: String,
        is_missing: bool,
        count: usize,
        names: Vec<String>,
        form: Form,
    },
    /// The image is for other platforms.
    #[error("the image in {place} is for {found}; the box needs {wanted}")]
    Platform { place: String, found: String, wanted: Platform },
    /// The pinned image no longer exists.
    #[error("{place} has no image {digest}")]
    Gone { place: String, digest: Digest },
    /// The media type of a layer is not supported. The lowest layer has the number 1.
    #[error("layer {number} of the image in {place} is of type {media_type:?}: {}", reason.name())]
    LayerType { place: String, number: usize, media_type: String, reason: Unread },
    /// A request to a registry failed.
    #[error("{0}")]
    Registry(#[source] Box<RegistryError>),
    /// A document or blob is only in a registry, and the network must not be used. `what` is a clause, such as `DIGEST is not in
    /// the store`.
    #[error("{place}: {what}, and the network is off (--offline)")]
    NotAsked { place: String, what: String },
    /// The store could not be read or written.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

named_enum! {
    /// The reason why a layer's media type is not supported.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unread {
        /// The layer's content is not part of the image.
        Foreign "a foreign layer, whose content is not part of the image",
        /// The layer is encrypted.
        Encrypted "an encrypted layer",
        /// The media type is unknown.
        Unknown "not a layer that is read: tar, tar+gzip and tar+zstd are",
    }
}

impl SourceError {
    /// Returns the error of the file `at`, which cannot be read as `what`.
    pub(super) fn malformed(at: &str, what: &str, message: &str) -> Self {
        Self::Malformed(format!("{at} cannot be read as {what}: {message}"))
    }

    /// Returns the error of an image whose documents contradict each other.
    pub(super) fn inconsistent(place: &str, reason: &str) -> Self {
        Self::Malformed(format!("the image in {place} is inconsistent: {reason}"))
    }
}

fn not_an_image(path: &Path, expected: Form, found: Found) -> String {
    let (path, expected) = (path.display(), expected.name());
    match found {
        Found::Nothing => format!("{path} does not exist"),
        found => format!("{path} is not {expected}: {found}"),
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; it has {}", names.join(", ")) }
}
