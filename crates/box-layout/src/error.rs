//! Errors from opening a box.

use std::io;
use std::path::{Path, PathBuf};

use box_contract::PlanError;
use box_contract::manifest::{ARTIFACT_TYPE, READABLE_EPOCHS};
use box_contract::plan::PLAN_PATH;
use box_digest::Digest;
use host_fs::read::ReadError;
use safe_text::shown;

use crate::Places;

/// An error from opening a box or reading one of its files.
///
/// Its message is one line that is safe for a terminal, even if the box is hostile.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum OpenError {
    /// The path is not an OCI image layout, or does not exist.
    #[error("{0}")]
    NotALayout(String),
    /// The OCI image layout has another artifact, or an image if it has no artifact type.
    #[error("{} is {}", place(path), other_artifact(found.as_deref()))]
    OtherArtifact {
        path: PathBuf,
        /// The artifact type of its manifest, if it has one.
        found: Option<String>,
    },
    /// The layout's index has no manifest, or more than [`MAX_MANIFESTS`](crate::MAX_MANIFESTS).
    #[error("{} names {count} manifests, and a box has one", place(path))]
    Manifests { path: PathBuf, count: usize },
    /// The layout's index has several boxes. `names` has their tags and digests.
    #[error("{} has {} boxes: {}", place(path), names.len(), shown(&names.join(", ")))]
    Boxes { path: PathBuf, names: Vec<String> },
    /// A file cannot be opened or read, or is too long.
    #[error("cannot {action} {}: {error}", place(path))]
    File { action: &'static str, path: PathBuf, error: io::Error },
    /// A blob is neither in the directory of the box nor in a store of `places`.
    #[error("the {role} {digest} is {}", absent(places))]
    Absent {
        places: Box<Places>,
        /// The role of the blob in the box.
        role: String,
        digest: Digest,
    },
    /// A file is a symbolic link, a directory, a device or a pipe.
    #[error("{} is not a regular file; a box consists of regular files only", place(.0))]
    NotRegular(PathBuf),
    /// A document is not valid for its role in the box, or its plan cannot be carried out.
    #[error("{0}")]
    Malformed(String),
    /// A file does not have its size or its digest in the manifest.
    #[error("{} has {found}, but its manifest says {expected}", place(path))]
    Different { path: PathBuf, expected: String, found: String },
    /// The plan in the rootfs differs from the config's plan, or cannot be read because of `reason`.
    #[error(
        "{PLAN_PATH} in the rootfs {} {}", place(path),
        reason.as_deref().map_or("is not the plan of the box's config".to_owned(), unreadable)
    )]
    RootfsPlan { path: PathBuf, reason: Option<String> },
    /// The superblock of the rootfs does not have the size of all parts together. `found` and `expected` are numbers of blocks.
    #[error(
        "the rootfs image that begins with {} says that it has {found} blocks of 4096 bytes, but its parts have \
         {expected}",
        place(path)
    )]
    Superblock { path: PathBuf, found: u64, expected: u64 },
    /// The box is of a format epoch that is too old or too new.
    #[error(
        "the box {} is of format epoch {found}, and this version reads epochs {} to {}",
        place(path), READABLE_EPOCHS.start(), READABLE_EPOCHS.end()
    )]
    Epoch { path: PathBuf, found: u64 },
}

impl OpenError {
    /// Returns `true` if a file does not exist.
    pub fn is_missing(&self) -> bool {
        match self {
            Self::Absent { .. } => true,
            Self::File { error, .. } => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        }
    }

    /// Returns the error of a file that could not be opened or read.
    pub(crate) fn at(action: &'static str, path: &Path, error: ReadError) -> Self {
        let path = path.to_owned();
        match error {
            ReadError::NotRegular => Self::NotRegular(path),
            error => Self::File { action, path, error: error.into() },
        }
    }

    /// Returns the error of a document.
    pub(crate) fn malformed(path: &Path, reason: &str) -> Self {
        let reason = shown(reason);
        Self::Malformed(format!("{} is malformed: {reason}", place(path)))
    }

    /// Returns the error of a plan that cannot be carried out.
    pub(crate) fn plan(error: &PlanError) -> Self {
        Self::Malformed(format!("the box cannot be run: {}", shown(&error.to_string())))
    }

    /// Returns the error of a file that does not have its size in the manifest.
    pub fn size(path: PathBuf, expected: u64, found: u64) -> Self {
        let (expected, found) = (expected.to_string(), format!("{found} bytes"));
        Self::Different { path, expected, found }
    }

    /// Returns the error of a file that does not have its digest in the manifest.
    pub fn digest(path: PathBuf, expected: Digest, found: Digest) -> Self {
        let (expected, found) = (expected.to_string(), format!("the digest {found}"));
        Self::Different { path, expected, found }
    }
}

fn absent(Places { directory, store, .. }: &Places) -> String {
    match store {
        Some(store) => {
            format!("neither in {} nor in the store ({})", place(directory), place(store))
        }
        None => format!("not in {}", place(directory)),
    }
}

fn unreadable(reason: &str) -> String {
    format!("cannot be read: {}", shown(reason))
}

/// Shows a path on one line.
pub(crate) fn place(path: &Path) -> String {
    shown(&path.display().to_string())
}

fn other_artifact(found: Option<&str>) -> String {
    match found {
        Some(found) => {
            let found = shown(found);
            format!("not a box: its artifactType is {found:?}, and a box has {ARTIFACT_TYPE:?}")
        }
        None => "an OCI image, not a box".to_owned(),
    }
}
