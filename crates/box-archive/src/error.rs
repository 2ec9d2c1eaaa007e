//! The errors of files with boxes.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use box_digest::Digest;
use box_layout::{MAX_MANIFESTS, OpenError};
use box_registry::BoxRegistryError;
use host_fs::FileError;
use host_fs::publish::PublishError;

/// An error of a file with boxes, or of one that was to be.
///
/// A message may have names of an archive and of its boxes: it is to be shown as foreign text.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ArchiveError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no such file or directory.
    #[error(transparent)]
    Missing(FileError),
    /// It is something else than an archive or a directory with boxes.
    #[error("{what} has no boxes: {reason}")]
    NoBoxes { what: String, reason: String },
    /// What is in it could be read in two ways, or not at all.
    #[error("{what} is not sound: {reason}")]
    Malformed { what: String, reason: String },
    /// It is an archive that a reader that cannot go back does not understand.
    #[error("{what} cannot be read as a stream: {reason}")]
    NotAStream { what: String, reason: String },
    /// The index names more than is read.
    #[error("{what} names more than {MAX_MANIFESTS} manifests")]
    TooMany { what: String },
    /// There are several boxes, and one is needed. Holds their names and digests.
    #[error("{what} has {} boxes: {}", boxes.len(), boxes.join(", "))]
    WhichBox { what: String, boxes: Vec<String> },
    /// None of the boxes has the digest. Holds their names and digests.
    #[error("{what} has no box {digest}; it has {}", boxes.join(", "))]
    Absent { what: String, digest: Digest, boxes: Vec<String> },
    /// A box cannot be read from it, or not be kept.
    #[error(transparent)]
    Box(#[from] BoxRegistryError),
    /// A box on this machine, or one that was loaded, cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A blob of a box on this machine is not what its manifest names.
    #[error("the blob {digest} of the box is damaged: {found}")]
    Damaged { digest: Digest, found: String },
    /// The file gives a box a name that another box of the store has.
    #[error("the name {name} belongs to {holder}, which is another box than the one in the file")]
    NameTaken { name: String, holder: String },
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory or the file cannot be put in its place.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The place is in a box, in another image layout or in a store, which hold nothing else.
    #[error("{} is in {}, {what}, which holds nothing else", path.display(), within.display())]
    Within { path: PathBuf, within: PathBuf, what: &'static str },
    /// The stream cannot be written.
    #[error("cannot write the output")]
    Write(#[source] io::Error),
}
