//! The errors of reading a layer.

use std::borrow::Cow;
use std::io;

use box_digest::Digest;
use box_tree::LookupError;

/// The layers of a build together exceed a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the layers {verb} more than {limit} {what} together", verb = if *.needs { "need" } else { "have" })]
pub struct Excess {
    /// The limited quantity, such as `entries`.
    pub(super) what: &'static str,
    /// The limit for all layers together.
    pub(super) limit: u64,
    /// The verb of the message: layers `need` memory, but `have` entries.
    pub(super) needs: bool,
}

/// The layer and entry of an error. Its source is the fault.
#[derive(Debug, thiserror::Error)]
#[error("layer {layer}{}", place(entry.as_ref()))]
pub struct LayerError {
    /// The digest of the layer's blob, from its image.
    pub layer: Digest,
    /// The entry that caused the error, if there is one: its path as in the archive, and the offset
    /// of its header in the uncompressed archive, if known.
    pub entry: Option<(Vec<u8>, Option<u64>)>,
    /// The fault. Boxed, because most results have no fault.
    #[source]
    pub kind: Box<LayerErrorKind>,
}

/// The fault in a layer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum LayerErrorKind {
    /// The digest of the blob or of the uncompressed archive is not the one in the image.
    #[error("{0}")]
    WrongDigest(String),
    /// There is no header at an offset that must have one.
    #[error("there is no tar header at byte {0}")]
    NoHeader(u64),
    /// The stream ends early or is no stream of its compression.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// The layer exceeds a limit for one layer.
    #[error("it has more than {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
    /// The layers exceed a limit for all layers of a build together.
    #[error("with the other layers, it has too much: {0}")]
    Together(#[from] Excess),
    /// An image cannot have such an entry, or programs differ in how they read it.
    #[error("{0}")]
    Refused(Cow<'static, str>),
    /// The path of the entry, or of a hard link's target, cannot be resolved.
    #[error("its directory cannot be reached")]
    Unreachable(#[from] LookupError),
    /// A file of a GNU or PAX sparse type.
    #[error("sparse files are not supported")]
    Sparse,
    /// Data after an entry that is not a file: some readers skip the data, others read it as the next entry.
    #[error("only files have content, but this entry, which is not a file, claims {0} bytes of it")]
    UnexpectedData(u64),
    /// An extended attribute by which overlayfs hides, redirects or replaces entries.
    #[error("the extended attribute {0:?} is reserved for overlayfs")]
    OverlayAttribute(String),
    /// The decoded layer could not be written to the store.
    #[error("its content cannot be stored")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Returns the error of an entry that is refused.
pub(crate) fn refused(reason: impl Into<Cow<'static, str>>) -> LayerErrorKind {
    LayerErrorKind::Refused(reason.into())
}

/// Returns the error of a layer that has more than `limit` of something.
pub(crate) const fn too_large(what: &'static str, limit: usize) -> LayerErrorKind {
    LayerErrorKind::TooLarge { what, limit: limit as u64 }
}

/// Returns the error of an entry with a malformed `what`, a number or a header.
pub(crate) fn malformed(what: &str) -> LayerErrorKind {
    refused(format!("its {what} is malformed"))
}

/// Returns the error of a repeated field, of which some readers take the first and some the last.
pub(crate) fn twice(what: &str) -> LayerErrorKind {
    refused(format!("it has more than one {what}, and programs differ in which of them they take"))
}

fn place(entry: Option<&(Vec<u8>, Option<u64>)>) -> String {
    let Some((path, offset)) = entry else { return String::new() };
    let offset = offset.map_or_else(String::new, |offset| format!(" at byte {offset}"));
    format!(", entry {:?}{offset}", String::from_utf8_lossy(path))
}
