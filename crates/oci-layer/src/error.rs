//! Why a layer is refused.

use std::fmt;
use std::io;

use box_digest::Digest;
use box_tree::LookupError;

/// Why a layer is refused, and where in it.
#[derive(Debug)]
pub struct LayerError {
    /// The layer's digest as its image names it.
    pub layer: Digest,
    /// The entry, where one is to blame: its path as the archive spells it, and the offset of
    /// its header in the uncompressed archive, where known.
    pub entry: Option<(Vec<u8>, Option<u64>)>,
    /// What is wrong.
    pub kind: Box<LayerErrorKind>,
}

/// What is wrong with a layer.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum LayerErrorKind {
    /// The blob's bytes are not those that the image names.
    #[error("its bytes have the digest {found}")]
    WrongBlob { found: Digest },
    /// The uncompressed bytes are not those that the image's config names.
    #[error("uncompressed it is {found}, but the image's config names {expected}")]
    WrongDiffId { expected: Digest, found: Digest },
    /// There is no header where one must be.
    #[error("there is no tar header at byte {0}")]
    NoHeader(u64),
    /// The stream ends early or is no stream of its compression.
    #[error("it cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The layer asks for more than a layer may.
    #[error("it has more than {limit} {what}")]
    TooLarge { what: &'static str, limit: u64 },
    /// The path is not one that an image can have.
    #[error("{0}")]
    BadPath(&'static str),
    /// An entry of a type that an image must not hold.
    #[error("entries of tar type {0:?} do not belong into an image")]
    EntryType(char),
    /// A sparse file.
    #[error("sparse files are not supported")]
    Sparse,
    /// Data behind an entry that has none: some readers skip it, some take it for the next entry.
    #[error("only files have content, but this entry, which is not a file, claims {0} bytes of it")]
    UnexpectedData(u64),
    /// Something is said twice: some readers take the first, and some the last.
    #[error("it has more than one {0}, and programs differ in which of them they take")]
    Twice(&'static str),
    /// A number or an extended header does not read.
    #[error("its {0} does not read")]
    Malformed(&'static str),
    /// An extended attribute that would change how the guest's overlay reads the image.
    #[error("the extended attribute {0:?} is reserved for overlayfs")]
    OverlayAttribute(String),
    /// An extended attribute that the guest's file system cannot have.
    #[error("the extended attribute {0:?} is not supported")]
    UnsupportedAttribute(String),
    /// The target of a hard link cannot be linked to.
    #[error("it is a hard link to {target:?}, which is {found}")]
    LinkTarget { found: &'static str, target: String },
    /// The root is something other than a directory.
    #[error("the image's root must be a directory")]
    RootNotDirectory,
    /// Something is in the way of the path's directories.
    #[error("its directory cannot be reached: {0}")]
    Unreachable(#[from] LookupError),
    /// The decoded layer could not be written to the store.
    #[error("its content cannot be stored")]
    Store(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for LayerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer {}", self.layer)?;
        if let Some((path, offset)) = &self.entry {
            write!(f, ", entry {:?}", String::from_utf8_lossy(path))?;
            if let Some(offset) = offset {
                write!(f, " at byte {offset}")?;
            }
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for LayerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The kind's own text holds the rest but for the store's.
        match &*self.kind {
            LayerErrorKind::Store(source) => Some(source.as_ref()),
            _ => None,
        }
    }
}
