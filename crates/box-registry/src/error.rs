//! The errors of pushes and pulls.

use std::io;

use box_cache::StoreError;
use box_digest::Digest;
use box_layout::OpenError;
use oci_registry::RegistryError;

/// An error of a push or a pull of a box.
///
/// From a registry, a message repeats only digests, sizes, and quoted texts such as media types and error codes.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BoxRegistryError {
    /// A request to the registry has failed, or the registry sent other content than was requested.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A local or pulled box cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The reference leads to an artifact or image that is not a box.
    #[error("{what} is {found}, not a box")]
    NotABox { what: String, found: String },
    /// A manifest from the registry is not valid for a box: the registry's manifest, or the box's manifest, to which the
    /// registry's manifest leads.
    #[error("{what} is not valid: {reason}")]
    Malformed { what: String, reason: String },
    /// A blob of the local box does not match its manifest.
    #[error("the blob {digest} of the box is damaged: {found}")]
    Damaged { digest: Digest, found: String },
    /// A box is pushed of which this host lacks a blob, and the registry does not mount the copy of another repository.
    #[error("this host lacks the blob {digest}, and the registry does not copy it to {to}")]
    Elsewhere { digest: Digest, to: String },
    /// A blob cannot be compressed, because it cannot be read or the temporary file cannot be
    /// written.
    #[error("the blob {digest} cannot be compressed")]
    Compress { digest: Digest, source: io::Error },
    /// The store failed. For example, it has no space for the box.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A fetched blob cannot be written, or an existing one cannot be read.
    #[error("the blob {digest} cannot be kept")]
    Sink { digest: Digest, source: io::Error },
    /// A file with boxes cannot be read.
    #[error("cannot read {what}")]
    Read { what: String, source: io::Error },
    /// A file with boxes lacks a blob of one of its boxes.
    #[error("{what} lacks the blob {digest}")]
    Absent { what: String, digest: Digest },
    /// A blob in a file with boxes does not match the manifest of its box.
    #[error("the blob {digest} in {what} is damaged: {reason}")]
    Content { what: String, digest: Digest, reason: String },
    /// A file with boxes is read as a stream, and a document in it comes after the position at which it is needed.
    #[error("{what} has the document {digest} too late for a reader that cannot go back")]
    Later { what: String, digest: Digest },
}
