//! What can be wrong with a tree, its contents or the image's destination.

use std::io;

use box_digest::Blake3Digest;

use crate::NodeId;

/// Why an image was not built.
///
/// Names are given with their unprintable bytes escaped. After an error of
/// [`ImageBuilder::write`](crate::ImageBuilder::write) the destination holds a part of an image,
/// which is of no use: discard it.
#[derive(Debug, thiserror::Error)]
#[expect(
    clippy::error_impl_error,
    reason = "the crate has one error, known as erofs_writer::Error"
)]
#[non_exhaustive]
pub enum Error {
    /// A name that no directory can hold.
    #[error("the name \"{name}\" {problem}")]
    InvalidName {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A second entry of the same name.
    #[error("the directory already has an entry named \"{name}\"; link one of the two only")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Something other than a directory was asked to hold a name.
    #[error("\"{name}\" was linked into node {node}, which is not a directory")]
    NotADirectory {
        /// What is not a directory.
        node: NodeId,
        /// The name.
        name: String,
    },
    /// A directory got a second name, or the root a first one.
    #[error("\"{name}\" would be a second name of directory {node}; a directory has exactly one")]
    DirectoryLinkedTwice {
        /// The directory.
        node: NodeId,
        /// The name that was refused.
        name: String,
    },
    /// Directories hold each other and so cannot be reached from the root.
    #[error("the directory \"{name}\" lies within itself; link it below the root instead")]
    Cycle {
        /// The name of one of the directories.
        name: String,
    },
    /// An inode was added and never given a name.
    #[error("node {node} was added and has no name; link it into a directory or do not add it")]
    Unreachable {
        /// The inode.
        node: NodeId,
    },
    /// A node id that this builder did not give out.
    #[error("node {node} does not belong to this image")]
    UnknownNode {
        /// The id.
        node: NodeId,
    },
    /// A mode has bits outside of 0o7777.
    #[error("the mode {mode:#o} has more than permission bits; the type comes from the node")]
    InvalidMode {
        /// The mode.
        mode: u16,
    },
    /// A time has a second or more of nanoseconds.
    #[error("an mtime with {nanoseconds} nanoseconds; they must be below 1000000000")]
    InvalidTime {
        /// The nanoseconds.
        nanoseconds: u32,
    },
    /// A symlink target that Linux could not follow.
    #[error("a symlink target of {length} bytes {problem}")]
    InvalidTarget {
        /// The target's length in bytes.
        length: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A device number that does not fit Linux's 12 and 20 bits.
    #[error("the device {major}:{minor} is out of range; the greatest is 4095:1048575")]
    InvalidDevice {
        /// The major number.
        major: u32,
        /// The minor number.
        minor: u32,
    },
    /// An extended attribute that EROFS cannot store.
    #[error("the extended attribute \"{name}\" {problem}")]
    InvalidXattr {
        /// The attribute's full name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An inode has an extended attribute twice.
    #[error("the extended attribute \"{name}\" is given twice for one inode")]
    DuplicateXattr {
        /// The attribute's full name.
        name: String,
    },
    /// The extended attributes of an inode are too long together.
    #[error("the extended attributes of one inode take {size} bytes; at most 262148 can be stored")]
    XattrsTooLarge {
        /// Their size as stored, in bytes.
        size: usize,
    },
    /// Two files have one content and different sizes.
    #[error("content {content} is said to have {first} bytes and also {second} bytes")]
    ContentSizeMismatch {
        /// The content.
        content: Blake3Digest,
        /// The one size.
        first: u64,
        /// The other size.
        second: u64,
    },
    /// A content ended early.
    #[error("content {content} ended after {delivered} of its {size} bytes")]
    ContentTooShort {
        /// The content.
        content: Blake3Digest,
        /// Its size in bytes, as declared.
        size: u64,
        /// How many bytes came.
        delivered: u64,
    },
    /// A content did not end where it should.
    #[error("content {content} has more than its {size} bytes")]
    ContentTooLong {
        /// The content.
        content: Blake3Digest,
        /// Its size in bytes, as declared.
        size: u64,
    },
    /// A content could not be read.
    #[error("content {content} could not be read")]
    Content {
        /// The content.
        content: Blake3Digest,
        /// What [`Contents::copy`](crate::Contents::copy) returned.
        #[source]
        source: io::Error,
    },
    /// The image could not be written.
    #[error("the image could not be written")]
    Write(#[source] io::Error),
    /// A count is over what the format can number.
    #[error("the image is too large: EROFS numbers inodes, names and blocks with 32 bits (16 TiB)")]
    TooLarge,
}

/// Writes bytes that should be text so that a terminal can show them.
pub(crate) fn printable(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}
