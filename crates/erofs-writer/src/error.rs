//! Errors of a tree, its contents or the image's destination.

use std::io;

use box_digest::Blake3Digest;

use crate::NodeId;

/// Why an image was not built.
///
/// Names have their unprintable bytes escaped, and sizes are in bytes. Discard the destination after an error of
/// [`ImageBuilder::write`](crate::ImageBuilder::write): it may contain an incomplete image.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
#[expect(
    clippy::error_impl_error,
    reason = "the crate has one error, known as erofs_writer::Error"
)]
#[non_exhaustive]
pub enum Error {
    /// A name that is not valid in a directory.
    #[error("the name \"{name}\" {problem}")]
    InvalidName { name: String, problem: &'static str },
    /// The directory already has an entry with this name.
    #[error("the directory already has an entry named \"{name}\"; link one of the two only")]
    DuplicateName { name: String },
    /// The `directory` of [`ImageBuilder::link`](crate::ImageBuilder::link) is not a directory.
    #[error("\"{name}\" was linked into node {node}, which is not a directory")]
    NotADirectory { node: NodeId, name: String },
    /// A directory got a second name, or the root got a name.
    #[error("\"{name}\" would be a second name of directory {node}; a directory has exactly one")]
    DirectoryLinkedTwice { node: NodeId, name: String },
    /// Directories contain each other, such as `a/b` and `b/a`, and are unreachable from the root. `name` is one of them.
    #[error("the directory \"{name}\" lies within itself; link it below the root instead")]
    Cycle { name: String },
    /// An inode was added, but not linked into a directory.
    #[error("node {node} was added and has no name; link it into a directory or do not add it")]
    Unreachable { node: NodeId },
    /// A node id of another builder. It is detected only if that builder has more inodes.
    #[error("node {node} does not belong to this image")]
    UnknownNode { node: NodeId },
    /// A mode has bits outside of 0o7777.
    #[error("the mode {mode:#o} has more than permission bits; the type comes from the node")]
    InvalidMode { mode: u16 },
    /// A time has a second or more of nanoseconds.
    #[error("an mtime with {nanoseconds} nanoseconds; they must be below 1000000000")]
    InvalidTime { nanoseconds: u32 },
    /// A symlink target that Linux could not follow.
    #[error("a symlink target of {length} bytes {problem}")]
    InvalidTarget { length: usize, problem: &'static str },
    /// A device number that does not fit Linux's 12 and 20 bits.
    #[error("the device {major}:{minor} is out of range; the greatest is 4095:1048575")]
    InvalidDevice { major: u32, minor: u32 },
    /// An extended attribute that EROFS cannot store.
    #[error("the extended attribute \"{name}\" {problem}")]
    InvalidXattr { name: String, problem: &'static str },
    /// An inode has an extended attribute twice.
    #[error("the extended attribute \"{name}\" is given twice for one inode")]
    DuplicateXattr { name: String },
    /// The extended attributes of an inode are too long together. `size` is their stored size, with the header.
    #[error("the extended attributes of one inode take {size} bytes; at most 262148 can be stored")]
    XattrsTooLarge { size: usize },
    /// Two files have one content and different sizes.
    #[error("content {content} is said to have {first} bytes and also {second} bytes")]
    ContentSizeMismatch { content: Blake3Digest, first: u64, second: u64 },
    /// The offset that [`Behind::place`](crate::Behind::place) returned for a content is not the start of a block, or the
    /// content would exceed [`Behind::size`](crate::Behind::size).
    #[error("content {content} cannot lie {offset} bytes behind the image")]
    Misplaced { content: Blake3Digest, offset: u64 },
    /// A content ended before its declared `size`.
    #[error("content {content} ended after {delivered} of its {size} bytes")]
    ContentTooShort { content: Blake3Digest, size: u64, delivered: u64 },
    /// A content has more bytes than its declared `size`.
    #[error("content {content} has more than its {size} bytes")]
    ContentTooLong { content: Blake3Digest, size: u64 },
    /// A content could not be read. `source` is the error of [`ContentSource::copy`](crate::ContentSource::copy).
    #[error("content {content} could not be read")]
    Content { content: Blake3Digest, source: io::Error },
    /// The image could not be written.
    #[error("the image could not be written")]
    Write(#[source] io::Error),
    /// A count exceeds the range of the format.
    #[error("the image is too large: EROFS numbers inodes, names and blocks with 32 bits (16 TiB)")]
    TooLarge,
}

/// Escapes the bytes of a name that are not printable ASCII, for example a line feed as `\n`.
pub(crate) fn printable(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}
