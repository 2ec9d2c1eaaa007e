//! Why an image cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use boxfile_spec::Platform;
use oci_registry::RegistryError;

/// Why an image cannot be read. A `place` is where the image was looked for, an `at` where one of its
/// files or blobs is, and a `what` what that should be; all are for people.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
#[non_exhaustive]
pub enum SourceError {
    /// The path has something else than the image that was named.
    #[error("{} is not {expected}: {found}", path.display())]
    NotAnImage { path: PathBuf, expected: Form, found: Found },
    /// A file cannot be read.
    #[error("cannot read {at}")]
    Io { at: String, source: io::Error },
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
    /// There are several images, or none of the wanted name. `count` is how many there are, and
    /// `names` are all of theirs.
    #[error("{place} has {found}{}", listed(names))]
    Choice { place: String, found: String, count: usize, names: Vec<String>, form: Form },
    /// The image is for other platforms.
    #[error("the image in {place} is for {found}; the box needs {wanted}")]
    Platform { place: String, found: String, wanted: Platform },
    /// The image that is pinned is no longer there.
    #[error("{place} has no image {digest}")]
    Gone { place: String, digest: Digest },
    /// A layer is of a type that is not read; the lowest layer has the number 1.
    #[error("layer {number} of the image in {place} is of type {media_type:?}: {why}")]
    LayerType { place: String, number: usize, media_type: String, why: Unread },
    /// A registry does not give what is needed.
    #[error("{place}")]
    Registry { place: String, source: Box<RegistryError> },
    /// Something is only in a registry, and none may be asked.
    #[error("{place}: {what} is not in the store, and no registry may be asked")]
    NotAsked { place: String, what: String },
    /// The store could not be read or written.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// A form in which images come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An OCI image layout in a directory.
    Layout,
    /// The same in an archive.
    OciArchive,
    /// An archive of `docker save`.
    DockerArchive,
    /// A repository of a registry.
    Registry,
}

impl Form {
    /// Returns how a reference names an image of this form by a tag.
    pub const fn reference(self) -> &'static str {
        match self {
            Self::Layout => "oci:PATH:TAG",
            Self::OciArchive => "oci-archive:PATH:TAG",
            Self::DockerArchive => "docker-archive:FILE:NAME:TAG",
            Self::Registry => "docker://HOST/NAME:TAG",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Layout => "an OCI image layout",
            Self::OciArchive => "an archive of an OCI image layout",
            Self::DockerArchive => "an archive of `docker save`",
            Self::Registry => "a repository",
        })
    }
}

/// The thing that is at a path instead of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants describe their fields")]
pub enum Found {
    /// Nothing at all.
    Nothing,
    /// A file, where a directory is named.
    File,
    /// A directory, where an archive is named.
    Directory,
    /// A directory or an archive without this file.
    Lacks(&'static str),
    /// An archive that is compressed, and the program that decompresses it.
    Compressed { format: &'static str, program: &'static str },
    /// A file without bytes.
    Empty,
    /// A file that is no tar archive.
    NoArchive,
    /// A copy of skopeo's kind `dir:`.
    SkopeoDirectory,
    /// An archive of an OCI image layout.
    OciArchive,
    /// An archive of `docker save`.
    DockerArchive,
    /// An archive that a docker older than 1.10 saved.
    OldDockerArchive,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "it does not exist",
            Self::File => "it is a file",
            Self::Directory => "it is a directory",
            Self::Lacks(name) => return write!(f, "it has no file {name:?}"),
            Self::Compressed { format, .. } => return write!(f, "it is compressed with {format}"),
            Self::Empty => "it is empty",
            Self::NoArchive => "it does not begin like a tar archive",
            Self::SkopeoDirectory => "it looks like a copy of skopeo's kind `dir:`",
            Self::OciArchive => "it is an archive of an OCI image layout",
            Self::DockerArchive => "`docker save` wrote it",
            Self::OldDockerArchive => "a docker older than 1.10 saved it",
        })
    }
}

/// Why a layer's type is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// The image does not have its content.
    Foreign,
    /// It is encrypted.
    Encrypted,
    /// It is of no known type.
    Unknown,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreign => "a foreign layer, whose content is not part of the image",
            Self::Encrypted => "an encrypted layer",
            Self::Unknown => "not a layer that is read: tar, tar+gzip and tar+zstd are",
        })
    }
}

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

impl SourceError {
    /// Returns the error of what should be a `what`.
    pub(super) fn malformed(at: &str, what: &str, message: &str) -> Self {
        Self::Malformed(format!("{at} does not read as {what}: {message}"))
    }

    /// Returns the error of an image whose documents contradict each other.
    pub(super) fn inconsistent(place: &str, why: &str) -> Self {
        Self::Malformed(format!("the image in {place} is inconsistent: {why}"))
    }

    /// Returns a function that says what could not be read.
    pub(super) fn io(at: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let at = at.into();
        move |source| Self::Io { at, source }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; its images are {names:?}") }
}
