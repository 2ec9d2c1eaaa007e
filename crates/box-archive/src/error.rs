//! The errors of files with boxes.

use std::io;
use std::path::PathBuf;

use box_cache::{MAX_ATTACHED, StoreError};
use box_digest::Digest;
use box_layout::{MAX_MANIFESTS, OpenError};
use box_registry::BoxRegistryError;
use host_fs::FileError;
use host_fs::publish::PublishError;

/// An error of reading or writing a file with boxes.
///
/// A message may contain names from an archive and its boxes, so it has to be shown as untrusted
/// text.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ArchiveError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such file or directory.
    #[error(transparent)]
    Missing(FileError),
    /// The path is not an archive or a directory with boxes.
    #[error("{what} has no boxes: {reason}")]
    NoBoxes { what: String, reason: String },
    /// The archive or directory has something else than boxes, such as an image.
    #[error("{what} is {found}, not a box")]
    NotABox { what: String, found: String },
    /// The content is malformed or ambiguous.
    #[error("{what} is not valid: {reason}")]
    Malformed { what: String, reason: String },
    /// The archive does not have the order that reading it as a stream requires.
    #[error("{what} cannot be read as a stream: {reason}")]
    NotAStream { what: String, reason: String },
    /// The index has more manifests than are allowed.
    #[error("{what} names more than {MAX_MANIFESTS} manifests")]
    TooMany { what: String },
    /// The attachments of the boxes are too large for one file.
    #[error(
        "the attachments of the boxes have {bytes} bytes together, and at most {MAX_ATTACHED} are allowed in a file"
    )]
    Attachments { bytes: u64 },
    /// There are several boxes, and one is needed. `boxes` has their names and digests.
    #[error("{what} has {} boxes: {}", boxes.len(), boxes.join(", "))]
    WhichBox { what: String, boxes: Vec<String> },
    /// No box has the digest. `boxes` has the names and digests of the boxes.
    #[error("{what} has no box {digest}; it has {}", boxes.join(", "))]
    Absent { what: String, digest: Digest, boxes: Vec<String> },
    /// A box cannot be read from the file, or not be written to the store.
    #[error(transparent)]
    Box(#[from] BoxRegistryError),
    /// A local or loaded box cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A blob of a local box does not match its manifest.
    #[error("the blob {digest} of the box is damaged: {found}")]
    Damaged { digest: Digest, found: String },
    /// Another box in the store has a name that the file gives to one of its boxes.
    #[error("the name {name} belongs to {holder}, not to the box in the file")]
    NameTaken { name: String, holder: String },
    /// The file has only what differs from an older box, and the store lacks that box.
    #[error(
        "{what} has only what differs from the box {base}, and the store does not have that box"
    )]
    NeedsBase { what: String, base: Digest },
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory or the file cannot be moved to its path.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The path is in a box, in another image layout or in a store, which must not contain other files.
    #[error("{} is in {}, {what}, which holds nothing else", path.display(), within.display())]
    Within { path: PathBuf, within: PathBuf, what: &'static str },
    /// The output stream cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
}
