//! Errors from exporting a box.

use std::io;

use box_tree::path::lossy;
use erofs_writer::ReadError;
use host_fs::FileError;
use host_fs::publish::PublishError;

use crate::opened::OpenError;

/// Errors from exporting a box. A `path` is the path of an entry in the exported tree.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ExportError {
    /// The box cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An OCI image holds one component, and the box has two.
    #[error("the box has an agent and a business application, and an OCI image holds one of them")]
    WhichComponent,
    /// The rootfs does not match its digest or the listing.
    #[error("{0}")]
    Damaged(String),
    /// The output format cannot represent a property of an entry.
    #[error("{path} has {what}, which {form} cannot hold")]
    NoPlace { path: String, what: &'static str, form: &'static str },
    /// A file of the host, an entry of the tree or the rootfs cannot be read or made.
    #[error(transparent)]
    File(#[from] FileError),
    /// The finished directory or file cannot be renamed to its path.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The output cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
    /// A document cannot be serialized as JSON.
    #[error(transparent)]
    Document(#[from] oci_spec::OciSpecError),
}

impl From<erofs_writer::Error> for ExportError {
    fn from(error: erofs_writer::Error) -> Self {
        let what = "the listing of the box describes no image that this version could write";
        Self::Damaged(format!("{what}: {error}"))
    }
}

impl From<ReadError> for ExportError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => FileError::of("read", ROOTFS)(error).into(),
            error => Self::damaged(&error.to_string()),
        }
    }
}

impl ExportError {
    /// Replaces a write error by one that names the host's file.
    pub(crate) fn writing(self, at: impl FnOnce(io::Error) -> FileError) -> Self {
        match self {
            Self::Write(source) => at(source).into(),
            error => error,
        }
    }

    /// Returns the error of a file whose data do not match the listing.
    pub(crate) fn other_data(path: &[u8]) -> Self {
        Self::damaged(&format!("{} does not have the content that the listing names", lossy(path)))
    }

    pub(crate) fn damaged(what: &str) -> Self {
        Self::Damaged(format!("the rootfs of the box is damaged: {what}"))
    }
}

/// How errors name the rootfs.
pub(crate) const ROOTFS: &str = "the rootfs of the box";

/// Adds the operation and the entry's path to an error.
pub(crate) fn entry_at(doing: &'static str, path: &[u8]) -> impl FnOnce(io::Error) -> FileError {
    FileError::of(doing, format!("{} of the box", lossy(path)))
}
