//! The errors of pushes and pulls.

use std::io;

use box_cache::StoreError;
use box_digest::Digest;
use box_layout::OpenError;
use oci_registry::RegistryError;

/// An error of a push or a pull of a box.
///
/// A message has no text of a registry but digests, sizes, and media types in quotes.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BoxRegistryError {
    /// The registry cannot be asked, refuses, or sends something else than what was asked for.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The box on this machine cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The reference leads to something else than a box.
    #[error("{what} is {found}, not a box")]
    NotABox { what: String, found: String },
    /// The registry's manifest, or the box's manifest in the registry, is not as one of a box.
    #[error("{what} is not sound: {reason}")]
    Malformed { what: String, reason: String },
    /// A blob of the box on this machine is not what its manifest names.
    #[error("the blob {digest} of the box is damaged: {found}")]
    Damaged { digest: Digest, found: String },
    /// A blob cannot be compressed: it cannot be read, or the temporary file cannot be written.
    #[error("the blob {digest} cannot be compressed")]
    Compress { digest: Digest, source: io::Error },
    /// The store has no room for the box.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was pulled cannot be kept on this machine, or what is there cannot be read.
    #[error("the blob {digest} cannot be kept")]
    Sink { digest: Digest, source: io::Error },
    /// A file with boxes cannot be read.
    #[error("cannot read {what}")]
    Read { what: String, source: io::Error },
    /// A file with boxes lacks a blob that one of them names.
    #[error("{what} lacks the blob {digest}")]
    Absent { what: String, digest: Digest },
    /// A blob in a file with boxes is not the one that a box names.
    #[error("the blob {digest} in {what} is damaged: {reason}")]
    Content { what: String, digest: Digest, reason: String },
    /// A stream has a document after what it is needed for.
    #[error("{what} has the document {digest} too late for a reader that cannot go back")]
    Later { what: String, digest: Digest },
}
