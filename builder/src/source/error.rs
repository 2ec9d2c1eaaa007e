//! Why an image cannot be read.

use std::io;
use std::path::PathBuf;

use box_image::Digest;
use boxfile_spec::Platform;

/// Why an image cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// There is no such directory, or it is no OCI image layout.
    #[error(
        "{} is not an OCI image layout: it has no file {missing:?}; copy an image there: \
         skopeo copy docker://NAME oci:{}:latest",
        path.display(), path.display()
    )]
    NotALayout {
        /// The directory.
        path: PathBuf,
        /// What it lacks.
        missing: &'static str,
    },
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A document does not read.
    #[error("{} does not read as {what}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Why it is not.
        message: String,
    },
    /// A document is larger than such a document may be.
    #[error("{} has {size} bytes; {what} may have {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// Its size in bytes.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A blob that the image names is not in the layout.
    #[error("the image names the blob {digest} ({what}), but {} is not there", path.display())]
    MissingBlob {
        /// The blob.
        digest: Digest,
        /// What it should be.
        what: &'static str,
        /// The file that is not there.
        path: PathBuf,
    },
    /// A blob's size is not what the image names.
    #[error(
        "{} ({what}) has {found} bytes, but the image names {expected}; \
         the layout is damaged: copy the image again",
        path.display()
    )]
    WrongSize {
        /// The blob's file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// The named size in bytes.
        expected: u64,
        /// The size as it is.
        found: u64,
    },
    /// A blob's content is not what its name says.
    #[error(
        "{} ({what}) has the content {found}, not the one that its name says; \
         the layout is damaged: copy the image again",
        path.display()
    )]
    WrongDigest {
        /// The blob's file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
        /// What its bytes hash to.
        found: Digest,
    },
    /// The layout has several images, or none of the wanted tag.
    #[error("{} has {found}; {help}", path.display())]
    Choice {
        /// The layout.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What to write.
        help: String,
    },
    /// The image is for another platform.
    #[error("the image in {} is for {found}; the box needs {wanted}", path.display())]
    Platform {
        /// The layout.
        path: PathBuf,
        /// The image's platform.
        found: String,
        /// The box's platform.
        wanted: Platform,
    },
    /// The image that is pinned is no longer in the layout.
    #[error(
        "{} has no image {digest} any more",
        path.display()
    )]
    Gone {
        /// The layout.
        path: PathBuf,
        /// The manifest's digest.
        digest: Digest,
    },
    /// A layer's media type is not one that this version reads.
    #[error(
        "the image in {} has a layer of type {media_type:?}; \
         this version reads tar and tar+gzip layers",
        path.display()
    )]
    LayerType {
        /// The layout.
        path: PathBuf,
        /// The type.
        media_type: String,
    },
    /// Manifest and config do not name the same number of layers.
    #[error(
        "the image in {} names {layers} layers, but its config {diff_ids} diff_ids",
        path.display()
    )]
    LayerCount {
        /// The layout.
        path: PathBuf,
        /// Layers of the manifest.
        layers: usize,
        /// `diff_ids` of the config.
        diff_ids: usize,
    },
    /// The reference is of a kind that this version does not read.
    #[error(
        "this version reads images from OCI layout directories only; copy it into one, for instance \
         with `skopeo copy {reference} oci:images/NAME:latest`, and name that"
    )]
    Unsupported {
        /// The reference.
        reference: String,
    },
}
