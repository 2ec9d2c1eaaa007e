//! Errors of a size, an option or the file.

use std::io;

/// Why a file system was not made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
#[expect(clippy::error_impl_error, reason = "the crate has one error, known as ext4_image::Error")]
#[non_exhaustive]
pub enum Error {
    /// The size leaves no room for files.
    #[error("an ext4 file system of {size} bytes is too small; it needs at least {least} bytes")]
    TooSmall { size: u64, least: u64 },
    /// The size has more blocks than 32 bits can number.
    #[error("an ext4 file system of {size} bytes is too large; it can have {most} bytes")]
    TooLarge { size: u64, most: u64 },
    /// The UUID is all zeros, which means that there is none.
    #[error("the UUID is nil; an ext4 file system needs one")]
    NilUuid,
    /// A mode has bits outside of 0o7777.
    #[error("the mode {mode:#o} of the root directory has more than permission bits")]
    InvalidMode { mode: u16 },
    /// The file has bytes that would become part of the file system.
    #[error("the file has {length} bytes; a file system is made in an empty one")]
    NotEmpty { length: u64 },
    /// The file cannot be read or written.
    #[error("the file system could not be written")]
    Write(#[from] io::Error),
}
