//! Errors from opening a box.

use std::io;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use box_image::PlanError;
use box_image::manifest::{ARTIFACT_TYPE, FORMAT_EPOCH};
use box_image::text::shown;
use host_fs::read::ReadError;

/// An error from opening a box or reading a file of it.
///
/// Its message is one line that is safe for a terminal, whatever the box says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum OpenError {
    /// There is nothing at the path.
    #[error("there is no {}", place(path))]
    Missing { path: PathBuf },
    /// The path is not that of an OCI image layout.
    #[error("{} is not a box: it {lacks}", place(path))]
    NotALayout {
        path: PathBuf,
        /// What it lacks, as the end of a sentence.
        lacks: &'static str,
    },
    /// It is an OCI image layout of something else.
    #[error("{} is not a box: {}", place(path), other_artifact(found.as_deref()))]
    OtherArtifact {
        path: PathBuf,
        /// The artifact type of its manifest, if it has one.
        found: Option<String>,
    },
    /// The layout's index does not name exactly one manifest.
    #[error("{} names {count} manifests, and a box has one", place(path))]
    Manifests { path: PathBuf, count: usize },
    /// A file cannot be opened or read.
    #[error("cannot {action} {}: {error}", place(path))]
    File { action: &'static str, path: PathBuf, error: io::Error },
    /// A file is a symbolic link, a directory, a device or a pipe.
    #[error("{} is not a regular file; a box consists of regular files only", place(.0))]
    NotRegular(PathBuf),
    /// A file is longer than any that boxbuild writes in its place.
    #[error("{} has {found} bytes; such a file has at most {limit}", place(path))]
    TooLong { path: PathBuf, limit: u64, found: u64 },
    /// A document is not what its place in the box asks for.
    #[error("{} is not a boxbuild document: {}", place(path), shown(reason))]
    Malformed { path: PathBuf, reason: String },
    /// A field of a document does not have the value that it has in every box.
    #[error(
        "{} is not a boxbuild document: its {field} is {:?}, and a box has {expected:?}",
        place(path),
        shown(found)
    )]
    Field { path: PathBuf, field: &'static str, found: String, expected: &'static str },
    /// A manifest names no blob of a role, or more than one.
    #[error("{} does not name exactly one {role} ({media_type})", place(path))]
    NotOneBlob { path: PathBuf, role: &'static str, media_type: &'static str },
    /// A file does not have the size that the box names.
    #[error("{} has {found} bytes, and the box names {expected}", place(path))]
    Size { path: PathBuf, expected: u64, found: u64 },
    /// A file does not have the content that the box names.
    #[error("{} has the digest {found}, and the box names {expected}", place(path))]
    Digest { path: PathBuf, expected: Digest, found: Digest },
    /// The box is of another format epoch.
    #[error(
        "the box {} is of format epoch {found}, and this version reads epoch {FORMAT_EPOCH}",
        place(path)
    )]
    Epoch { path: PathBuf, found: u32 },
    /// No start could carry out the plan.
    #[error("the box cannot be run: {}", shown(&.0.to_string()))]
    Plan(PlanError),
}

impl OpenError {
    /// Says which file could not be opened or read.
    pub(crate) fn at(action: &'static str, path: &Path, error: ReadError) -> Self {
        let path = path.to_owned();
        match error {
            ReadError::NotRegular => Self::NotRegular(path),
            ReadError::TooLong { limit, found } => Self::TooLong { path, limit, found },
            error => Self::File { action, path, error: error.into() },
        }
    }

    /// Returns `true` if a file's bytes are not those that the box names.
    pub const fn is_difference(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Digest { .. })
    }
}

/// Shows a path on one line.
fn place(path: &Path) -> String {
    shown(&path.display().to_string())
}

fn other_artifact(found: Option<&str>) -> String {
    match found {
        Some(found) => {
            format!("its artifactType is {:?}, and a box has {ARTIFACT_TYPE:?}", shown(found))
        }
        None => "it is an OCI image layout of something else".to_owned(),
    }
}
