//! The errors of reading an image.

use std::path::{Path, PathBuf};

use box_cache::StoreError;
use box_contract::Platform;
use box_contract::named_enum;
use box_digest::Digest;
use host_fs::FileError;
use oci_registry::RegistryError;

use super::form::{Form, Found, LFS_POINTER};

/// An error of reading an image. A `place` is where the image was looked for, an `at` where one of its
/// files or blobs is, and a `what` what that should be; all are for people.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum SourceError {
    /// The path has something else than the image that was named.
    #[error("{}", not_an_image(path, *expected, *found))]
    NotAnImage { path: PathBuf, expected: Form, found: Found },
    /// A file of the image is a pointer of Git LFS.
    #[error("{} is {LFS_POINTER}", .0.display())]
    LfsPointer(PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A document or an archive cannot be read, or programs could read it differently, or documents
    /// contradict each other.
    #[error("{0}")]
    Malformed(String),
    /// There is more of something than there may be: bytes, layers, images.
    #[error("{at} has {found} {unit}; {what} may have {limit}")]
    TooLarge { at: String, what: &'static str, found: u64, unit: &'static str, limit: u64 },
    /// A blob that the image names is not there.
    #[error("the image names {at} ({what}), which is not there")]
    MissingBlob { at: String, what: &'static str },
    /// A blob has another size or digest than the image names.
    #[error("{at} ({what}) has {found}, but the image names {expected}")]
    Damaged { at: String, what: &'static str, found: String, expected: String },
    /// No image has the wanted name (`is_missing`), or several have it. `count` is how many images
    /// there are, and `names` are all of their names.
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
    /// The image that is pinned is no longer there.
    #[error("{place} has no image {digest}")]
    Gone { place: String, digest: Digest },
    /// A layer is of a type that is not read; the lowest layer has the number 1.
    #[error("layer {number} of the image in {place} is of type {media_type:?}: {}", reason.name())]
    LayerType { place: String, number: usize, media_type: String, reason: Unread },
    /// A request to a registry failed.
    #[error("{0}")]
    Registry(#[source] Box<RegistryError>),
    /// Something is only in a registry, and the network must not be used. `what` is a statement, such
    /// as `DIGEST is not in the store`.
    #[error("{place}: {what}, and the network is off (--offline)")]
    NotAsked { place: String, what: String },
    /// The store could not be read or written.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

named_enum! {
    /// Why a layer's type is not read.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Unread {
        /// The image does not have its content.
        Foreign "a foreign layer, whose content is not part of the image",
        /// It is encrypted.
        Encrypted "an encrypted layer",
        /// It is of no known type.
        Unknown "not a layer that is read: tar, tar+gzip and tar+zstd are",
    }
}

impl SourceError {
    /// Returns the error of what should be a `what`.
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
